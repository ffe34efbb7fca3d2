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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_our_own_messages_are_fixed() {
        assert_eq!(own_message(OwnRole::User, "a \"b\"\né"), r#"{"content":"a \"b\"\né","role":"user"}"#);
        assert_eq!(own_message(OwnRole::System, ""), r#"{"content":"","role":"system"}"#);
    }
}
