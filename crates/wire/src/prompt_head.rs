//! What the prompt begins with: tools, and the instructions before the first other message.
//!
//! After another head, a provider finds nothing of a conversation in its cache. Cache markers are no part of it: clients move them, and the
//! model does not see them.

use crate::cursor::{Member, Value};
use crate::envelope::{attribution, without};
use crate::reader::ParsedMessage;
use crate::{Extra, ExtraKind, MAX_DEPTH, Outline, Span, Unreadable};
use std::borrow::Cow;
use std::sync::Arc;
use tidegate_engine::CacheKey;
use twox_hash::XxHash3_128;

const CACHE_CONTROL: &str = "cache_control";

/// What the provider's cache is looked up by, the same in every process.
pub(crate) fn cache_key(body: &[u8], outline: &Outline, parsed: &[Arc<ParsedMessage>]) -> CacheKey {
    // No model is the one without a name.
    let model = hash(outline.model.as_deref().unwrap_or_default().as_bytes()).max(1);
    let instructions = parsed.iter().take_while(|message| message.facts.role.is_instruction());
    let head =
        instructions.map(|message| hash(&message.facts.canonical)).fold(extras_head(body, outline), add);
    CacheKey { model, head }
}

/// A hash of what stands before all messages in the prompt, as far as the model sees it. Tools come first in every provider's prompt, then
/// the instructions.
#[must_use]
pub fn extras_head(body: &[u8], outline: &Outline) -> u64 {
    let extras = outline.extras.iter().map(|extra| {
        let raw = unmarked(extra, body);
        match attribution(&raw).filter(|_| extra.kind == ExtraKind::Instructions) {
            Some(block) => hash(&without(&raw, block)),
            None => hash(&raw),
        }
    });
    extras.fold(0, add)
}

fn hash(bytes: &[u8]) -> u64 {
    XxHash3_128::oneshot(bytes) as u64
}

fn add(head: u64, part: u64) -> u64 {
    (head.rotate_left(29) ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The value without its cache markers. Instructions that are one block of text are that text: clients make a block of it to mark it.
pub(crate) fn unmarked<'a>(extra: &Extra, body: &'a [u8]) -> Cow<'a, [u8]> {
    let raw = extra.span.of(body);
    let is_list = raw.first() == Some(&b'[');
    let is_marked = || memchr::memmem::find(raw, CACHE_CONTROL.as_bytes()).is_some();
    match extra.kind {
        ExtraKind::Instructions if is_list => match lone_text(raw) {
            Some(text) if attribution(raw).is_none() => text.of(raw).into(),
            _ if is_marked() => without_markers(raw),
            _ => raw.into(),
        },
        ExtraKind::Tools if is_list && is_marked() => without_markers(raw),
        ExtraKind::Tools | ExtraKind::Instructions | ExtraKind::ResponseFormat => raw.into(),
    }
}

/// The string in a list of one block that is nothing but a text.
fn lone_text(list: &[u8]) -> Option<Span> {
    let (mut blocks, mut text, mut is_plain) = (0, None, true);
    let read = Value::whole(list, MAX_DEPTH).elements(|block| {
        blocks += 1;
        block.members_of_object(|key, value| {
            match key {
                "text" => text = Some(value.span()).filter(|_| value.first() == Some(b'"')),
                "type" => is_plain &= value.raw() == br#""text""#,
                CACHE_CONTROL => {}
                _ => is_plain = false,
            }
            Ok(())
        })
    });
    text.filter(|_| read.is_ok() && blocks == 1 && is_plain)
}

/// A list without the markers of its elements, or of the functions in them. A parameter of a tool may have the same name.
fn without_markers(list: &[u8]) -> Cow<'_, [u8]> {
    let mut markers = Vec::new();
    let read = Value::whole(list, MAX_DEPTH).elements(|element| find_markers(element, list, &mut markers));
    if read.is_err() || markers.is_empty() {
        return list.into();
    }
    markers.sort_unstable_by_key(|marker| marker.start);
    let (mut rest, mut next) = (Vec::with_capacity(list.len()), 0);
    for marker in markers {
        rest.extend_from_slice(list.get(next..marker.start).unwrap_or_default());
        next = marker.end;
    }
    rest.extend_from_slice(&list[next..]);
    rest.into()
}

