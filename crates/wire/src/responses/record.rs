use crate::MAX_DEPTH;
use crate::cursor::Value;
use bytes::Bytes;

/// A message as one JSON value, as it is recorded: a run of items as an array, a text as the item that it stands for.
pub(crate) fn recorded(raw: Bytes) -> Bytes {
    match raw.first() {
        Some(b'"') => [br#"{"role":"user","content":"#, &raw[..], b"}"].concat().into(),
        _ if serde_json::from_slice::<&serde_json::value::RawValue>(&raw).is_ok() => raw,
        _ => [b"[", &raw[..], b"]"].concat().into(),
    }
}

/// Whether a recorded message is an item, or a run of them.
pub(crate) fn is_recorded_item(recorded: &[u8]) -> bool {
    let mut is_item = recorded.first() == Some(&b'[');
    // What cannot be read has no type.
    let _ = Value::whole(recorded, MAX_DEPTH).members_of_object(|key, _| {
        is_item |= key == "type";
        Ok(())
    });
    is_item
}

/// A recorded message as it stands in a request.
pub(crate) fn sent(recorded: &[u8]) -> &[u8] {
    recorded.strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]")).unwrap_or(recorded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_message_is_json_and_can_be_sent_again() {
        for (raw, json, again) in [
            (r#"{"a":1}"#, r#"{"a":1}"#, r#"{"a":1}"#),
            (r#"{"a":1} , {"b":2}"#, r#"[{"a":1} , {"b":2}]"#, r#"{"a":1} , {"b":2}"#),
            (r#""hi""#, r#"{"role":"user","content":"hi"}"#, r#"{"role":"user","content":"hi"}"#),
        ] {
            let kept = recorded(Bytes::from_static(raw.as_bytes()));
            assert_eq!(kept, json);
            assert_eq!(sent(&kept), again.as_bytes());
            assert_eq!(is_recorded_item(&kept), raw.contains(','), "{raw}");
        }
    }
}
