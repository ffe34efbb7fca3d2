use super::CACHE_CONTROL;
use crate::Unreadable;
use crate::cursor::Value;
use crate::field_hasher::FieldHasher;
use crate::json_hash::{hash_json, sorted_members};
use std::borrow::Cow;

/// Hashes the meaning of a message, independent of its JSON spelling.
///
/// White space, escapes, cache markers and unknown members of the message do not count, and a `null` member equals an absent one. A list
/// with a single text block equals the text alone, also in the content of a tool result: clients turn one into the other to attach a
/// marker, and the model sees the same. Everything else of a block counts, whatever its type.
///
/// Decisions are stored under these hashes, so changing the format orphans every stored conversation.
pub(super) fn canonical_hash(role: Option<&str>, content: Option<Value<'_>>) -> Result<[u8; 32], Unreadable> {
    let mut hasher = FieldHasher::new(b"tidegate messages 1\n");
    hasher.optional(b'r', role);
    if let Some(content) = content {
        hash_content(&mut hasher, content)?;
    }
    Ok(hasher.finish())
}

fn hash_content(hasher: &mut FieldHasher, content: Value<'_>) -> Result<(), Unreadable> {
    if let Some(text) = lone_text(content)? {
        hasher.field(b't', text.as_bytes());
        return Ok(());
    }
    if content.first() != Some(b'[') {
        return hash_json(hasher, content);
    }
    hasher.field(b'p', b"");
    content.elements(|block| hash_block(hasher, block))?;
    hasher.field(b'e', b"");
    Ok(())
}

/// The text of a string, or of a list with one block that is nothing but text.
fn lone_text(content: Value<'_>) -> Result<Option<Cow<'_, str>>, Unreadable> {
    if content.first() != Some(b'[') {
        return content.text();
    }
    let (mut blocks, mut text) = (0, None);
    content.elements(|block| {
        blocks += 1;
        let (mut is_text, mut is_plain) = (false, true);
        block.members_of_object(|key, value| {
            match key {
                "type" => is_text = value.text()?.as_deref() == Some("text"),
                "text" => text = value.text()?,
                CACHE_CONTROL => {}
                _ => is_plain &= value.raw() == b"null",
            }
            Ok(())
        })?;
        text = text.take().filter(|_| is_text && is_plain);
        Ok(())
    })?;
    Ok(text.filter(|_| blocks == 1))
}

fn hash_block(hasher: &mut FieldHasher, block: Value<'_>) -> Result<(), Unreadable> {
    if block.first() != Some(b'{') {
        return hash_json(hasher, block);
    }
    hasher.field(b'b', b"");
    let members = sorted_members(block)?;
    let is_result = members.iter().any(|(key, value)| key == "type" && value.raw() == br#""tool_result""#);
    for (key, value) in members {
        if key == CACHE_CONTROL || value.raw() == b"null" {
            continue;
        }
        hasher.field(b'k', key.as_bytes());
        if is_result && key == "content" {
            hash_content(hasher, value)?;
        } else {
            hash_json(hasher, value)?;
        }
    }
    hasher.field(b'e', b"");
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::Dialect;

    fn hash(json: &str) -> [u8; 32] {
        Dialect::Messages.read_facts(json.as_bytes()).unwrap().canonical
    }

    #[test]
    fn the_spelling_and_the_markers_do_not_change_the_hash() {
        let plain = hash(r#"{"role":"user","content":"aé"}"#);
        for same in [
            r#"{ "content" : "a\u00e9", "role":"us\u0065r" }"#,
            r#"{"role":"user","content":[{"type":"text","text":"aé"}]}"#,
            r#"{"role":"user","content":[{"cache_control":{"type":"ephemeral"},"text":"aé","type":"text","citations":null}]}"#,
        ] {
            assert_eq!(hash(same), plain, "{same}");
        }
        let result = hash(
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"x"},{"type":"text","text":"y"}]}"#,
        );
        assert_eq!(
            hash(
                r#"{"role":"user","content":[{"tool_use_id":"t","type":"tool_result","cache_control":{"type":"ephemeral"},
                "content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}]}, {"type":"text","text":"\u0079"}]}"#
            ),
            result
        );
        assert_eq!(
            hash(
                r#"{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{"a": [1, 2]}}]}"#
            ),
            hash(
                r#"{"role":"assistant","content":[{"id":"t","type":"tool_use","name":"f","input":{"\u0061":[1,2]}}]}"#
            ),
        );
    }

    #[test]
    fn every_meaningful_difference_changes_the_hash() {
        let messages = [
            r#"{"role":"user"}"#,
            r#"{"role":"user","content":""}"#,
            r#"{"role":"user","content":[]}"#,
            r#"{"role":"user","content":"x"}"#,
            r#"{"role":"assistant","content":"x"}"#,
            r#"{"role":"user","content":["x"]}"#,
            r#"{"role":"user","content":[{"type":"text","text":"x"},{"type":"text","text":"x"}]}"#,
            r#"{"role":"user","content":[{"type":"text","text":"x","citations":[1]}]}"#,
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"x"}]}"#,
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"x","is_error":true}]}"#,
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"u","content":"x"}]}"#,
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t"}]}"#,
            r#"{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{"a":[1,2]}}]}"#,
            r#"{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{"a":[1],"2":2}}]}"#,
            r#"{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"a"}]}"#,
            r#"{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"b"}]}"#,
        ];
        for (i, one) in messages.iter().enumerate() {
            for other in &messages[..i] {
                assert_ne!(hash(one), hash(other), "{one} {other}");
            }
        }
    }
}
