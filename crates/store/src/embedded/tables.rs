//! The tables. All keys of a conversation begin with its key, so that a conversation is read and removed as a few short ranges.

use super::rows::Rows;
use crate::ConversationKey;
use redb::{TableDefinition, TableError, WriteTransaction};

/// All tables of conversations map bytes to bytes, so that one function can clear any of them.
pub(super) type Definition = TableDefinition<'static, &'static [u8], &'static [u8]>;

/// Conversation and number to waypoint. The numbers have no gaps; the highest is the newest.
pub(super) const WAYPOINT: Definition = TableDefinition::new("waypoint");
/// Conversation and number to covered prefix and fold. Numbered like waypoints.
pub(super) const FOLD: Definition = TableDefinition::new("fold");
/// Conversation and number to a turn of the log. Numbered like waypoints.
pub(super) const LOG: Definition = TableDefinition::new("log");
/// Conversation to the head of its log.
pub(super) const LOG_HEAD: Definition = TableDefinition::new("log_head");
/// Conversation to the head of its log, if the client did not get the end of its last turn.
pub(super) const UNDELIVERED: Definition = TableDefinition::new("undelivered");
/// Conversation to its generation, for conversations that were deleted. Outlives the conversation.
pub(super) const TOMBSTONE: Definition = TableDefinition::new("tombstone");
/// The time of a deletion and conversation to nothing. One row for each in `TOMBSTONE`.
pub(super) const BY_BURIED: Definition = TableDefinition::new("by_buried");
/// Conversation to pinned record.
pub(super) const PIN: Definition = TableDefinition::new("pin");
/// Conversation and message id to record.
pub(super) const MESSAGE: Definition = TableDefinition::new("message");
/// Conversation and the message that it follows to what was recalled there.
pub(super) const EXCHANGE: Definition = TableDefinition::new("exchange");
/// Conversation and turn id to record.
pub(super) const TURN: Definition = TableDefinition::new("turn");
/// Conversation and the message id at the end of a counted turn to nothing.
pub(super) const END: Definition = TableDefinition::new("end");
/// Conversation to head, for conversations with a counted turn.
pub(super) const HEAD: Definition = TableDefinition::new("head");
/// Conversation to the time of the last write, for all conversations.
pub(super) const TOUCHED: Definition = TableDefinition::new("touched");
/// The time of the last turn and conversation to nothing. One row for each in `HEAD`.
pub(super) const BY_LAST: Definition = TableDefinition::new("by_last");
/// The time of the last write and conversation to nothing. One row for each in `TOUCHED`.
pub(super) const BY_TOUCHED: Definition = TableDefinition::new("by_touched");

/// All of them.
pub(super) const ALL: [Definition; 16] = [
    WAYPOINT,
    FOLD,
    LOG,
    LOG_HEAD,
    UNDELIVERED,
    TOMBSTONE,
    BY_BURIED,
    PIN,
    MESSAGE,
    EXCHANGE,
    TURN,
    END,
    HEAD,
    TOUCHED,
    BY_LAST,
    BY_TOUCHED,
];

/// Properties of the file itself.
pub(super) const META: TableDefinition<'static, &'static str, u64> = TableDefinition::new("meta");

pub(super) struct Tables<'t> {
    pub(super) waypoints: Rows<'t>,
    pub(super) folds: Rows<'t>,
    pub(super) log: Rows<'t>,
    pub(super) log_heads: Rows<'t>,
    pub(super) undelivered: Rows<'t>,
    pub(super) tombstones: Rows<'t>,
    pub(super) by_buried: Rows<'t>,
    pub(super) pins: Rows<'t>,
    pub(super) messages: Rows<'t>,
    pub(super) exchanges: Rows<'t>,
    pub(super) turns: Rows<'t>,
    pub(super) ends: Rows<'t>,
    pub(super) heads: Rows<'t>,
    pub(super) touched: Rows<'t>,
    pub(super) by_last: Rows<'t>,
    pub(super) by_touched: Rows<'t>,
}

