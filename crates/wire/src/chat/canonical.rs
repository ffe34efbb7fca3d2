use crate::field_hasher::FieldHasher;
use crate::{Content, FunctionCall, MessageView, Part};

/// Hashes the meaning of a message, independent of its JSON spelling.
///
/// These count: role, content, refusal, name, tool calls (id, type, name, arguments) and the id of the answered call. These do not:
/// key order, white space, escapes, unknown members and the `observation` tag. A `null` member and an empty list of calls equal an
/// absent one, because the same SDK writes one in one version and the other in the next. A list with a single text part equals the
/// text alone: clients turn one into the other to attach a `cache_control`, and the model sees the same. A part of an unknown kind
/// counts as its bytes.
///
/// Decisions are stored under these hashes, so changing the format orphans every stored conversation.
pub(super) fn canonical_hash(view: &MessageView<'_>) -> [u8; 32] {
    let mut hasher = FieldHasher::new(b"tidegate message 1\n");
    hasher.optional(b'r', view.role.as_deref());
    hasher.optional(b'n', view.name.as_deref());
    hasher.optional(b'f', view.refusal.as_deref());
    hasher.optional(b'a', view.tool_call_id.as_deref());
    match &view.content {
        Content::Absent | Content::Null => {}
        Content::Text(text) => hasher.field(b't', text.as_bytes()),
        Content::Parts(parts) => match &parts[..] {
            [Part::Text(text)] => hasher.field(b't', text.as_bytes()),
            parts => {
                hasher.count(b'p', parts.len());
                parts.iter().for_each(|part| hash_part(&mut hasher, part));
            }
        },
        Content::Unexpected(raw) => hasher.field(b'o', raw),
    }
    for call in &view.tool_calls {
        hasher.field(b'c', call.kind.as_deref().unwrap_or("function").as_bytes());
        hasher.optional(b'i', call.id.as_deref());
        hash_function(&mut hasher, &call.function);
    }
    if let Some(function) = &view.function_call {
        hasher.field(b'l', b"");
        hash_function(&mut hasher, function);
    }
    for (key, raw) in &view.unexpected {
        hasher.field(b'k', key.as_bytes());
        hasher.field(b'o', raw);
    }
    hasher.finish()
}

fn hash_function(hasher: &mut FieldHasher, function: &FunctionCall<'_>) {
    hasher.field(b'm', function.name.as_bytes());
    hasher.field(b'g', function.arguments.as_bytes());
}

fn hash_part(hasher: &mut FieldHasher, part: &Part<'_>) {
    match part {
        Part::Text(text) => hasher.field(b'T', text.as_bytes()),
        Part::Refusal(text) => hasher.field(b'R', text.as_bytes()),
        Part::Image { url, detail } => {
            hasher.field(b'I', url.as_bytes());
            hasher.optional(b'd', detail.as_deref());
        }
        Part::Audio { data, format } => {
            hasher.field(b'A', data.as_bytes());
            hasher.optional(b'd', format.as_deref());
        }
        Part::File { id, name, data } => {
            hasher.field(b'F', b"");
            hasher.optional(b'1', id.as_deref());
            hasher.optional(b'2', name.as_deref());
            hasher.optional(b'3', data.as_deref());
        }
        Part::Other(raw) => hasher.field(b'O', raw),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dialect;
    use crate::field_hasher::MAX_PENDING;

    fn hash(json: &str) -> [u8; 32] {
        canonical_hash(&Dialect::Chat.read_message(json.as_bytes()).unwrap())
    }

    #[test]
    fn the_spelling_does_not_change_the_hash() {
        let plain = hash(r#"{"role":"user","content":"aé/\n"}"#);
        for same in [
            r#"{ "content" : "a\u00e9\/\u000a", "role":"us\u0065r" }"#,
            r#"{"role":"user","content":"aé/\n","name":null,"tool_calls":[],"x":{"y":1},"refusal":null}"#,
            r#"{"role":"user","observation":{"type":"tool_output"},"content":"aé/\n"}"#,
            r#"{"role":"user","content":[{"type":"text","text":"aé/\n"}]}"#,
            r#"{"role":"user","content":[{"cache_control":{"type":"ephemeral"},"type":"text","text":"aé/\n"}]}"#,
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
    fn every_meaningful_difference_changes_the_hash() {
        let messages = [
            r#"{}"#,
            r#"{"role":"user"}"#,
            r#"{"role":5}"#,
            r#"{"role":"5"}"#,
            r#"{"role":"user","content":""}"#,
            r#"{"role":"user","content":"x"}"#,
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
    fn buffering_does_not_change_the_hash() {
        for length in [10, 100, 1000, 5000, MAX_PENDING - 60, MAX_PENDING, MAX_PENDING + 1, 3 * MAX_PENDING] {
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
}
