use crate::content::{Content, Part};
use crate::{FunctionCall, MessageView};
use std::cell::Cell;
use tidegate_engine::Digest;

/// The digest one message further. Before the first message it is `Digest::default()`.
#[must_use]
pub fn chain(previous: Digest, canonical: &[u8; 32]) -> Digest {
    let mut both = [0; 64];
    both[..32].copy_from_slice(&previous.0);
    both[32..].copy_from_slice(canonical);
    Digest(*blake3::hash(&both).as_bytes())
}

/// The hash of what a message says, whatever its JSON spelling.
///
/// What counts: role, content, refusal, name, tool calls (id, type, name, arguments) and the answered call's id. Key
/// order, white space, escapes, unknown members and the `observation` tag do not. A member that is `null`, and an empty
/// list of calls, is the same as none, because the same SDK writes it one way in one version and the other way in the
/// next. A text and a list with one part of that text differ: providers tokenize them alike but not always, and a
/// client does not switch in the middle of a conversation. A part of an unknown kind counts as its bytes.
///
/// Decisions are stored under these hashes, so a change of the format orphans every stored conversation.
#[must_use]
pub fn canonical_hash(view: &MessageView<'_>) -> [u8; 32] {
    let mut frame = Frame::new();
    frame.bytes(b"tidegate message 1\n");
    frame.optional(b'r', view.role.as_deref());
    frame.optional(b'n', view.name.as_deref());
    frame.optional(b'f', view.refusal.as_deref());
    frame.optional(b'a', view.tool_call_id.as_deref());
    match &view.content {
        Content::Absent | Content::Null => {}
        Content::Text(text) => frame.field(b't', text.as_bytes()),
        Content::Parts(parts) => {
            frame.count(b'p', parts.len());
            parts.iter().for_each(|part| frame.part(part));
        }
        Content::Odd(raw) => frame.field(b'o', raw),
    }
    for call in &view.tool_calls {
        frame.field(b'c', call.kind.as_deref().unwrap_or("function").as_bytes());
        frame.optional(b'i', call.id.as_deref());
        frame.function(&call.function);
    }
    if let Some(function) = &view.function_call {
        frame.field(b'l', b"");
        frame.function(function);
    }
    for (key, raw) in &view.odd {
        frame.field(b'k', key.as_bytes());
        frame.field(b'o', raw);
    }
    frame.finish()
}

/// Every field is written as its tag, its length and its bytes, so that no two different messages are framed alike.
///
/// The hash takes several kilobytes at once in half the time that it takes them one by one, but only from where a kilobyte
/// of the frame begins, and the short fields come before the long ones. So fields are collected first.
struct Frame {
    hasher: blake3::Hasher,
    pending: Vec<u8>,
}

/// A field larger than this is hashed where it is: where it begins matters little then, and a copy of an image would.
const MOST_PENDING: usize = 64 << 10;

