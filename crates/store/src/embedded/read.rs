//! Reads from a snapshot of the tables. Expired conversations are invisible, whether swept or not.

use super::change::{generation_of, log_head, split_fold, touched_at};
use super::head;
use super::lifetime::Moment;
use super::tables::{
    BY_LAST, BY_TOUCHED, Definition, EXCHANGE, FOLD, HEAD, LOG, LOG_HEAD, MESSAGE, PIN, TOMBSTONE, TOUCHED,
    TURN, UNDELIVERED, WAYPOINT, parse_at, range_of,
};
use crate::store::{FOLDS, Generation, Listing, LogRead, MessageId, WAYPOINTS};
use crate::{ConversationKey, Head, StoreError};
use bytes::Bytes;
use redb::{Range, ReadTransaction, ReadableTable, ReadableTableMetadata};
use std::collections::HashSet;

type Read<T> = Result<T, StoreError>;

pub(super) fn waypoints(
    transaction: &ReadTransaction,
    key: ConversationKey,
    moment: Moment,
) -> Read<Vec<Bytes>> {
    let newest_first = |rows: Range<'_, &'static [u8], &'static [u8]>| {
        rows.rev().take(WAYPOINTS).map(|row| Ok(copy(row?.1.value()))).collect::<Read<Vec<Bytes>>>()
    };
    let mut waypoints = in_conversation(transaction, WAYPOINT, key, moment, newest_first)?;
    waypoints.reverse();
    Ok(waypoints)
}

pub(super) fn folds(transaction: &ReadTransaction, key: ConversationKey, moment: Moment) -> Read<Vec<Bytes>> {
    in_conversation(transaction, FOLD, key, moment, |rows| {
        let mut folds = rows
            .rev()
            .take(FOLDS)
            .map(|row| {
                let row = row?.1;
                let (_, record) = split_fold(row.value())?;
                Ok(copy(record))
            })
            .collect::<Read<Vec<Bytes>>>()?;
        folds.reverse();
        Ok(folds)
    })
}

pub(super) fn pinned(
    transaction: &ReadTransaction,
    key: ConversationKey,
    moment: Moment,
) -> Read<Option<Bytes>> {
    in_conversation(transaction, PIN, key, moment, |mut rows| {
        rows.next().map(|row| Ok(copy(row?.1.value()))).transpose()
    })
}

pub(super) fn generation(transaction: &ReadTransaction, key: ConversationKey) -> Read<Generation> {
    Ok(generation_of(&transaction.open_table(TOMBSTONE)?, key)?)
}

pub(super) fn log(
    transaction: &ReadTransaction,
    key: ConversationKey,
    from: usize,
    moment: Moment,
) -> Read<LogRead> {
    let generation = generation(transaction, key)?;
    let turns = in_conversation(transaction, LOG, key, moment, |rows| {
        rows.skip(from).map(|row| Ok(copy(row?.1.value()))).collect()
    })?;
    if !is_alive(transaction, key, moment)? {
        return Ok(LogRead { generation, turns, ..LogRead::default() });
    }
    let head = log_head(&transaction.open_table(LOG_HEAD)?, key)?;
    let is_undelivered = head.is_some() && head == log_head(&transaction.open_table(UNDELIVERED)?, key)?;
    Ok(LogRead { generation, head, is_undelivered, turns })
}

pub(super) fn turns(transaction: &ReadTransaction, key: ConversationKey, moment: Moment) -> Read<Vec<Bytes>> {
    in_conversation(transaction, TURN, key, moment, |rows| rows.map(|row| Ok(copy(row?.1.value()))).collect())
}

pub(super) fn messages(
    transaction: &ReadTransaction,
    key: ConversationKey,
    moment: Moment,
) -> Read<Vec<(MessageId, Bytes)>> {
    by_message(transaction, MESSAGE, key, moment)
}

