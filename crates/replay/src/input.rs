//! Reads recorded conversations from files and detects their format.
//!
//! - One conversation per line: `{"id", "model", "messages" or "input", "tools"?}`, the format of `tidegate
//!   conversations export`.
//! - One request per line: the body of a chat completion, of Anthropic's messages or of OpenAI's responses, alone or as the member `body` or `request` next to
//!   a time and headers. Requests are grouped into the conversations they belong to.

mod group;
mod line;
mod members;
mod recorded;
mod time;

pub use line::Defaults;
pub use recorded::Recorded;

use group::Groups;
use line::Format;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use thiserror::Error;

/// Why a file cannot be replayed.
#[derive(Debug, Error)]
pub enum InputError {
    #[error("{file}: cannot be read: {reason}\n  hint: check the path, or use `-` for standard input")]
    Unreadable { file: String, reason: String },
    #[error("{file}:{line}: {reason}\n  hint: {hint}")]
    Line { file: String, line: usize, reason: String, hint: &'static str },
    #[error("{file}: there are no conversations\n  hint: {FORMAT_HINT}")]
    Empty { file: String },
}

pub(crate) const FORMAT_HINT: &str = "each line is a conversation `{\"id\", \"model\", \"messages\"}` or the body of a chat completion; \
    `jq -c . FILE` puts each object on one line, and `jq -c '.[]' FILE` each element of an array";

/// A line of a file, not parsed yet.
#[derive(Debug)]
pub struct InputLine {
    pub(crate) file: Arc<str>,
    pub(crate) line: usize,
    pub(crate) text: Vec<u8>,
}

/// A conversation found in a file.
#[derive(Debug)]
pub enum InputItem {
    /// A line that is a conversation, to be parsed by a worker.
    Line(InputLine),
    /// Grouped from several request lines.
    Conversation(Box<Recorded>),
}

/// Reads a file, or standard input for `-`, and passes each item with its size in bytes to `visit`, which
/// returns whether to continue.
pub fn read_file(
    path: &Path,
    defaults: &Defaults,
    mut visit: impl FnMut(InputItem, u64) -> bool,
) -> Result<(), InputError> {
    let is_stdin = path.as_os_str() == "-";
    let name: Arc<str> = if is_stdin { "standard input".into() } else { path.display().to_string().into() };
    let failed =
        |error: std::io::Error| InputError::Unreadable { file: name.to_string(), reason: error.to_string() };
    let input: Box<dyn Read> =
        if is_stdin { Box::new(std::io::stdin()) } else { Box::new(File::open(path).map_err(failed)?) };
    let mut input = BufReader::with_capacity(1 << 20, input);
    let (mut format, mut groups, mut number) = (None, Groups::default(), 0);
    loop {
        let mut text = Vec::new();
        if input.read_until(b'\n', &mut text).map_err(failed)? == 0 {
            break;
        }
        number += 1;
        let bytes = text.len() as u64;
        if text.trim_ascii().is_empty() {
            continue;
        }
        let line = InputLine { file: name.clone(), line: number, text };
        let format = match format {
            Some(format) => format,
            None => *format.insert(line.detect_format()?),
        };
        match format {
            Format::Conversations => {
                if !visit(InputItem::Line(line), bytes) {
                    return Ok(());
                }
            }
            Format::Requests => groups.add(line.request(defaults)?)?,
        }
    }
    match format {
        None => Err(InputError::Empty { file: name.to_string() }),
        Some(Format::Conversations) => Ok(()),
        Some(Format::Requests) => {
            for conversation in groups.finish() {
                let bytes = conversation.bytes();
                if !visit(InputItem::Conversation(Box::new(conversation)), bytes) {
                    break;
                }
            }
            Ok(())
        }
    }
}

impl InputLine {
    /// A line that does not come from a file.
    #[must_use]
    pub fn new(name: &str, line: usize, text: &str) -> InputLine {
        InputLine { file: name.into(), line, text: text.into() }
    }

    pub(crate) fn error(&self, reason: impl Into<String>, hint: &'static str) -> InputError {
        InputError::Line { file: self.file.to_string(), line: self.line, reason: reason.into(), hint }
    }
}
