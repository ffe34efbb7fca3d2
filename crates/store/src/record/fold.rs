//! The format of a stored summary.

use super::{FORMAT, Fields, PLAIN, RecordError, SEALED};
use crate::ConversationKey;
use crate::seal::{Keyring, Sealed};
use bytes::Bytes;
use tidegate_engine::{Digest, Timestamp};

/// A stored summary of a prefix of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFold {
    /// The digest of the conversation at the last message that it covers.
    pub covers: Digest,
    /// The number of messages that it covers.
    pub covered: u32,
    /// When it was created.
    pub at: Timestamp,
    /// The summary as JSON, stored byte for byte.
    pub state: Bytes,
}

/// Encodes a summary. Its text is encrypted if there is a key, because it repeats what the conversation said.
#[must_use]
pub(crate) fn encode_fold(key: ConversationKey, fold: &StoredFold, keyring: Option<&Keyring>) -> Bytes {
    let mut record = Vec::with_capacity(HEAD + fold.state.len() + Sealed::OVERHEAD);
    record.push(FORMAT);
    record.push(if keyring.is_some() { SEALED } else { PLAIN });
    record.extend_from_slice(&fold.covers.0);
    record.extend_from_slice(&fold.covered.to_le_bytes());
    record.extend_from_slice(&fold.at.0.to_le_bytes());
    match keyring {
        None => record.extend_from_slice(&fold.state),
        Some(keyring) => {
            let sealed = keyring.seal(&fold.state, &context(key, &record));
            record.extend_from_slice(&sealed);
        }
    }
    record.into()
}

const HEAD: usize = 1 + 1 + 32 + 4 + 8;

pub(crate) fn decode_fold(
    key: ConversationKey,
    record: &Bytes,
    keyring: Option<&Keyring>,
) -> Result<StoredFold, RecordError> {
    let mut fields = Fields::of(record)?;
    let [kind] = fields.take()?;
    let covers = Digest(fields.take()?);
    let covered = u32::from_le_bytes(fields.take()?);
    let at = Timestamp(u64::from_le_bytes(fields.take()?));
    let state = match kind {
        PLAIN => record.slice(HEAD..),
        SEALED => {
            let keyring = keyring.ok_or(RecordError::NoKey)?;
            keyring.open(fields.0, &context(key, &record[..HEAD]))?.into()
        }
        _ => return Err(RecordError::Damaged),
    };
    Ok(StoredFold { covers, covered, at, state })
}

/// Binds an encrypted summary to its conversation and to what it covers. The word keeps a message from opening as a summary.
fn context(key: ConversationKey, head: &[u8]) -> Vec<u8> {
    [&key.0[..], b"fold", head].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MessageId;
    use crate::record::{RawMessage, Standing, encode_message};
    use proptest::prelude::*;

    const KEY: ConversationKey = ConversationKey([3; 16]);

    fn keyring() -> Keyring {
        "11".repeat(32).parse().unwrap()
    }

    fn fold() -> StoredFold {
        let state = Bytes::from_static(br#"{"summary_text":"the canary"}"#);
        StoredFold { covers: Digest([1; 32]), covered: 7, at: Timestamp(1_700_000), state }
    }

    proptest! {
        #[test]
        fn folds_decode_as_they_were_encoded(covers: [u8; 32], covered: u32, at: u64, state: Vec<u8>, is_sealed: bool) {
            let fold = StoredFold { covers: Digest(covers), covered, at: Timestamp(at), state: state.into() };
            let keyring = is_sealed.then(keyring);
            let record = encode_fold(KEY, &fold, keyring.as_ref());
            prop_assert_eq!(decode_fold(KEY, &record, keyring.as_ref()), Ok(fold));
        }
    }

    #[test]
    fn a_sealed_fold_is_unreadable_and_opens_nowhere_else() {
        let keyring = keyring();
        let sealed = encode_fold(KEY, &fold(), Some(&keyring));
        assert!(!sealed.windows(6).any(|window| window == b"canary"));
        assert_eq!(decode_fold(KEY, &sealed, None), Err(RecordError::NoKey));
        let other_keyring = "22".repeat(32).parse().unwrap();
        assert_eq!(decode_fold(KEY, &sealed, Some(&other_keyring)), Err(RecordError::NoKey));
        let other = ConversationKey([4; 16]);
        assert_eq!(decode_fold(other, &sealed, Some(&keyring)), Err(RecordError::Damaged));
        // It does not open with another prefix, count or time, or if the text was changed.
        for index in [2, 34, 38, sealed.len() - 1] {
            let mut changed = sealed.to_vec();
            changed[index] ^= 1;
            assert_eq!(
                decode_fold(KEY, &changed.into(), Some(&keyring)),
                Err(RecordError::Damaged),
                "{index}"
            );
        }
    }

    #[test]
    fn a_message_does_not_open_as_a_fold() {
        let keyring = keyring();
        let id = MessageId([1; 32]);
        let message = RawMessage {
            id,
            parent: id,
            position: 0,
            at: 0,
            json: Bytes::from_static(b"{}"),
            standing: Standing::Kept,
        };
        let record = encode_message(KEY, &message, Some(&keyring));
        assert_eq!(decode_fold(KEY, &record, Some(&keyring)), Err(RecordError::Damaged));
    }

    #[test]
    fn newer_and_damaged_folds_are_distinguished() {
        assert_eq!(decode_fold(KEY, &Bytes::from_static(&[2, 0]), None), Err(RecordError::Newer(2)));
        let record = encode_fold(KEY, &fold(), None);
        assert_eq!(decode_fold(KEY, &record.slice(..HEAD - 1), None), Err(RecordError::Damaged));
        let mut unknown = record.to_vec();
        unknown[1] = 9;
        assert_eq!(decode_fold(KEY, &unknown.into(), None), Err(RecordError::Damaged));
    }
}
