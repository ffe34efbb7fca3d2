//! Locates errors in bodies that are not chat completions.

use tidegate_wire::{Outline, Unreadable};

/// A minimal chat completion request.
pub const EXAMPLE: &str = r#"{"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello"}]}"#;

/// Makes the position of a JSON error relative to the body instead of the message that it is in.
#[must_use]
pub fn located(body: &[u8], outline: &Outline, error: Unreadable) -> Unreadable {
    let Unreadable::NotJson { .. } = error else { return error };
    let first = outline.messages.iter().find_map(|span| match outline.dialect.read_message(span.of(body)) {
        Err(Unreadable::NotJson { at }) => Some(Unreadable::NotJson { at: span.range().start + at }),
        _ => None,
    });
    first.unwrap_or(error)
}

/// Returns the line and column of an error for display, or an empty string if it has no position.
#[must_use]
pub fn place(body: &[u8], error: &Unreadable) -> String {
    let Unreadable::NotJson { at } = error else { return String::new() };
    let before = &body[..(*at).min(body.len())];
    let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
    let column = before.iter().rev().take_while(|&&byte| byte != b'\n').count() + 1;
    format!(" (line {line}, column {column})")
}
