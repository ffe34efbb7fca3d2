use crate::MAX_DEPTH;
use crate::cursor::Cursor;

/// Who has written an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The model. Such items in a row are one message.
    Model,
    /// The client: the words of a user, instructions, or the result of a call.
    Client,
}

/// Finds out who has written an item, from its type and role. Only these are read: a body is cut before its items are checked.
pub(crate) fn side(item: &[u8]) -> Side {
    let (mut is_message, mut cursor) = (false, Cursor::enter(item, 0, MAX_DEPTH));
    while let Ok(Some((key, _))) = cursor.next_key() {
        let Ok(value) = cursor.value() else { break };
        match &*key {
            "role" => return of_role(value.raw()),
            "type" => match value.text().ok().flatten().as_deref() {
                Some("message") => is_message = true,
                Some(kind) => return of_kind(kind),
                None => {}
            },
            _ => {}
        }
    }
    // A message without a role is the client's to explain. The type of a reference may be left out.
    if is_message { Side::Client } else { Side::Model }
}

fn of_role(role: &[u8]) -> Side {
    if role == br#""assistant""# { Side::Model } else { Side::Client }
}

/// The side of an item that is not a message. The model has written what is not known.
pub(super) fn of_kind(kind: &str) -> Side {
    let is_result = kind.ends_with("_output");
    if is_result || matches!(kind, "mcp_approval_response" | "additional_tools") {
        Side::Client
    } else {
        Side::Model
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_reasoning_and_unknown_items_are_the_models() {
        for item in [
            r#"{"type":"reasoning","summary":[]}"#,
            r#"{"arguments":"{\"type\":\"message\"}","type":"function_call"}"#,
            r#"{"type":"message","role":"assistant","content":[]}"#,
            r#"{"content":"x","role":"assistant"}"#,
            r#"{"id":"msg_1"}"#,
            r#"{"type":"item_reference","id":"rs_1"}"#,
            r#"{"type":"new_thing"}"#,
            r#"{"type":null,"id":"x"}"#,
        ] {
            assert_eq!(side(item.as_bytes()), Side::Model, "{item}");
        }
        for item in [
            r#"{"role":"user","content":"x"}"#,
            r#"{"type":"message","role":"developer","content":"x"}"#,
            r#"{"type":"message"}"#,
            r#"{"call_id":"c","output":"{\"type\":\"reasoning\"}","type":"function_call_output"}"#,
            r#"{"type":"new_thing_output"}"#,
            r#"{"type":"mcp_approval_response"}"#,
            r#"{"type":null,"role":"user"}"#,
        ] {
            assert_eq!(side(item.as_bytes()), Side::Client, "{item}");
        }
    }
}