thread_local! {
    /// One buffer for all frames of a thread: one for every message makes hashing a sixth slower.
    static PENDING: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

impl Frame {
    fn new() -> Frame {
        let mut pending = PENDING.take();
        pending.clear();
        Frame { hasher: blake3::Hasher::new(), pending }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        if self.pending.len() + bytes.len() > MOST_PENDING {
            self.hasher.update(&self.pending);
            self.pending.clear();
        }
        if bytes.len() > MOST_PENDING {
            self.hasher.update(bytes);
        } else {
            self.pending.extend_from_slice(bytes);
        }
    }

    fn finish(mut self) -> [u8; 32] {
        let hash = *self.hasher.update(&self.pending).finalize().as_bytes();
        PENDING.set(self.pending);
        hash
    }

    fn field(&mut self, tag: u8, bytes: &[u8]) {
        self.count(tag, bytes.len());
        self.bytes(bytes);
    }

    fn count(&mut self, tag: u8, count: usize) {
        let mut head = [tag; 9];
        head[1..].copy_from_slice(&(count as u64).to_le_bytes());
        self.bytes(&head);
    }

    fn optional(&mut self, tag: u8, text: Option<&str>) {
        if let Some(text) = text {
            self.field(tag, text.as_bytes());
        }
    }

    fn function(&mut self, function: &FunctionCall<'_>) {
        self.field(b'm', function.name.as_bytes());
        self.field(b'g', function.arguments.as_bytes());
    }

    fn part(&mut self, part: &Part<'_>) {
        match part {
            Part::Text(text) => self.field(b'T', text.as_bytes()),
            Part::Refusal(text) => self.field(b'R', text.as_bytes()),
            Part::Image { url, detail } => {
                self.field(b'I', url.as_bytes());
                self.optional(b'd', detail.as_deref());
            }
            Part::Audio { data, format } => {
                self.field(b'A', data.as_bytes());
                self.optional(b'd', format.as_deref());
            }
            Part::File { id, name, data } => {
                self.field(b'F', b"");
                self.optional(b'1', id.as_deref());
                self.optional(b'2', name.as_deref());
                self.optional(b'3', data.as_deref());
            }
            Part::Other(raw) => self.field(b'O', raw),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read_message;

    fn hash(json: &str) -> [u8; 32] {
        canonical_hash(&read_message(json.as_bytes()).unwrap())
    }

    #[test]
    fn the_spelling_does_not_count() {
        let plain = hash(r#"{"role":"user","content":"aé/\n"}"#);
        for same in [
            r#"{ "content" : "a\u00e9\/\u000a", "role":"us\u0065r" }"#,
            r#"{"role":"user","content":"aé/\n","name":null,"tool_calls":[],"x":{"y":1},"refusal":null}"#,
            r#"{"role":"user","observation":{"type":"tool_output"},"content":"aé/\n"}"#,
        ] {
            assert_eq!(hash(same), plain, "{same}");
        }
        assert_eq!(
            hash(
                r#"{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}"#
            ),
            hash(
                r#"{"content":null,"tool_calls":[{"function":{"arguments":"{}","name":"f"},"type":"function","id":"a"}],
                    "role":"assistant"}"#
            ),
        );
    }

    #[test]
    fn everything_that_is_said_counts() {
        let messages = [
            r#"{}"#,
            r#"{"role":"user"}"#,
            r#"{"role":5}"#,
            r#"{"role":"5"}"#,
            r#"{"role":"user","content":""}"#,
            r#"{"role":"user","content":"x"}"#,
            r#"{"role":"user","content":[{"type":"text","text":"x"}]}"#,
            r#"{"role":"user","content":[{"type":"text","text":""},{"type":"text","text":"x"}]}"#,
            r#"{"role":"user","content":[]}"#,
            r#"{"role":"user","content":"x","name":"n"}"#,
            r#"{"role":"user","content":"x","tool_call_id":"n"}"#,
            r#"{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}"#,
            r#"{"role":"user","content":[{"type":"image_url","image_url":{"url":"x","detail":"low"}}]}"#,
            r#"{"role":"user","content":[{"type":"file","file":{"file_id":"x"}}]}"#,
            r#"{"role":"user","content":[{"type":"file","file":{"filename":"x"}}]}"#,
            r#"{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"x"}}]}"#,
            r#"{"tool_calls":[{"id":"a","function":{"name":"fx","arguments":""}}]}"#,
            r#"{"tool_calls":[{"function":{"name":"f","arguments":"x"}}]}"#,
            r#"{"function_call":{"name":"f","arguments":"x"}}"#,
        ];
        for (i, one) in messages.iter().enumerate() {
            for other in &messages[..i] {
                assert_ne!(hash(one), hash(other), "{one} {other}");
            }
        }
    }

    #[test]
    fn what_is_collected_first_does_not_count() {
        for length in [0, 1, 1000, 5000, MOST_PENDING - 60, MOST_PENDING, MOST_PENDING + 1, 3 * MOST_PENDING]
        {
            let text = "x".repeat(length);
            let parts = r#"{"type":"text","text":"y"},"#.repeat(length / 10);
            let mut framed = b"tidegate message 1\n".to_vec();
            let field =
                |tag: u8, bytes: &[u8]| [&[tag], &(bytes.len() as u64).to_le_bytes()[..], bytes].concat();
            framed.extend(field(b'r', b"user"));
            framed.extend(field(b'f', text.as_bytes()));
            framed.extend([b"p", &(length as u64 / 10 + 1).to_le_bytes()[..]].concat());
            framed.extend(field(b'T', b"y").repeat(length / 10));
            framed.extend(field(b'T', text.as_bytes()));
            let json = format!(
                r#"{{"role":"user","refusal":"{text}","content":[{parts}{{"type":"text","text":"{text}"}}]}}"#
            );
            assert_eq!(hash(&json), *blake3::hash(&framed).as_bytes(), "{length}");
        }
    }

    #[test]
    fn the_chain_depends_on_order() {
        let (a, b) = ([1; 32], [2; 32]);
        let forth = chain(chain(Digest::default(), &a), &b);
        assert_ne!(forth, chain(chain(Digest::default(), &b), &a));
    }
}
