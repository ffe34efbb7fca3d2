//! Runs subcommands of `tidegate`.

use super::within;
use std::path::Path;
use std::process::Stdio;
use tokio::process::Command;

/// What a finished command printed, and its exit code.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<std::process::Output> for Output {
    fn from(output: std::process::Output) -> Output {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Output { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

/// `tidegate` in this directory, without the variables of the caller's environment that it would read.
pub(crate) fn command(directory: &Path) -> Command {
    let mut command = Command::from(blocking_command(directory));
    command.kill_on_drop(true);
    command
}

/// The same for tests without a runtime.
pub(crate) fn blocking_command(directory: &Path) -> std::process::Command {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tidegate"));
    for (name, _) in std::env::vars_os() {
        let is_read = ["TIDEGATE_", "AGENT_CONTEXT_", "CONTEXT_", "OTEL_", "RUST_LOG"]
            .iter()
            .any(|prefix| name.to_string_lossy().starts_with(prefix));
        if is_read {
            command.env_remove(name);
        }
    }
    command.current_dir(directory).stdin(Stdio::null());
    command
}

/// Runs a command to its end.
pub(crate) async fn run(command: &mut Command) -> Output {
    within("the command ends", command.output()).await.unwrap().into()
}
