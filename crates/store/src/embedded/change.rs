//! Applies changes to the tables.

use super::lifetime::Moment;
use super::remove::parse_tombstone;
use super::rows::Rows;
use super::space::Space;
use super::tables::{META, Tables, at, range_of, under};
use super::{facts, head, sweep};
use crate::store::{
    Append, Appended, Delivery, FOLDS, FoldWritten, Generation, Journal, MessageId, Turn, WAYPOINTS,
};
use crate::{ConversationKey, StoreError};
use bytes::Bytes;
use redb::{ReadableTable, StorageError, WriteTransaction};

#[derive(Debug)]
pub(super) enum Change {
    Journal(ConversationKey, Generation, Journal),
    Fold(ConversationKey, Generation, MessageId, Bytes),
    Append(ConversationKey, Generation, Append),
    /// Notes whether the client has the answer of the turn with this head.
    NoteDelivery(ConversationKey, Generation, MessageId, Delivery),
    /// What was recalled after a message.
    Exchange(ConversationKey, Generation, MessageId, Bytes),
    Pin(ConversationKey, Option<Bytes>),
    Conclude(ConversationKey, Generation, Turn, Vec<(MessageId, Bytes)>),
    /// Extends the life of a conversation, if it exists.
    Touch(ConversationKey),
    Delete(ConversationKey, Generation),
    /// A fact under its key in the table of facts.
    Publish(Vec<u8>, Bytes),
    /// Removes the facts of a topic.
    Forget(Vec<u8>),
    Probe,
}

impl Change {
    /// About how much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        let all = |messages: &[(MessageId, Bytes)]| messages.iter().map(|(_, record)| record.len()).sum();
        match self {
            Change::Journal(_, _, journal) => all(&journal.messages),
            Change::Append(_, _, append) => all(&append.messages) + append.record.len(),
            Change::Fold(_, _, _, record) | Change::Exchange(_, _, _, record) => record.len(),
            Change::Publish(_, record) => record.len(),
            Change::Conclude(_, _, turn, messages) => all(messages) + turn.record.len(),
            Change::Pin(_, record) => record.as_ref().map_or(0, Bytes::len),
            Change::Touch(_) | Change::Delete(..) | Change::Probe => 0,
            Change::NoteDelivery(..) | Change::Forget(_) => 0,
        }
    }
}

/// The outcome of one change, or why this change alone was refused. An error of the database itself is not an outcome: it aborts
/// the transaction with all changes.
pub(super) type Outcome = Result<Effect, StoreError>;

/// What a change did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Done,
    /// Nothing: the conversation was deleted since.
    Gone,
    Folded(FoldWritten),
    Appended(Appended),
    Deleted {
        existed: bool,
    },
}

/// What a transaction did.
#[derive(Debug)]
pub(super) struct Applied {
    /// One for each change.
    pub(super) outcomes: Vec<Outcome>,
    /// The space in use afterwards.
    pub(super) used: u64,
    /// The conversations that had to go.
    pub(super) evicted: Vec<ConversationKey>,
}

/// Applies all changes independently: a refused change leaves nothing behind. Then removes the oldest conversations if the space
/// exceeds its limit.
pub(super) fn apply<'c>(
    transaction: &WriteTransaction,
    changes: impl Iterator<Item = &'c Change>,
    moment: Moment,
    space: &Space,
) -> Result<Applied, StoreError> {
    let mut tables = Tables::open(transaction)?;
    let mut outcomes = Vec::new();
    for change in changes {
        outcomes.push(match change {
            Change::Journal(key, generation, _)
            | Change::Fold(key, generation, _, _)
            | Change::Append(key, generation, _)
            | Change::NoteDelivery(key, generation, ..)
            | Change::Exchange(key, generation, ..)
            | Change::Conclude(key, generation, ..)
                if generation_of(&*tables.tombstones, *key)? != *generation =>
            {
                Ok(Effect::Gone)
            }
            Change::Journal(key, _, journal) => tables.journal(*key, journal, moment)?,
            Change::Fold(key, _, covers, record) => tables.fold(*key, *covers, record, moment)?,
            Change::Append(key, _, append) => tables.append(*key, append, moment)?,
            Change::NoteDelivery(key, _, head, delivery) => {
                tables.note_delivery(*key, *head, *delivery, moment)?
            }
            Change::Exchange(key, _, after, record) => tables.exchange(*key, *after, record, moment)?,
            Change::Pin(key, record) => tables.pin(*key, record.as_ref(), moment)?,
            Change::Conclude(key, _, turn, messages) => tables.conclude(*key, turn, messages, moment)?,
            Change::Touch(key) => tables.extend_life(*key, moment)?,
            Change::Delete(key, next) => tables.delete(*key, *next, moment)?,
            Change::Publish(key, fact) => facts::publish(transaction, key, fact, moment)?,
            Change::Forget(topic) => facts::forget(transaction, topic)?,
            Change::Probe => {
                transaction.open_table(META)?.insert("probed", moment.now)?;
                Ok(Effect::Done)
            }
        });
    }
    // Twice what came, so that the space shrinks even if the limit was lowered.
    let mut rows = sweep::MAX_ROWS.max(2 * tables.inserted());
    let evicted = sweep::make_room(&mut tables, space, moment, &mut rows)?;
    let used = space.with(&tables);
    drop(tables);
    if used != space.used() {
        Space::store(transaction, used)?;
    }
    Ok(Applied { outcomes, used, evicted })
}

