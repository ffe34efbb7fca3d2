use std::panic::{PanicHookInfo, set_hook};
use tracing::error;

/// Installs a panic hook that logs the location of a panic but not its message. The message can hold content, for example the string
/// that was sliced inside a character.
pub fn log_panics() {
    set_hook(Box::new(report));
}

fn report(panic: &PanicHookInfo<'_>) {
    let location = panic.location().map(ToString::to_string).unwrap_or_default();
    let thread = std::thread::current();
    let thread = thread.name().unwrap_or_default();
    error!(location, thread, "panic: a request was lost; please report this bug with its location");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logs::subscriber;
    use crate::{Format, LogSink};
    use std::panic::{catch_unwind, take_hook};
    use tracing_subscriber::EnvFilter;

    #[test]
    fn a_panic_is_logged_without_its_message() {
        let (log, written) = LogSink::to_memory();
        let secret = "the canäry";
        let caught = tracing::subscriber::with_default(
            subscriber(&log, Format::Json, EnvFilter::new("trace"), None),
            || {
                log_panics();
                let caught = [
                    catch_unwind(|| panic!("about {secret}")).is_err(),
                    catch_unwind(|| secret[..8].len()).is_err(),
                ];
                drop(take_hook());
                caught
            },
        );
        log.flush();
        let text = written.text();
        assert_eq!(caught, [true, true]);
        assert_eq!(text.matches("panics.rs:").count(), 2, "{text}");
        assert!(!text.contains("can"), "{text}");
    }
}
