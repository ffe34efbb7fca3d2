use super::BREAKPOINT;
use super::item::Item;
use crate::Unreadable;
use crate::cursor::Value;
use crate::field_hasher::FieldHasher;
use crate::json_hash::{hash_json, sorted_members};
use std::borrow::Cow;

/// Hashes the meaning of a message, independent of its JSON spelling.
///
/// These do not count: white space, escapes, the order of members, members that are `null`, cache markers, the ids and states that the
/// provider gives its items, annotations and probabilities, and reasoning, which clients may send back or leave out. A lone text part
/// equals the text alone. Everything else of an item counts, whatever its type.
///
/// Decisions are stored under these hashes, so changing the format orphans every stored conversation.
pub(super) struct Canonical(FieldHasher);

impl Canonical {
    pub(super) fn new() -> Canonical {
        Canonical(FieldHasher::new(b"tidegate responses 1\n"))
    }

    pub(super) fn finish(self) -> [u8; 32] {
        self.0.finish()
    }

    /// A message with a role.
    pub(super) fn message(&mut self, role: &str, content: Option<Value<'_>>) -> Result<(), Unreadable> {
        self.0.field(b'r', role.as_bytes());
        content.map_or(Ok(()), |content| hash_content(&mut self.0, content))
    }

    pub(super) fn item(&mut self, item: &Item<'_>) -> Result<(), Unreadable> {
        let kind = item.kind();
        match kind {
            "reasoning" => return Ok(()),
            "message" => return self.message(item.role.as_deref().unwrap_or_default(), item.content),
            _ => {}
        }
        self.0.field(b'i', kind.as_bytes());
        for (key, value) in sorted_members(item.value)? {
            let is_said = match key.as_str() {
                "type" | "status" => false,
                "id" => kind == "item_reference" || (kind.ends_with("_output") && item.call_id.is_none()),
                _ => value.raw() != b"null",
            };
            if !is_said {
                continue;
            }
            self.0.field(b'k', key.as_bytes());
            if key == "output" {
                hash_content(&mut self.0, value)?;
            } else {
                hash_json(&mut self.0, value)?;
            }
        }
        self.0.field(b'e', b"");
        Ok(())
    }
}

fn hash_content(hasher: &mut FieldHasher, content: Value<'_>) -> Result<(), Unreadable> {
    if content.first() != Some(b'[') {
        return match content.text()? {
            Some(text) => {
                hasher.field(b't', text.as_bytes());
                Ok(())
            }
            None => hash_json(hasher, content),
        };
    }
    let mut parts = Vec::new();
    content.elements(|part| {
        parts.push((part, text_of(part)?));
        Ok(())
    })?;
    if let [(_, Some(text))] = &parts[..] {
        hasher.field(b't', text.as_bytes());
        return Ok(());
    }
    hasher.count(b'p', parts.len());
    for (part, text) in parts {
        match text {
            Some(text) => hasher.field(b'T', text.as_bytes()),
            None => hash_part(hasher, part)?,
        }
    }
    Ok(())
}

/// The text of a part that is nothing but text.
fn text_of(part: Value<'_>) -> Result<Option<Cow<'_, str>>, Unreadable> {
    let (mut is_text, mut text) = (false, None);
    part.members_of_object(|key, value| {
        match key {
            "type" => {
                let kind = value.text()?;
                is_text = matches!(kind.as_deref(), Some("input_text" | "output_text" | "text"));
            }
            "text" => text = value.text()?,
            _ => {}
        }
        Ok(())
    })?;
    Ok(text.filter(|_| is_text))
}

fn hash_part(hasher: &mut FieldHasher, part: Value<'_>) -> Result<(), Unreadable> {
    if part.first() != Some(b'{') {
        return hash_json(hasher, part);
    }
    hasher.field(b'b', b"");
    for (key, value) in sorted_members(part)? {
        if key != BREAKPOINT && value.raw() != b"null" {
            hasher.field(b'k', key.as_bytes());
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
        Dialect::Responses.read_facts(json.as_bytes()).unwrap().canonical
    }

    #[test]
    fn what_a_model_sees_the_same_has_the_same_hash() {
        for (one, other) in [
            (r#"{"role":"user","content":"aé"}"#, r#""a\u00e9""#),
            (
                r#"{"role":"user","content":"a"}"#,
                r#"{"type":"message","content":[{"prompt_cache_breakpoint":{"mode":"explicit"},"type":"input_text","text":"a"}],"role":"user"}"#,
            ),
            (
                r#"{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"x"},{"id":"msg_1","type":"message","status":"completed","role":"assistant",
                   "content":[{"type":"output_text","text":"a","annotations":[],"logprobs":[]}]}"#,
                r#"{"role":"assistant","content":"a"}"#,
            ),
            (
                r#"{"type":"function_call","id":"fc_1","status":"completed","call_id":"c","name":"f","arguments":"{}"}"#,
                r#"{"arguments":"{}","call_id":"c","name":"f","namespace":null,"type":"function_call"}"#,
            ),
            (
                r#"{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"a"}]}"#,
                r#"{"output":"a","call_id":"c","type":"function_call_output","id":"fco_1"}"#,
            ),
        ] {
            assert_eq!(hash(one), hash(other), "{one} {other}");
        }
    }

    #[test]
    fn every_meaningful_difference_changes_the_hash() {
        let messages = [
            r#"{"role":"user"}"#,
            r#"{"role":"user","content":""}"#,
            r#"{"role":"user","content":[]}"#,
            r#"{"role":"user","content":"x"}"#,
            r#"{"role":"assistant","content":"x"}"#,
            r#"{"role":"assistant","content":"x"},{"role":"assistant","content":"x"}"#,
            r#"{"role":"user","content":[{"type":"input_text","text":"x"},{"type":"input_text","text":"x"}]}"#,
            r#"{"role":"user","content":[{"type":"input_image","image_url":"x"}]}"#,
            r#"{"role":"user","content":[{"type":"input_image","image_url":"y"}]}"#,
            r#"{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}"#,
            r#"{"type":"function_call","call_id":"d","name":"f","arguments":"{}"}"#,
            r#"{"type":"function_call","call_id":"c","name":"g","arguments":"{}"}"#,
            r#"{"type":"function_call","call_id":"c","name":"f","arguments":"{ }"}"#,
            r#"{"type":"custom_tool_call","call_id":"c","name":"f","input":"{}"}"#,
            r#"{"type":"function_call_output","call_id":"c","output":"x"}"#,
            r#"{"type":"function_call_output","call_id":"c","output":"y"}"#,
            r#"{"type":"local_shell_call_output","id":"c","output":"y"}"#,
            r#"{"type":"local_shell_call_output","id":"d","output":"y"}"#,
            r#"{"type":"item_reference","id":"a"}"#,
            r#"{"type":"item_reference","id":"b"}"#,
            r#"{"type":"web_search_call","action":{"query":"a"}}"#,
            r#"{"type":"web_search_call","action":{"query":"b"}}"#,
        ];
        for (i, one) in messages.iter().enumerate() {
            for other in &messages[..i] {
                assert_ne!(hash(one), hash(other), "{one} {other}");
            }
        }
    }
}