impl Tables<'_> {
    fn journal(
        &mut self,
        key: ConversationKey,
        journal: &Journal,
        moment: Moment,
    ) -> Result<Outcome, StorageError> {
        self.clear_expired(key, moment)?;
        self.add_messages(key, &journal.messages)?;
        self.add_waypoint(key, journal.waypoint.as_ref())?;
        self.touch(key, moment)?;
        Ok(Ok(Effect::Done))
    }

    fn add_messages(
        &mut self,
        key: ConversationKey,
        messages: &[(MessageId, Bytes)],
    ) -> Result<(), StorageError> {
        for (id, record) in messages {
            let row = under(key, &id.0);
            if self.messages.get(&row[..])?.is_none() {
                self.messages.insert(&row[..], &record[..])?;
            }
        }
        Ok(())
    }

    fn add_waypoint(&mut self, key: ConversationKey, waypoint: Option<&Bytes>) -> Result<(), StorageError> {
        let Some(waypoint) = waypoint else { return Ok(()) };
        let number = next_number(&self.waypoints, key)?;
        self.waypoints.insert(&under(key, &number.to_be_bytes())[..], &waypoint[..])?;
        // The numbers have no gaps, so there is never more than one in excess.
        if let Some(oldest) = number.checked_sub(WAYPOINTS as u64) {
            self.waypoints.remove(&under(key, &oldest.to_be_bytes())[..])?;
        }
        Ok(())
    }

    fn append(
        &mut self,
        key: ConversationKey,
        append: &Append,
        moment: Moment,
    ) -> Result<Outcome, StorageError> {
        self.clear_expired(key, moment)?;
        let head = log_head(&*self.log_heads, key)?;
        let next = next_number(&self.log, key)?;
        let number = if append.replaces { next.checked_sub(1) } else { Some(next) };
        let appended = match number {
            _ if head == Some(append.head) => Appended::Done,
            Some(number) if head == append.expected => {
                self.log.insert(&under(key, &number.to_be_bytes())[..], &append.record[..])?;
                self.log_heads.insert(&key.0[..], &append.head.0[..])?;
                for (id, record) in &append.messages {
                    self.messages.insert(&under(key, &id.0)[..], &record[..])?;
                }
                self.add_waypoint(key, append.waypoint.as_ref())?;
                self.undelivered.insert(&key.0[..], &append.head.0[..])?;
                Appended::Done
            }
            Some(_) | None => return Ok(Ok(Effect::Appended(Appended::Conflict))),
        };
        self.touch(key, moment)?;
        Ok(Ok(Effect::Appended(appended)))
    }

    fn note_delivery(
        &mut self,
        key: ConversationKey,
        head: MessageId,
        delivery: Delivery,
        moment: Moment,
    ) -> Result<Outcome, StorageError> {
        self.clear_expired(key, moment)?;
        if log_head(&*self.log_heads, key)? == Some(head) {
            match delivery {
                Delivery::Delivered => drop(self.undelivered.remove(&key.0[..])?),
                Delivery::Undelivered => drop(self.undelivered.insert(&key.0[..], &head.0[..])?),
            }
        }
        Ok(Ok(Effect::Done))
    }

    fn extend_life(&mut self, key: ConversationKey, moment: Moment) -> Result<Outcome, StorageError> {
        self.clear_expired(key, moment)?;
        if self.touched_at(key)?.is_some() {
            self.touch(key, moment)?;
        }
        Ok(Ok(Effect::Done))
    }

    fn fold(
        &mut self,
        key: ConversationKey,
        covers: MessageId,
        record: &Bytes,
        moment: Moment,
    ) -> Result<Outcome, StorageError> {
        self.clear_expired(key, moment)?;
        let written = match self.stored_fold(key, covers)? {
            Some(stored) if stored == record => FoldWritten::Stored,
            Some(_) => FoldWritten::Other,
            None => {
                let number = next_number(&self.folds, key)?;
                let row = [&covers.0[..], record].concat();
                self.folds.insert(&under(key, &number.to_be_bytes())[..], &row[..])?;
                if let Some(oldest) = number.checked_sub(FOLDS as u64) {
                    self.folds.remove(&under(key, &oldest.to_be_bytes())[..])?;
                }
                FoldWritten::Stored
            }
        };
        self.touch(key, moment)?;
        Ok(Ok(Effect::Folded(written)))
    }

    fn pin(
        &mut self,
        key: ConversationKey,
        record: Option<&Bytes>,
        moment: Moment,
    ) -> Result<Outcome, StorageError> {
        self.clear_expired(key, moment)?;
        match record {
            Some(record) => drop(self.pins.insert(&key.0[..], &record[..])?),
            None => drop(self.pins.remove(&key.0[..])?),
        }
        self.touch(key, moment)?;
        Ok(Ok(Effect::Done))
    }

    fn stored_fold(&self, key: ConversationKey, covers: MessageId) -> Result<Option<Bytes>, StorageError> {
        let (first, last) = range_of(key);
        for row in self.folds.range::<&[u8]>(&first[..]..=&last[..])? {
            let row = row?.1;
            let (known, record) = split_fold(row.value())?;
            if known == covers {
                return Ok(Some(Bytes::copy_from_slice(record)));
            }
        }
        Ok(None)
    }

    fn conclude(
        &mut self,
        key: ConversationKey,
        turn: &Turn,
        messages: &[(MessageId, Bytes)],
        moment: Moment,
    ) -> Result<Outcome, StorageError> {
        self.clear_expired(key, moment)?;
        let row = under(key, &turn.id);
        if self.turns.get(&row[..])?.is_some() {
            self.add_messages(key, messages)?;
            self.touch(key, moment)?;
            return Ok(Ok(Effect::Done));
        }
        let known = self.heads.get(&key.0[..])?.map(|head| head::decode(head.value())).transpose();
        let known = match known {
            Ok(known) => known,
            Err(error) => return Ok(Err(error)),
        };
        self.add_messages(key, messages)?;
        if let Some(head) = &known {
            self.by_last.remove(&at(head.last, key)[..])?;
        }
        let is_new = match &turn.end {
            Some(end) => self.ends.insert(&under(key, &end.0)[..], &[][..])?.is_none(),
            None => false,
        };
        let mut head = known.unwrap_or_default();
        head.add(turn.at, is_new, &turn.counts, turn.labels.clone());
        self.turns.insert(&row[..], &turn.record[..])?;
        self.heads.insert(&key.0[..], &head::encode(&head)[..])?;
        self.by_last.insert(&at(head.last, key)[..], &[][..])?;
        self.touch(key, moment)?;
        Ok(Ok(Effect::Done))
    }

    /// Restarts the time to live. A clock that was set back must not shorten it.
    pub(super) fn touch(&mut self, key: ConversationKey, moment: Moment) -> Result<(), StorageError> {
        let mut touched = moment.now;
        if let Some(before) = self.touched_at(key)? {
            self.by_touched.remove(&at(before, key)[..])?;
            touched = touched.max(before);
        }
        self.touched.insert(&key.0[..], &touched.to_be_bytes()[..])?;
        self.by_touched.insert(&at(touched, key)[..], &[][..])?;
        Ok(())
    }

    pub(super) fn touched_at(&self, key: ConversationKey) -> Result<Option<u64>, StorageError> {
        touched_at(&*self.touched, key)
    }
}

