use super::TEXT_PART;
use crate::content_pieces::PartSpelling;
use crate::{OwnRole, OwnText, Placeholder};
use bytes::Bytes;
use serde::Serialize;

/// The order of the members is fixed: changing it would change forwarded prefixes and miss every provider's prompt cache.
#[derive(Serialize)]
struct OwnMessage<'a> {
    content: &'a str,
    role: &'static str,
}

pub(crate) fn own_message(role: OwnRole, text: &str) -> Bytes {
    let role = match role {
        OwnRole::User => "user",
        OwnRole::System => "system",
    };
    // Two strings: the serializer has no way to fail here.
    let written = serde_json::to_vec(&OwnMessage { content: text, role });
    debug_assert!(written.is_ok());
    written.unwrap_or_default().into()
}

/// The text of a message of [`own_message`]'s, as a JSON string, and where its role follows.
fn text_of(json: &Bytes) -> Option<(Bytes, usize)> {
    let role_at = memchr::memmem::rfind(json, ROLE)?;
    json.starts_with(CONTENT).then(|| (json.slice(CONTENT.len()..role_at), role_at))
}

/// The text of a user message of ours, to be put into a message of the client's.
pub(crate) fn own_text(json: &Bytes, marker: Option<Bytes>) -> Option<OwnText> {
    let (text, role_at) = text_of(json)?;
    let is_user = json[role_at..] == *br#","role":"user"}"#;
    is_user.then_some(OwnText { json: Placeholder(text), breakpoint: marker })
}

/// Two messages of ours as one, in the role of the first.
pub(crate) fn joined(first: &Bytes, second: &Bytes) -> Bytes {
    let (Some((one, role_at)), Some((other, _))) = (text_of(first), text_of(second)) else {
        return first.clone();
    };
    let (one, other) = (&one[..one.len().saturating_sub(1)], other.get(1..).unwrap_or_default());
    [CONTENT, one, br"\n\n", other, &first[role_at..]].concat().into()
}

/// The same message with a cache marker, which needs a text part to stand in. `json` is one of [`own_message`]'s.
pub(crate) fn with_breakpoint(json: &Bytes, marker: &[u8]) -> Bytes {
    with_part(json, marker, &TEXT_PART)
}

/// The same in another spelling of the part.
pub(crate) fn with_part(json: &Bytes, marker: &[u8], spelling: &PartSpelling) -> Bytes {
    let Some((text, role_at)) = text_of(json) else { return json.clone() };
    let text = &text[..];
    let part = [b"[", spelling.text, text, spelling.marker, marker, b"}]"].concat();
    [CONTENT, &part, &json[role_at..]].concat().into()
}

const CONTENT: &[u8] = br#"{"content":"#;
const ROLE: &[u8] = br#","role":"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_our_own_messages_are_fixed() {
        assert_eq!(own_message(OwnRole::User, "a \"b\"\né"), r#"{"content":"a \"b\"\né","role":"user"}"#);
        assert_eq!(own_message(OwnRole::System, ""), r#"{"content":"","role":"system"}"#);
        let two = joined(&own_message(OwnRole::User, "a"), &own_message(OwnRole::User, "b"));
        assert_eq!(two, r#"{"content":"a\n\nb","role":"user"}"#);
        assert_eq!(own_text(&own_message(OwnRole::User, "a"), None), Some(OwnText::new("a", None)));
        assert_eq!(own_text(&own_message(OwnRole::System, "a"), None), None);
        let marked =
            with_breakpoint(&own_message(OwnRole::User, r#"x,"role":"#), b"{\"type\":\"ephemeral\"}");
        assert_eq!(
            marked,
            r#"{"content":[{"type":"text","text":"x,\"role\":","cache_control":{"type":"ephemeral"}}],"role":"user"}"#
        );
    }
}
