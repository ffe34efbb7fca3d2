//! The stored form of a turn in a log.

use super::{Fields, RawMessage, RecordError, Room, Standing, compression, form, text_of};
use crate::ConversationKey;
use crate::seal::Keyring;
use crate::store::MessageId;
use bytes::Bytes;
use tidegate_engine::Digest;

/// One turn of a history that is kept here: what the client sent, and the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedTurn {
    /// The head of the log before this turn; `None` for the first turn.
    pub parent: Option<MessageId>,
    /// The head of the log with this turn: the id of the answer.
    pub head: MessageId,
    /// A hash of the messages that the client sent.
    pub request: [u8; 32],
    /// A hash of the key by which the client names its attempts at this turn, if it does.
    pub idempotency: Option<[u8; 32]>,
    /// The instructions that the client sent, if any.
    pub instructions: Vec<RawMessage>,
    /// What the client sent besides, and the answer. Each with a hash of what it says, however it is spelled.
    pub messages: Vec<([u8; 32], RawMessage)>,
}

impl LoggedTurn {
    /// What the client sent and the answer, in order, without the instructions that came before the whole conversation. Others keep
    /// their places.
    pub fn in_order(&self) -> impl Iterator<Item = &RawMessage> {
        let after = move |id: Option<MessageId>| {
            let placed = self.instructions.iter().filter(|instruction| !instruction.is_leading());
            placed.filter(move |instruction| Some(instruction.parent) == id)
        };
        let messages = self.messages.iter().map(|(_, message)| message);
        after(self.parent)
            .chain(messages.flat_map(move |message| std::iter::once(message).chain(after(Some(message.id)))))
    }
}

impl RawMessage {
    /// Whether nothing was said before it.
    pub(crate) fn is_leading(&self) -> bool {
        self.parent == MessageId(Digest::default().0)
    }
}

/// Encodes a turn. Its texts are compressed, and encrypted if there is a key.
#[must_use]
pub(crate) fn encode_turn(key: ConversationKey, turn: &LoggedTurn, keyring: Option<&Keyring>) -> Bytes {
    let mut texts = Vec::new();
    let hashes = turn.messages.iter().map(|(hash, message)| (hash, message));
    let instructions = turn.instructions.iter().map(|message| (&NO_HASH, message));
    put_count(&mut texts, turn.instructions.len());
    for (hash, message) in instructions.chain(hashes) {
        texts.extend_from_slice(hash);
        texts.extend_from_slice(&message.id.0);
        texts.extend_from_slice(&message.parent.0);
        texts.extend_from_slice(&message.position.to_le_bytes());
        texts.extend_from_slice(&message.at.to_le_bytes());
        put_count(&mut texts, message.json.len());
        texts.extend_from_slice(&message.json);
    }
    let compressed = compression::compress(&texts);
    let mut record = Vec::with_capacity(compressed.as_ref().map_or(texts.len(), Vec::len) + 256);
    record.extend_from_slice(&form(compressed.is_some(), keyring));
    let texts = compressed.unwrap_or(texts);
    for optional in [turn.parent.map(|parent| parent.0), Some(turn.head.0), turn.idempotency] {
        record.push(u8::from(optional.is_some()));
        record.extend_from_slice(&optional.unwrap_or_default());
    }
    record.extend_from_slice(&turn.request);
    match keyring {
        None => record.extend_from_slice(&texts),
        Some(keyring) => {
            let sealed = keyring.seal(&texts, &context(key, &record));
            record.extend_from_slice(&sealed);
        }
    }
    record.into()
}

const NO_HASH: [u8; 32] = [0; 32];
const HEAD: usize = 2 + 3 * 33 + 32;

pub(crate) fn decode_turn(
    key: ConversationKey,
    record: &Bytes,
    keyring: Option<&Keyring>,
    room: Room<'_>,
) -> Result<LoggedTurn, RecordError> {
    let mut fields = Fields::of_either(record)?;
    let [kind] = fields.take()?;
    let parent = fields.take_digest()?.map(|parent| MessageId(parent.0));
    let head = fields.take_digest()?.map(|head| MessageId(head.0)).ok_or(RecordError::Damaged)?;
    let idempotency = fields.take_digest()?.map(|hash| hash.0);
    let request = fields.take()?;
    let texts = text_of(record, HEAD, kind, keyring, room, |head| context(key, head))?;
    let mut rest = Fields(&texts);
    let count = take_count(&mut rest)?;
    let (mut instructions, mut messages) = (Vec::new(), Vec::new());
    while !rest.0.is_empty() {
        let (hash, message) = take_message(&texts, &mut rest)?;
        if instructions.len() < count {
            instructions.push(message);
        } else {
            messages.push((hash, message));
        }
    }
    let turn = LoggedTurn { parent, head, request, idempotency, instructions, messages };
    let is_whole = turn.instructions.len() == count
        && turn.messages.last().is_some_and(|(_, answer)| answer.id == turn.head);
    is_whole.then_some(turn).ok_or(RecordError::Damaged)
}

