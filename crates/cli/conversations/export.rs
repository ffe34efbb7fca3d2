use super::args::ExportArgs;
use super::terminal;
use anyhow::{Context, bail};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::ExitCode;
use tidegate_admin::Source;

pub(super) async fn run(source: &Source, args: &ExportArgs) -> anyhow::Result<ExitCode> {
    let lines = source.export(&args.id, args.whose.tenant.as_deref()).await?;
    if lines.is_empty() {
        terminal::say("no message of this conversation is recorded or can be read; `show` says why");
    }
    match &args.output {
        Some(path) => write(path, &lines)?,
        None => terminal::print_json(&lines),
    }
    Ok(ExitCode::SUCCESS)
}

/// For the eyes of whoever asked, from the first byte on; never in the place of something else.
fn write(path: &Path, lines: &[u8]) -> anyhow::Result<()> {
    let name = path.display();
    let mut file = match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            bail!("`{name}` is there already\n  hint: name another file")
        }
        Err(error) => return Err(error).with_context(|| format!("cannot write `{name}`")),
    };
    file.write_all(lines).with_context(|| format!("cannot write `{name}`"))
}