/// The next number in a table of numbered rows.
fn next_number(table: &Rows<'_>, key: ConversationKey) -> Result<u64, StorageError> {
    let (first, last) = range_of(key);
    let Some(newest) = table.range::<&[u8]>(&first[..]..=&last[..])?.next_back() else {
        return Ok(0);
    };
    let number = newest?.0.value().get(key.0.len()..).and_then(|number| number.try_into().ok());
    number
        .and_then(|number| u64::from_be_bytes(number).checked_add(1))
        .ok_or_else(|| StorageError::Corrupted("a row has no number".to_owned()))
}

/// The head of a log; `None` if it is empty.
pub(super) fn log_head(
    heads: &impl ReadableTable<&'static [u8], &'static [u8]>,
    key: ConversationKey,
) -> Result<Option<MessageId>, StorageError> {
    let Some(row) = heads.get(&key.0[..])? else { return Ok(None) };
    let head = row.value().try_into().map(MessageId);
    head.map(Some).map_err(|_| StorageError::Corrupted("the head of a log is not 32 bytes".to_owned()))
}

/// The generation of a conversation.
pub(super) fn generation_of(
    tombstones: &impl ReadableTable<&'static [u8], &'static [u8]>,
    key: ConversationKey,
) -> Result<Generation, StorageError> {
    let Some(row) = tombstones.get(&key.0[..])? else { return Ok(Generation::default()) };
    let generation = parse_tombstone(row.value()).map(|(generation, _)| generation);
    generation.ok_or_else(|| StorageError::Corrupted("a tombstone is not 16 bytes".to_owned()))
}

/// Splits a row into what the fold covers and its record.
pub(super) fn split_fold(row: &[u8]) -> Result<(MessageId, &[u8]), StorageError> {
    let split = row.split_first_chunk().map(|(covers, record)| (MessageId(*covers), record));
    split.ok_or_else(|| StorageError::Corrupted("a fold has no covered prefix".to_owned()))
}

/// When a conversation was last written to; `None` if it does not exist.
pub(super) fn touched_at(
    touched: &impl ReadableTable<&'static [u8], &'static [u8]>,
    key: ConversationKey,
) -> Result<Option<u64>, StorageError> {
    let Some(row) = touched.get(&key.0[..])? else { return Ok(None) };
    match row.value().try_into() {
        Ok(time) => Ok(Some(u64::from_be_bytes(time))),
        Err(_) => Err(StorageError::Corrupted("the time of a write is not 8 bytes".to_owned())),
    }
}