fn find_markers(
    object: Value<'_>,
    list: &[u8],
    markers: &mut Vec<std::ops::Range<usize>>,
) -> Result<(), Unreadable> {
    if object.first() != Some(b'{') {
        return Ok(());
    }
    object.members(|Member { key, key_at, value }| {
        match &*key {
            CACHE_CONTROL => markers.push(member(list, key_at, value.span().range().end)),
            "function" => find_markers(value, list, markers)?,
            _ => {}
        }
        Ok(())
    })
}

/// A member with the comma before it or, if it is the first one, behind it.
fn member(list: &[u8], start: usize, end: usize) -> std::ops::Range<usize> {
    let before = list[..start].trim_ascii_end();
    if before.ends_with(b",") {
        return before.len() - 1..end;
    }
    let after = list[end..].trim_ascii_start();
    match after.strip_prefix(b",") {
        Some(next) => start..list.len() - next.trim_ascii_start().len(),
        None => start..end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dialect, split};

    fn head(dialect: Dialect, rest: &str) -> u64 {
        let body = format!(r#"{{"model":"m","messages":[],{rest}}}"#);
        extras_head(body.as_bytes(), &split(dialect, body.as_bytes()).unwrap())
    }

    #[test]
    fn markers_are_cut_out_of_any_place() {
        let plain = r#"[{"name": "a", "x": [1]}, {"function": {"name": "b"}}]"#;
        for marked in [
            r#"[{"name": "a", "x": [1], "cache_control": {"type": "ephemeral"}}, {"function": {"name": "b"}}]"#,
            r#"[{"name": "a", "cache_control": null, "x": [1]}, {"function": {"name": "b"}}]"#,
            r#"[{"cache_control": {}, "name": "a", "x": [1]}, {"function": {"name": "b"}, "cache_control": {}}]"#,
            r#"[{"name": "a", "x": [1]}, {"function": {"name": "b", "cache_control": {"ttl": "1h"}}}]"#,
            plain,
        ] {
            assert_eq!(without_markers(marked.as_bytes()), plain.as_bytes(), "{marked}");
        }
        assert_eq!(&*without_markers(br#"[{"cache_control":{}}]"#), b"[{}]");
        for other in [r#"[{"parameters":{"properties":{"cache_control":{}}}}]"#, "[5", r#"["cache_control"]"#]
        {
            assert_eq!(without_markers(other.as_bytes()), other.as_bytes());
        }
    }

    #[test]
    fn a_client_that_moves_its_markers_leaves_the_head_alone() {
        const MARKER: &str = r#","cache_control":{"type":"ephemeral"}"#;
        let tools = |first: &str, second: &str, name: &str| {
            let tools = format!(r#""tools":[{{"name":"{name}"{first}}},{{"name":"b"{second}}}]"#);
            [Dialect::Chat, Dialect::Messages].map(|dialect| head(dialect, &tools))
        };
        let plain = tools("", "", "a");
        assert_eq!(tools(MARKER, "", "a"), plain);
        assert_eq!(tools("", MARKER, "a"), plain);
        assert_ne!(tools("", MARKER, "c"), plain);
        let system = |value: &str| head(Dialect::Messages, &format!(r#""system":{value}"#));
        let block = |text: &str, marker: &str| format!(r#"{{"type":"text","text":"{text}"{marker}}}"#);
        let list = |first: &str, second: &str| {
            system(&format!("[{},{}]", block("Be brief.", first), block("Be kind.", second)))
        };
        assert_eq!(list(MARKER, ""), list("", MARKER));
        assert_ne!(list(MARKER, ""), system(&format!("[{}]", block("Be brief.", MARKER))));
        let plain = system(r#""Be brief.""#);
        for marker in ["", MARKER] {
            assert_eq!(system(&format!("[{}]", block("Be brief.", marker))), plain, "{marker}");
        }
        assert_ne!(system(&format!("[{}]", block("Be kind.", MARKER))), plain);
    }
}
