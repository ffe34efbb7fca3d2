use super::args::ExportArgs;
use super::terminal;
use crate::exit::Exit;
use anyhow::{Context, bail};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use tidegate_admin::Source;

pub(super) async fn run(source: &Source, args: &ExportArgs) -> anyhow::Result<Exit> {
    let lines = source.export(&args.id, args.target.tenant.as_deref()).await?;
    if lines.is_empty() {
        terminal::notice("no messages of this conversation are recorded or can be read; `show` says why");
    }
    match &args.output {
        Some(path) => write(path, &lines)?,
        None => terminal::print_json(&lines),
    }
    Ok(Exit::Success)
}

/// Creates a file that only its owner can read. Never overwrites a file.
fn write(path: &Path, lines: &[u8]) -> anyhow::Result<()> {
    let name = path.display();
    let mut file = match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            bail!("`{name}` already exists\n  hint: choose another file")
        }
        Err(error) => return Err(error).with_context(|| format!("cannot write `{name}`")),
    };
    file.write_all(lines).with_context(|| format!("cannot write `{name}`"))
}
