//! What the writer writes. Everything is derived from numbers, so that the checks can recompute it.

use bytes::Bytes;
use tidegate_store::{ConversationKey, Journal, MessageId, Turn};

/// The number of conversations written concurrently, so that commits contain several writes.
pub(crate) const LANES: u64 = 6;

/// The number of messages in each journal.
pub(crate) const MESSAGES: u64 = 3;

/// One write. In the conversation of a round and a lane, each number is journalled, then counted, until the kill. Some rounds
/// later the conversation is deleted, so that the database stays small and reuses its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    Delete { round: u64, lane: u64 },
    Journal { lane: u64, number: u64 },
    Count { lane: u64, number: u64 },
}

/// The rounds whose conversations are deleted in this one. Each is deleted twice, because the first attempt may be killed.
pub(crate) fn deleted_in(round: u64) -> impl Iterator<Item = u64> {
    [7, 6].into_iter().filter_map(move |age| round.checked_sub(age))
}

pub(crate) fn key(round: u64, lane: u64) -> ConversationKey {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&Random(round * LANES + lane).next().to_be_bytes());
    ConversationKey(key)
}

pub(crate) fn journal(number: u64) -> Journal {
    let messages = (0..MESSAGES).map(|part| (message_id(number, part), message(number, part))).collect();
    Journal { messages, waypoint: Some(waypoint(number)) }
}

pub(crate) fn turn(number: u64) -> Turn {
    Turn {
        id: u128::from(number).to_be_bytes(),
        // Every second turn is a retry.
        end: Some(message_id(number / 2, 0)),
        at: 1_000 + number,
        record: turn_record(number),
        counts: vec![("numbers", number)],
        labels: vec![("newest", number.to_string())],
    }
}

pub(crate) fn message_id(number: u64, part: u64) -> MessageId {
    let mut id = [0; 32];
    id[..8].copy_from_slice(&Random(number * MESSAGES + part).next().to_be_bytes());
    MessageId(id)
}

/// Between empty and several database pages long.
pub(crate) fn message(number: u64, part: u64) -> Bytes {
    let mut random = Random(number * MESSAGES + part);
    let length = random.below(4_000);
    let byte = random.next().to_be_bytes()[0];
    (0..length).map(|_| byte).collect()
}

pub(crate) fn waypoint(number: u64) -> Bytes {
    format!("waypoint {number}").into()
}

pub(crate) fn turn_record(number: u64) -> Bytes {
    format!("turn {number}").into()
}

/// SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}