fn take_message(texts: &Bytes, rest: &mut Fields<'_>) -> Result<([u8; 32], RawMessage), RecordError> {
    let hash = rest.take()?;
    let (id, parent) = (MessageId(rest.take()?), MessageId(rest.take()?));
    let position = u32::from_le_bytes(rest.take()?);
    let at = u64::from_le_bytes(rest.take()?);
    let length = take_count(rest)?;
    let begin = texts.len() - rest.0.len();
    let (_, after) = rest.0.split_at_checked(length).ok_or(RecordError::Damaged)?;
    rest.0 = after;
    let json = texts.slice(begin..begin + length);
    Ok((hash, RawMessage { id, parent, position, at, json, standing: Standing::Kept }))
}

fn put_count(record: &mut Vec<u8>, count: usize) {
    record.extend_from_slice(&(count as u64).to_le_bytes());
}

fn take_count(fields: &mut Fields<'_>) -> Result<usize, RecordError> {
    usize::try_from(u64::from_le_bytes(fields.take()?)).map_err(|_| RecordError::Damaged)
}

/// Binds an encrypted turn to its conversation and its place in the log.
fn context(key: ConversationKey, head: &[u8]) -> Vec<u8> {
    [&key.0[..], b"turn", head].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KEY: ConversationKey = ConversationKey([3; 16]);
    const ALL: Room<'static> = &|_| true;

    fn message(number: u8, json: &str) -> RawMessage {
        RawMessage {
            id: MessageId([number; 32]),
            parent: MessageId([number - 1; 32]),
            position: u32::from(number),
            at: 1_700_000,
            json: json.to_owned().into(),
            standing: Standing::Kept,
        }
    }

    fn turn() -> LoggedTurn {
        LoggedTurn {
            parent: Some(MessageId([1; 32])),
            head: MessageId([4; 32]),
            request: [8; 32],
            idempotency: None,
            instructions: vec![message(9, "be the canary")],
            messages: vec![([1; 32], message(3, "{}")), ([2; 32], message(4, "the canary"))],
        }
    }

    #[test]
    fn turns_decode_as_they_were_encoded_and_only_in_their_place() {
        assert_eq!(decode_turn(KEY, &encode_turn(KEY, &turn(), None), None, ALL), Ok(turn()));
        let first = LoggedTurn { parent: None, idempotency: Some([7; 32]), instructions: vec![], ..turn() };
        assert_eq!(decode_turn(KEY, &encode_turn(KEY, &first, None), None, ALL), Ok(first));
        let keyring = "11".repeat(32).parse::<Keyring>().unwrap();
        let sealed = encode_turn(KEY, &turn(), Some(&keyring));
        assert!(!sealed.windows(6).any(|window| window == b"canary"));
        assert_eq!(decode_turn(KEY, &sealed, Some(&keyring), ALL), Ok(turn()));
        assert_eq!(decode_turn(KEY, &sealed, None, ALL), Err(RecordError::NoKey));
        let other = ConversationKey([4; 16]);
        assert_eq!(decode_turn(other, &sealed, Some(&keyring), ALL), Err(RecordError::Damaged));
        let mut moved = sealed.to_vec();
        moved[4] ^= 1;
        assert_eq!(decode_turn(KEY, &moved.into(), Some(&keyring), ALL), Err(RecordError::Damaged));
    }

    #[test]
    fn long_turns_are_compressed() {
        let mut long = turn();
        long.messages[0].1.json = "the tide is in; ".repeat(100).into();
        let keyring = "11".repeat(32).parse::<Keyring>().unwrap();
        for keyring in [None, Some(&keyring)] {
            let record = encode_turn(KEY, &long, keyring);
            assert!(record.len() < 1_000, "{}", record.len());
            assert_eq!(decode_turn(KEY, &record, keyring, ALL), Ok(long.clone()));
        }
    }

    proptest! {
        #[test]
        fn damaged_records_never_panic(cut in 0usize..400, flipped in 0usize..400) {
            let mut record = encode_turn(KEY, &turn(), None).to_vec();
            let length = record.len();
            record[flipped % length] ^= 0x41;
            record.truncate(cut);
            let _ = decode_turn(KEY, &record.into(), None, ALL);
        }
    }
}
