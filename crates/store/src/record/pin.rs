//! The format of a text that belongs to a conversation: what is pinned to it, and what its model has recalled.

use super::{FORMAT, Fields, PLAIN, RecordError, SEALED};
use crate::ConversationKey;
use crate::seal::Keyring;
use bytes::Bytes;

/// Encodes a text, encrypted if there is a key.
#[must_use]
pub(crate) fn encode_pin(key: ConversationKey, text: &str, keyring: Option<&Keyring>) -> Bytes {
    encode(key, b"pin", text, keyring)
}

pub(crate) fn decode_pin(
    key: ConversationKey,
    record: &[u8],
    keyring: Option<&Keyring>,
) -> Result<String, RecordError> {
    decode(key, b"pin", record, keyring)
}

/// The same for what a model has recalled.
#[must_use]
pub(crate) fn encode_exchange(key: ConversationKey, text: &str, keyring: Option<&Keyring>) -> Bytes {
    encode(key, b"exchange", text, keyring)
}

pub(crate) fn decode_exchange(
    key: ConversationKey,
    record: &[u8],
    keyring: Option<&Keyring>,
) -> Result<String, RecordError> {
    decode(key, b"exchange", record, keyring)
}

fn encode(key: ConversationKey, kind: &[u8], text: &str, keyring: Option<&Keyring>) -> Bytes {
    match keyring {
        None => [&[FORMAT, PLAIN][..], text.as_bytes()].concat().into(),
        Some(keyring) => {
            let head = [FORMAT, SEALED];
            [&head[..], &keyring.seal(text.as_bytes(), &context(key, kind, head))].concat().into()
        }
    }
}

fn decode(
    key: ConversationKey,
    kind: &[u8],
    record: &[u8],
    keyring: Option<&Keyring>,
) -> Result<String, RecordError> {
    let mut fields = Fields::of(record)?;
    let [form] = fields.take()?;
    let text = match form {
        PLAIN => fields.0.to_vec(),
        SEALED => keyring.ok_or(RecordError::NoKey)?.open(fields.0, &context(key, kind, [FORMAT, SEALED]))?,
        _ => return Err(RecordError::Damaged),
    };
    String::from_utf8(text).map_err(|_| RecordError::Damaged)
}

/// Binds an encrypted text to its conversation and to its kind.
fn context(key: ConversationKey, kind: &[u8], head: [u8; 2]) -> Vec<u8> {
    [&key.0[..], kind, &head].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_decodes_as_it_was_encoded_and_only_in_its_conversation() {
        let (here, there) = (ConversationKey([1; 16]), ConversationKey([2; 16]));
        let keyring = "11".repeat(32).parse::<Keyring>().unwrap();
        let text = "The ship is called Ada.\n";
        assert_eq!(decode_pin(here, &encode_pin(here, text, None), None), Ok(text.to_owned()));
        let sealed = encode_pin(here, text, Some(&keyring));
        assert!(!sealed.windows(3).any(|window| window == b"Ada"));
        assert_eq!(decode_pin(here, &sealed, Some(&keyring)), Ok(text.to_owned()));
        assert_eq!(decode_pin(there, &sealed, Some(&keyring)), Err(RecordError::Damaged));
        assert_eq!(decode_pin(here, &sealed, None), Err(RecordError::NoKey));
        assert_eq!(decode_pin(here, b"\x01", None), Err(RecordError::Damaged));
    }
}
