//! Key names, and the cluster slots that they belong to.

use crate::ConversationKey;

/// The sorted set of conversations by the time of their last turn.
pub(super) const INDEX: &str = "tg:1:{index}:conversations";

/// The keys of a conversation. They share a hash tag, so that one server has them all and can change them atomically.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    Waypoints,
    Messages,
    Turns,
    Ends,
    Head,
    /// Folds by what they cover.
    Folds,
    /// What the folds cover, in the order in which they were stored.
    FoldOrder,
    /// The pinned text.
    Pin,
    /// The turns of the log, the oldest first.
    Log,
    /// The head of the log.
    LogHead,
    /// The head of the log, if the client did not get the end of its last turn.
    Undelivered,
    /// What was recalled, by the message that it follows.
    Exchanges,
    /// The generation of the conversation. It outlives the conversation.
    Generation,
    /// The holder of the lease on folding.
    FoldLease,
    /// The holder of the lease on a turn.
    TurnLease,
}

/// The keys in the order in which the scripts take them: those that live as long as the conversation, and its generation. The
/// leases are not among them: they have their own expiry, which no write may extend.
pub(super) const PARTS: [Part; 13] = [
    Part::Waypoints,
    Part::Messages,
    Part::Turns,
    Part::Ends,
    Part::Head,
    Part::Folds,
    Part::FoldOrder,
    Part::Pin,
    Part::Log,
    Part::LogHead,
    Part::Undelivered,
    Part::Exchanges,
    Part::Generation,
];

pub(super) fn key(conversation: ConversationKey, part: Part) -> String {
    let letter = match part {
        Part::Waypoints => 'w',
        Part::Messages => 'm',
        Part::Turns => 't',
        Part::Ends => 'e',
        Part::Head => 'h',
        Part::Folds => 'f',
        Part::FoldOrder => 'o',
        Part::Pin => 'p',
        Part::Log => 'l',
        Part::LogHead => 'n',
        Part::Undelivered => 'u',
        Part::Exchanges => 'x',
        Part::Generation => 'g',
        Part::FoldLease => 'c',
        Part::TurnLease => 'r',
    };
    format!("tg:1:{{{conversation}}}:{letter}")
}

/// A hash slot of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Slot(pub(super) u16);

impl Slot {
    /// Only the part between the first braces is hashed, unless it is empty.
    pub(super) fn of(key: &str) -> Slot {
        let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map(|(tag, _)| tag);
        let hashed = tag.filter(|tag| !tag.is_empty()).unwrap_or(key);
        Slot(crc16(hashed.as_bytes()) % 16_384)
    }
}

/// The CRC of the cluster specification: polynomial 0x1021, starting from zero.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
            let shifted = crc << 1;
            if crc & 0x8000 == 0 { shifted } else { shifted ^ 0x1021 }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_follow_the_cluster_specification() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        // As returned by `CLUSTER KEYSLOT`.
        assert_eq!(Slot::of("foo"), Slot(12_182));
        assert_eq!(Slot::of("{user1000}.following"), Slot::of("{user1000}.followers"));
        assert_eq!(Slot::of("foo{}{bar}"), Slot(8_363));
        assert_eq!(Slot::of("foo{{bar}}zap"), Slot::of("{bar"));
    }

    #[test]
    fn all_keys_of_a_conversation_share_a_slot() {
        let conversation = ConversationKey([7; 16]);
        let slots = PARTS.map(|part| Slot::of(&key(conversation, part)));
        assert_eq!(slots, [Slot::of(&conversation.to_string()); PARTS.len()]);
        assert_eq!(slots[0], Slot::of(&key(conversation, Part::TurnLease)));
        assert_eq!(key(conversation, Part::Head), "tg:1:{07070707070707070707070707070707}:h");
    }
}
