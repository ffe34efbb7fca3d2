//! Bodies that are no chat completion: what is wrong, where, and what the proxy would do with them.

use super::{REFUSED, say};
use std::process::ExitCode;
use tidegate_wire::{Outline, Unreadable, read_message};

const EXAMPLE: &str = r#"{"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello"}]}"#;

/// An error for what is no request, a refusal for what the proxy refuses too.
pub(super) fn outcome(name: &str, body: &[u8], error: &Unreadable) -> anyhow::Result<ExitCode> {
    let place = match error {
        Unreadable::NotJson { at } => place(body, *at),
        _ => String::new(),
    };
    if *error == Unreadable::DuplicateMessages {
        say(&format!("{name}: would be refused with 400 ambiguous_request: {error}\n  hint: send it once"));
        return Ok(ExitCode::from(REFUSED));
    }
    anyhow::bail!(
        "{name}: not the body of a chat completion: {error}{place}\n  \
         hint: one looks like {EXAMPLE}; the proxy would forward this one as it came"
    )
}

/// The same error, counted from the start of the body where it was found inside a message.
pub(super) fn located(body: &[u8], outline: &Outline, error: Unreadable) -> Unreadable {
    let Unreadable::NotJson { .. } = error else { return error };
    let first = outline.messages.iter().find_map(|span| match read_message(span.of(body)) {
        Err(Unreadable::NotJson { at }) => Some(Unreadable::NotJson { at: span.range().start + at }),
        _ => None,
    });
    first.unwrap_or(error)
}

fn place(body: &[u8], at: usize) -> String {
    let before = &body[..at.min(body.len())];
    let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
    let column = before.iter().rev().take_while(|&&byte| byte != b'\n').count() + 1;
    format!(" (line {line}, column {column})")
}
