use crate::OwnRole;
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

/// The same message with a cache marker, which needs a text part to stand in. `json` is one of [`own_message`]'s.
pub(crate) fn with_breakpoint(json: &Bytes, marker: &[u8]) -> Bytes {
    let text = json.strip_prefix(CONTENT).zip(memchr::memmem::rfind(json, ROLE));
    let Some((_, role_at)) = text else { return json.clone() };
    let text = &json[CONTENT.len()..role_at];
    let part = [br#"[{"type":"text","text":"#, text, br#","cache_control":"#, marker, b"}]"].concat();
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
        let marked =
            with_breakpoint(&own_message(OwnRole::User, r#"x,"role":"#), b"{\"type\":\"ephemeral\"}");
        assert_eq!(
            marked,
            r#"{"content":[{"type":"text","text":"x,\"role\":","cache_control":{"type":"ephemeral"}}],"role":"user"}"#
        );
    }
}
