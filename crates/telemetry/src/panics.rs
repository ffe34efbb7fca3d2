use std::panic::{PanicHookInfo, set_hook};
use tracing::error;

/// Logs where a panic happened and nothing of what it says: the message of one can hold a piece of the text that was being
/// worked on, such as a string that was cut in the middle of a character.
pub fn log_panics() {
    set_hook(Box::new(report));
}

fn report(panic: &PanicHookInfo<'_>) {
    let location = panic.location().map(ToString::to_string).unwrap_or_default();
    let thread = std::thread::current();
    let thread = thread.name().unwrap_or_default();
    error!(location, thread, "a bug in Tidegate: one request was lost, please report where it happened");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logs::subscriber;
    use crate::{Format, Lines};
    use std::panic::{catch_unwind, take_hook};
    use tracing_subscriber::EnvFilter;

    #[test]
    fn a_panic_tells_where_and_not_what() {
        let (lines, written) = Lines::to_memory();
        let secret = "the canäry";
        let caught = tracing::subscriber::with_default(
            subscriber(&lines, Format::Json, EnvFilter::new("trace"), None),
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
        lines.flush();
        let text = written.text();
        assert_eq!(caught, [true, true]);
        assert_eq!(text.matches("panics.rs:").count(), 2, "{text}");
        assert!(!text.contains("can"), "{text}");
    }
}
