//! The `tidegate` command.

mod allocator;
mod args;
mod check;
mod conversations;
mod demo;
mod exit;
mod explain;
mod health;
mod init;
mod listen;
mod reload;
mod replay;
mod serve;
mod settings;
mod store;

use crate::args::{Arguments, Command};
use crate::exit::Exit;
use std::process::ExitCode;

fn main() -> ExitCode {
    allocator::configure();
    match run(&args::parse()) {
        Ok(Exit::Success) => ExitCode::SUCCESS,
        Ok(Exit::Cancelled | Exit::Unhealthy) => ExitCode::FAILURE,
        // The same code that `clap` uses for wrong usage.
        Ok(Exit::ConfirmationRequired) => ExitCode::from(2),
        Ok(Exit::Refused) => ExitCode::from(3),
        Ok(Exit::NoUniqueConversation) => ExitCode::from(4),
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "there may be no log yet, and a person is waiting")]
            {
                eprintln!("{}", without_codes(&format!("{error:#}")));
            }
            ExitCode::FAILURE
        }
    }
}

/// Removes ` (os error 2)`: the words before it say the same.
fn without_codes(message: &str) -> String {
    let mut parts = message.split(" (os error ");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|digit: char| digit.is_ascii_digit());
        plain.push_str(rest.strip_prefix(')').unwrap_or(rest));
    }
    plain
}

fn run(Arguments { command }: &Arguments) -> anyhow::Result<Exit> {
    match command {
        Command::Serve(args) => serve::run(args)?,
        Command::Check(args) => check::run(args)?,
        Command::Explain(args) => return explain::run(args),
        Command::Replay(args) => replay::run(args)?,
        Command::Demo(args) => demo::run(args)?,
        Command::Conversations(args) => return conversations::run(args),
        Command::Health(args) => return health::run(args),
        Command::Init(args) => init::run(args)?,
        Command::Completions { shell } => args::print_completions(*shell),
    }
    Ok(Exit::Success)
}

#[cfg(test)]
mod tests {
    use super::without_codes;

    #[test]
    fn the_numbers_of_the_operating_system_are_left_out() {
        let message =
            "proxy.toml: cannot be read: No such file or directory (os error 2)\n  hint: check the path";
        let plain = "proxy.toml: cannot be read: No such file or directory\n  hint: check the path";
        assert_eq!(without_codes(message), plain);
        assert_eq!(without_codes("a (os error 13): b (os error 104)"), "a: b");
        assert_eq!(without_codes("nothing"), "nothing");
    }
}
