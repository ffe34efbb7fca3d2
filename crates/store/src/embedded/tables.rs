//! Where each thing is in the database. All keys of a conversation begin with it, so that it lies together and is read
//! and removed as a few short ranges.

use crate::ConversationKey;
use redb::{TableDefinition, TableError, WriteTransaction};

/// Every table of conversations maps bytes to bytes, so that one function can clear any of them.
pub(super) type Definition = TableDefinition<'static, &'static [u8], &'static [u8]>;
pub(super) type Rows<'t> = redb::Table<'t, &'static [u8], &'static [u8]>;

/// Conversation and number to waypoint. The numbers have no gaps and the highest is the newest.
pub(super) const WAYPOINT: Definition = TableDefinition::new("waypoint");
/// Conversation and number to the prefix that is covered and the fold. The numbers are as those of waypoints.
pub(super) const FOLD: Definition = TableDefinition::new("fold");
/// Conversation to what is pinned to it.
pub(super) const PIN: Definition = TableDefinition::new("pin");
/// Conversation and message id to record.
pub(super) const MESSAGE: Definition = TableDefinition::new("message");
/// Conversation and turn id to record.
pub(super) const TURN: Definition = TableDefinition::new("turn");
/// Conversation and the message id at the end of a counted turn to nothing.
pub(super) const END: Definition = TableDefinition::new("end");
/// Conversation to head, for conversations with a counted turn.
pub(super) const HEAD: Definition = TableDefinition::new("head");
/// Conversation to the time of the last write, for all conversations.
pub(super) const TOUCHED: Definition = TableDefinition::new("touched");
/// The time of the last turn and conversation to nothing. As long as `HEAD`.
pub(super) const BY_LAST: Definition = TableDefinition::new("by_last");
/// The time of the last write and conversation to nothing. As long as `TOUCHED`.
pub(super) const BY_TOUCHED: Definition = TableDefinition::new("by_touched");

/// Facts about the file itself.
pub(super) const META: TableDefinition<'static, &'static str, u64> = TableDefinition::new("meta");

pub(super) struct Tables<'t> {
    pub(super) waypoints: Rows<'t>,
    pub(super) folds: Rows<'t>,
    pub(super) pins: Rows<'t>,
    pub(super) messages: Rows<'t>,
    pub(super) turns: Rows<'t>,
    pub(super) ends: Rows<'t>,
    pub(super) heads: Rows<'t>,
    pub(super) touched: Rows<'t>,
    pub(super) by_last: Rows<'t>,
    pub(super) by_touched: Rows<'t>,
}

impl<'t> Tables<'t> {
    /// Opens all tables, and creates those that are not there.
    pub(super) fn open(transaction: &'t WriteTransaction) -> Result<Tables<'t>, TableError> {
        Ok(Tables {
            waypoints: transaction.open_table(WAYPOINT)?,
            folds: transaction.open_table(FOLD)?,
            pins: transaction.open_table(PIN)?,
            messages: transaction.open_table(MESSAGE)?,
            turns: transaction.open_table(TURN)?,
            ends: transaction.open_table(END)?,
            heads: transaction.open_table(HEAD)?,
            touched: transaction.open_table(TOUCHED)?,
            by_last: transaction.open_table(BY_LAST)?,
            by_touched: transaction.open_table(BY_TOUCHED)?,
        })
    }
}

/// The longest thing behind a conversation in a key is a message id of 32 bytes.
const BEHIND_ALL: [u8; 33] = [0xff; 33];

/// The first and the last possible key of a conversation.
pub(super) fn range_of(key: ConversationKey) -> (Vec<u8>, Vec<u8>) {
    (key.0.to_vec(), under(key, &BEHIND_ALL))
}

pub(super) fn under(key: ConversationKey, suffix: &[u8]) -> Vec<u8> {
    [&key.0, suffix].concat()
}

/// Big-endian, so that the order of the bytes is the order of time.
pub(super) fn at(time: u64, key: ConversationKey) -> Vec<u8> {
    [&time.to_be_bytes()[..], &key.0].concat()
}

/// The time and the conversation of an index row. `None` for what `at` did not make.
pub(super) fn parse_at(row: &[u8]) -> Option<(u64, ConversationKey)> {
    let (time, key) = row.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*time), ConversationKey(key.try_into().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_rows_sort_by_time_and_read_as_written() {
        let (low, high) = (ConversationKey([0; 16]), ConversationKey([0xff; 16]));
        assert!(at(255, high) < at(256, low));
        assert_eq!(parse_at(&at(256, high)), Some((256, high)));
        assert_eq!(parse_at(&at(256, high)[1..]), None);
    }

    #[test]
    fn a_range_holds_every_key_of_its_conversation_and_no_other() {
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