impl<'t> Tables<'t> {
    /// Opens all tables, creating missing ones.
    pub(super) fn open(transaction: &'t WriteTransaction) -> Result<Tables<'t>, TableError> {
        Ok(Tables {
            waypoints: Rows::new(transaction.open_table(WAYPOINT)?),
            folds: Rows::new(transaction.open_table(FOLD)?),
            log: Rows::new(transaction.open_table(LOG)?),
            log_heads: Rows::new(transaction.open_table(LOG_HEAD)?),
            undelivered: Rows::new(transaction.open_table(UNDELIVERED)?),
            tombstones: Rows::new(transaction.open_table(TOMBSTONE)?),
            by_buried: Rows::new(transaction.open_table(BY_BURIED)?),
            pins: Rows::new(transaction.open_table(PIN)?),
            messages: Rows::new(transaction.open_table(MESSAGE)?),
            exchanges: Rows::new(transaction.open_table(EXCHANGE)?),
            turns: Rows::new(transaction.open_table(TURN)?),
            ends: Rows::new(transaction.open_table(END)?),
            heads: Rows::new(transaction.open_table(HEAD)?),
            touched: Rows::new(transaction.open_table(TOUCHED)?),
            by_last: Rows::new(transaction.open_table(BY_LAST)?),
            by_touched: Rows::new(transaction.open_table(BY_TOUCHED)?),
        })
    }

    /// How many more bytes the rows take than when the tables were opened.
    pub(super) fn growth(&self) -> i64 {
        self.all().iter().map(|table| table.growth()).sum()
    }

    /// How many rows were inserted since.
    pub(super) fn inserted(&self) -> usize {
        self.all().iter().map(|table| table.inserted()).sum()
    }

    fn all(&self) -> [&Rows<'t>; ALL.len()] {
        [
            &self.waypoints,
            &self.folds,
            &self.log,
            &self.log_heads,
            &self.undelivered,
            &self.tombstones,
            &self.by_buried,
            &self.pins,
            &self.messages,
            &self.exchanges,
            &self.turns,
            &self.ends,
            &self.heads,
            &self.touched,
            &self.by_last,
            &self.by_touched,
        ]
    }
}

/// Sorts after every suffix of a key. The longest suffix is a message id of 32 bytes.
const MAX_SUFFIX: [u8; 33] = [0xff; 33];

/// The first and the last possible key of a conversation.
pub(super) fn range_of(key: ConversationKey) -> (Vec<u8>, Vec<u8>) {
    (key.0.to_vec(), under(key, &MAX_SUFFIX))
}

/// A key of a conversation.
pub(super) fn under(key: ConversationKey, suffix: &[u8]) -> Vec<u8> {
    [&key.0, suffix].concat()
}

/// A key of an index by time. Big-endian, so that byte order is time order.
pub(super) fn at(time: u64, key: ConversationKey) -> Vec<u8> {
    [&time.to_be_bytes()[..], &key.0].concat()
}

/// Splits a key of an index into time and conversation. Returns `None` if [`at`] did not make it.
pub(super) fn parse_at(row: &[u8]) -> Option<(u64, ConversationKey)> {
    let (time, key) = row.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*time), ConversationKey(key.try_into().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_keys_sort_by_time_and_parse_as_written() {
        let (low, high) = (ConversationKey([0; 16]), ConversationKey([0xff; 16]));
        assert!(at(255, high) < at(256, low));
        assert_eq!(parse_at(&at(256, high)), Some((256, high)));
        assert_eq!(parse_at(&at(256, high)[1..]), None);
    }

    #[test]
    fn a_range_contains_exactly_the_keys_of_its_conversation() {
        let key = ConversationKey([7; 16]);
        let (first, last) = range_of(key);
        for suffix in [&[][..], &[0; 8], &[0xff; 32]] {
            let row = under(key, suffix);
            assert!(first <= row && row <= last);
        }
        let mut next = key;
        next.0[15] += 1;
        assert!(under(next, &[]) > last);
    }
}