pub(super) fn exchanges(
    transaction: &ReadTransaction,
    key: ConversationKey,
    moment: Moment,
) -> Read<Vec<(MessageId, Bytes)>> {
    by_message(transaction, EXCHANGE, key, moment)
}

fn by_message(
    transaction: &ReadTransaction,
    table: Definition,
    key: ConversationKey,
    moment: Moment,
) -> Read<Vec<(MessageId, Bytes)>> {
    in_conversation(transaction, table, key, moment, |rows| {
        rows.map(|row| {
            let (row, record) = row?;
            let id = row.value().get(key.0.len()..).and_then(|id| id.try_into().ok());
            let id = id.ok_or_else(|| corrupt("a message id is not 32 bytes"))?;
            Ok((MessageId(id), copy(record.value())))
        })
        .collect()
    })
}

pub(super) fn head(
    transaction: &ReadTransaction,
    key: ConversationKey,
    moment: Moment,
) -> Read<Option<Head>> {
    if !is_alive(transaction, key, moment)? {
        return Ok(None);
    }
    let Some(stored) = transaction.open_table(HEAD)?.get(&key.0[..])? else { return Ok(None) };
    head::decode(stored.value()).map(Some)
}

pub(super) fn list(
    transaction: &ReadTransaction,
    offset: usize,
    limit: usize,
    moment: Moment,
) -> Read<Listing> {
    let heads = transaction.open_table(HEAD)?;
    let by_last = transaction.open_table(BY_LAST)?;
    // Almost always empty, because the writer sweeps every second.
    let mut expired = HashSet::new();
    for row in
        transaction.open_table(BY_TOUCHED)?.range::<&[u8]>(..&moment.first_alive().to_be_bytes()[..])?
    {
        let key = conversation_in(row?.0.value())?;
        if heads.get(&key.0[..])?.is_some() {
            expired.insert(key);
        }
    }
    let mut conversations = Vec::new();
    let mut skipped = 0;
    for row in by_last.range::<&[u8]>(..)?.rev() {
        if conversations.len() == limit {
            break;
        }
        let key = conversation_in(row?.0.value())?;
        if expired.contains(&key) {
            continue;
        }
        if skipped < offset {
            skipped += 1;
            continue;
        }
        let stored = heads.get(&key.0[..])?.ok_or_else(|| corrupt("a listed conversation has no head"))?;
        conversations.push((key, head::decode(stored.value())?));
    }
    let all = usize::try_from(by_last.len()?).unwrap_or(usize::MAX);
    Ok(Listing { conversations, total: all.saturating_sub(expired.len()) })
}

/// Reads the rows of one conversation in a table. Returns the default value if the conversation has expired.
fn in_conversation<T: Default>(
    transaction: &ReadTransaction,
    table: Definition,
    key: ConversationKey,
    moment: Moment,
    read: impl FnOnce(Range<'_, &'static [u8], &'static [u8]>) -> Read<T>,
) -> Read<T> {
    if !is_alive(transaction, key, moment)? {
        return Ok(T::default());
    }
    let (first, last) = range_of(key);
    let table = transaction.open_table(table)?;
    read(ReadableTable::range::<&[u8]>(&table, &first[..]..=&last[..])?)
}

fn is_alive(transaction: &ReadTransaction, key: ConversationKey, moment: Moment) -> Read<bool> {
    let touched = touched_at(&transaction.open_table(TOUCHED)?, key)?;
    Ok(touched.is_some_and(|touched| moment.is_alive(touched)))
}

fn conversation_in(index_row: &[u8]) -> Read<ConversationKey> {
    parse_at(index_row).map(|(_, key)| key).ok_or_else(|| corrupt("an index row has the wrong length"))
}

fn corrupt(problem: &str) -> StoreError {
    StoreError::Corrupt(problem.to_owned())
}

fn copy(value: &[u8]) -> Bytes {
    Bytes::copy_from_slice(value)
}
