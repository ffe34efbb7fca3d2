//! Writes the exact bytes that would be forwarded (`--forwarded`).

use anyhow::Context;
use serde_json::json;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use tidegate_replay::{Defaults, InputItem, Setup, Shown, Stage, read_file};

/// Writes one line per request and policy, at the first price. Reads the files a second time.
pub(super) fn write(
    path: &Path,
    files: &[PathBuf],
    setup: &Setup,
    defaults: &Defaults,
) -> anyhow::Result<()> {
    let name = path.display();
    let mut setup = setup.clone();
    setup.regimes.truncate(1);
    let mut out = BufWriter::new(File::create(path).with_context(|| format!("cannot write `{name}`"))?);
    let mut stage = Stage::new(&setup);
    let mut written = Ok(());
    for file in files {
        read_file(file, defaults, |item, _| {
            let conversation = match item {
                InputItem::Conversation(conversation) => *conversation,
                InputItem::Line(line) => match line.conversation(defaults) {
                    Ok(conversation) => conversation,
                    // The comparison has already read every line without an error.
                    Err(_) => return true,
                },
            };
            let mut show = |shown: Shown<'_>| {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let line = json!({
                    "conversation": conversation.id,
                    "policy": shown.policy.to_string(),
                    "request": shown.request + 1,
                    "sent": text(shown.sent),
                    "forwarded": shown.forwarded.as_deref().map(text),
                    "summaries": shown.summaries,
                });
                if written.is_ok() {
                    written = writeln!(out, "{line}");
                }
            };
            stage.watch(&conversation, Some(&mut show));
            written.is_ok()
        })?;
    }
    written.and_then(|()| out.flush()).with_context(|| format!("cannot write `{name}`"))
}
