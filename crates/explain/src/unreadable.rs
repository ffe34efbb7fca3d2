//! Bodies that are no chat completion: what is wrong, and where.

use tidegate_wire::{Outline, Unreadable};

/// What one looks like.
pub const EXAMPLE: &str = r#"{"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello"}]}"#;

/// The same error, counted from the start of the body where it was found inside a message.
#[must_use]
pub fn located(body: &[u8], outline: &Outline, error: Unreadable) -> Unreadable {
    let Unreadable::NotJson { .. } = error else { return error };
    let first = outline.messages.iter().find_map(|span| match outline.dialect.read_message(span.of(body)) {
        Err(Unreadable::NotJson { at }) => Some(Unreadable::NotJson { at: span.range().start + at }),
        _ => None,
    });
    first.unwrap_or(error)
}

/// Where that is, for people; nothing where it is everywhere.
#[must_use]
pub fn place(body: &[u8], error: &Unreadable) -> String {
    let Unreadable::NotJson { at } = error else { return String::new() };
    let before = &body[..(*at).min(body.len())];
    let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
    let column = before.iter().rev().take_while(|&&byte| byte != b'\n').count() + 1;
    format!(" (line {line}, column {column})")
}
