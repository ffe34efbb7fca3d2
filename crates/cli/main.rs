//! The `tidegate` command.

mod args;
mod check;
mod conversations;
mod demo;
mod explain;
mod init;
mod listen;
mod reload;
mod replay;
mod serve;
mod settings;
mod store;

use crate::args::{Arguments, Command};
use std::process::ExitCode;

fn main() -> ExitCode {
    let outcome = match args::parse() {
        Arguments { command: Command::Serve(serve), .. } => serve::run(&serve).map(|()| ExitCode::SUCCESS),
        Arguments { command: Command::Check(check), .. } => check::run(&check).map(|()| ExitCode::SUCCESS),
        Arguments { command: Command::Explain(explain), .. } => explain::run(&explain),
        Arguments { command: Command::Replay(args), .. } => replay::run(&args),
        Arguments { command: Command::Demo(args), .. } => demo::run(&args).map(|()| ExitCode::SUCCESS),
        Arguments { command: Command::Conversations(args), .. } => conversations::run(&args),
        Arguments { command: Command::Init(init), .. } => init::run(&init).map(|()| ExitCode::SUCCESS),
        Arguments { command: Command::Completions { shell }, .. } => {
            args::print_completions(shell);
            Ok(ExitCode::SUCCESS)
        }
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            // The one place where a command says on the terminal why it failed.
            #[expect(clippy::print_stderr, reason = "there may be no log yet, and a person is waiting")]
            {
                eprintln!("{error:#}");
            }
            ExitCode::FAILURE
        }
    }
}
