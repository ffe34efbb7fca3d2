//! Any list of edits over any valid body is either refused or gives a body that parses, in which every message that no
//! edit names is byte-identical.
//!
//! The input is a list of edits, two bytes each, then a newline, then the body.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use std::ops::Range;
use tidegate_wire::{Dialect, Edit, Placeholder, assemble, splice, spliced_len, split};

#[path = "../../../crates/wire/tests/oracle/mod.rs"]
mod oracle;

const NEW: &[u8] = b"{\"role\":\"user\",\"content\":\"new\"}";
const PLACEHOLDER: &str = "[\"gone\"]\n";

/// One message of the edited body.
enum Expected<'a> {
    Untouched(&'a [u8]),
    New,
    Masked,
    Untagged,
}

#[derive(Deserialize)]
struct Content {
    content: String,
}

fuzz_target!(|input: &[u8]| {
    let Some(newline) = input.iter().position(|&byte| byte == b'\n') else { return };
    let (script, body) = (&input[..newline], &input[newline + 1..]);
    let Ok((outline, facts)) = oracle::read_all(body) else { return };
    oracle::check(body, script.iter().fold(1, |seed: u64, &byte| seed.rotate_left(5) ^ u64::from(byte)));

    let edits: Vec<Edit> = script.chunks_exact(2).map(|pair| edit(pair[0], pair[1])).collect();
    let Ok(pieces) = splice(body, &outline, &facts, &edits) else { return };
    let out = assemble(body, &pieces);
    assert_eq!(out.len(), spliced_len(&pieces));
    serde_json::from_slice::<IgnoredAny>(&out).expect("the edited body is valid JSON");

    let after = split(Dialect::Chat, &out).expect("the edited body can be split");
    assert_eq!(out[..after.array.range().start], body[..outline.array.range().start]);
    assert_eq!(out[after.array.range().end..], body[outline.array.range().end..]);

    let messages: Vec<&[u8]> = outline.messages.iter().map(|span| span.of(body)).collect();
    let expected = apply(&messages, &edits);
    assert_eq!(after.messages.len(), expected.len());
    for (span, expected) in after.messages.iter().zip(expected) {
        let got = span.of(&out);
        match expected {
            Expected::Untouched(raw) => assert_eq!(got, raw),
            Expected::New => assert_eq!(got, NEW),
            Expected::Masked => {
                // serde_json refuses some keys that JSON allows, such as lone surrogates.
                if let Ok(message) = serde_json::from_slice::<Content>(got) {
                    assert_eq!(message.content, PLACEHOLDER);
                }
            }
            Expected::Untagged => {
                if let Ok(message) = serde_json::from_slice::<Value>(got) {
                    assert!(message.get("observation").is_none());
                }
            }
        }
    }
});

fn edit(kind: u8, at: u8) -> Edit {
    // Small indexes, because most bodies have few messages; one kind of range ends before it starts.
    let message = usize::from(at & 0x0f);
    let messages = Range { start: message, end: message + usize::from(at >> 4) };
    match kind % 6 {
        0 => Edit::Mask { message, placeholder: Placeholder::new(PLACEHOLDER) },
        1 => Edit::Untag { message },
        2 => Edit::Replace { messages, with: Bytes::from_static(NEW) },
        3 => Edit::Remove { messages },
        4 => Edit::Insert { before: message, with: Bytes::from_static(NEW) },
        _ => Edit::Remove { messages: Range { start: messages.end, end: messages.start } },
    }
}

/// Applies edits that `splice` accepted, message by message.
fn apply<'a>(messages: &[&'a [u8]], edits: &[Edit]) -> Vec<Expected<'a>> {
    let mut out = Vec::new();
    let mut next = 0;
    let mut changed = None;
    for edit in edits {
        let (start, end) = match edit {
            Edit::Mask { message, .. } | Edit::Untag { message } | Edit::Extend { message, .. } => {
                (*message, *message + 1)
            }
            Edit::Replace { messages, .. } | Edit::Remove { messages } => (messages.start, messages.end),
            Edit::Insert { before, .. } => (*before, *before),
        };
        // A mask and an untag of the same message are one change.
        if changed != Some(start) {
            assert!(start >= next && end >= start && end <= messages.len(), "{edit:?} was accepted");
            out.extend(messages[next..start].iter().map(|raw| Expected::Untouched(raw)));
            next = end;
        }
        match edit {
            // None of them extends a message.
            Edit::Mask { message, .. } | Edit::Extend { message, .. } => {
                if changed == Some(*message) {
                    out.pop();
                }
                out.push(Expected::Masked);
                changed = Some(*message);
            }
            Edit::Untag { message } => {
                if changed != Some(*message) {
                    out.push(Expected::Untagged);
                }
                changed = Some(*message);
            }
            Edit::Replace { .. } | Edit::Insert { .. } => out.push(Expected::New),
            Edit::Remove { .. } => {}
        }
    }
    out.extend(messages[next..].iter().map(|raw| Expected::Untouched(raw)));
    out
}
