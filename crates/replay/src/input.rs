//! Recorded conversations in files: which form a file has, and its lines.
//!
//! - A conversation a line: `{"id", "model", "messages", "tools"?}`, also as `tidegate conversations export` writes it.
//! - A request a line: the body of a chat completion, alone or as `body` or `request` beside a time and headers. Requests whose
//!   histories grow are put together again.

mod group;
mod line;
mod members;
mod recorded;
mod time;

pub use line::Defaults;
pub use recorded::Recorded;

use group::Groups;
use line::Form;
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
    #[error("{file}: there is no conversation in it\n  hint: {FORMS}")]
    Empty { file: String },
}

pub(crate) const FORMS: &str = "a line is a conversation `{\"id\", \"model\", \"messages\"}` or the body of a chat completion; \
    `jq -c . FILE` puts each object on one line, and `jq -c '.[]' FILE` each element of an array";

/// A line of a file that is a conversation of its own, not read yet.
#[derive(Debug)]
pub struct Unread {
    pub(crate) file: Arc<str>,
    pub(crate) line: usize,
    pub(crate) text: Vec<u8>,
}

/// What a file holds, piece by piece.
#[derive(Debug)]
pub enum Found {
    /// To be read where there is time for it.
    Line(Unread),
    /// Put together from several lines.
    Conversation(Box<Recorded>),
}

/// Reads a file and gives away what it finds; `-` is standard input. `found` says whether to go on.
pub fn read_file(
    path: &Path,
    defaults: &Defaults,
    mut found: impl FnMut(Found, u64) -> bool,
) -> Result<(), InputError> {
    let is_stdin = path.as_os_str() == "-";
    let name: Arc<str> = if is_stdin { "standard input".into() } else { path.display().to_string().into() };
    let failed =
        |error: std::io::Error| InputError::Unreadable { file: name.to_string(), reason: error.to_string() };
    let input: Box<dyn Read> =
        if is_stdin { Box::new(std::io::stdin()) } else { Box::new(File::open(path).map_err(failed)?) };
    let mut input = BufReader::with_capacity(1 << 20, input);
    let (mut form, mut groups, mut number) = (None, Groups::default(), 0);
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
        let line = Unread { file: name.clone(), line: number, text };
        let form = match form {
            Some(form) => form,
            None => *form.insert(line.form()?),
        };
        match form {
            Form::Conversations => {
                if !found(Found::Line(line), bytes) {
                    return Ok(());
                }
            }
            Form::Requests => groups.add(line.request(defaults)?)?,
        }
    }
    match form {
        None => Err(InputError::Empty { file: name.to_string() }),
        Some(Form::Conversations) => Ok(()),
        Some(Form::Requests) => {
            for conversation in groups.finish() {
                let bytes = conversation.bytes();
                if !found(Found::Conversation(Box::new(conversation)), bytes) {
                    break;
                }
            }
            Ok(())
        }
    }
}

impl Unread {
    /// A line that is not in a file.
    #[must_use]
    pub fn new(name: &str, line: usize, text: &str) -> Unread {
        Unread { file: name.into(), line, text: text.into() }
    }

    pub(crate) fn wrong(&self, reason: impl Into<String>, hint: &'static str) -> InputError {
        InputError::Line { file: self.file.to_string(), line: self.line, reason: reason.into(), hint }
    }
}
