use crate::args::InitArgs;
use anyhow::{Context, bail};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};

/// What most people set. Nothing under `[context]` is set, so that a profile that is uncommented there takes effect.
const STARTER: &str = include_str!("init/starter.toml");

/// The reference configuration: every key with its default and what it does.
const REFERENCE: &str = include_str!("../../proxy.toml");

pub(crate) fn run(args: &InitArgs) -> anyhow::Result<()> {
    let path = args.path.display();
    let mut options = OpenOptions::new();
    options.write(true);
    // `create_new` also fails if the file appears after a check, so a race cannot overwrite anything.
    if args.force {
        options.create(true).truncate(true)
    } else {
        options.create_new(true)
    };
    let mut file = match options.open(&args.path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            bail!("`{path}` already exists\n  hint: choose another file, or overwrite it with --force")
        }
        Err(error) => return Err(error).with_context(|| format!("cannot write `{path}`")),
    };
    let text = if args.full { REFERENCE } else { STARTER };
    file.write_all(text.as_bytes()).with_context(|| format!("cannot write `{path}`"))?;
    #[expect(clippy::print_stdout, reason = "this is the command's output")]
    {
        println!("wrote {path}\nnext: tidegate check --config {path}");
    }
    Ok(())
}
