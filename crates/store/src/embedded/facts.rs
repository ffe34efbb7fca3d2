//! Facts, in a table of their own: topic and name to the time of the write and the fact.

use super::EmbeddedStore;
use super::change::{Change, Effect, Outcome};
use super::lifetime::Moment;
use super::tables::Definition;
use crate::StoreError;
use crate::facts::{FactStore, MAX_ALL_FACTS, MAX_FACTS};
use crate::store::StoreFuture;
use bytes::Bytes;
use redb::{
    ReadTransaction, ReadableTable, ReadableTableMetadata, TableDefinition, TableError, WriteTransaction,
};

const FACT: Definition = TableDefinition::new("fact");

impl FactStore for EmbeddedStore {
    fn publish(&self, topic: String, name: String, fact: Bytes) -> StoreFuture<'_, ()> {
        let key = key(&topic, &name);
        Box::pin(async move { self.writer.write(Change::Publish(key, fact)).await.map(drop) })
    }

    fn published(&self, topic: String) -> StoreFuture<'_, Vec<(String, Bytes)>> {
        self.read(move |transaction, moment| published(transaction, &topic, moment))
    }

    fn forget(&self, topic: String) -> StoreFuture<'_, ()> {
        let prefix = key(&topic, "");
        Box::pin(async move { self.writer.write(Change::Forget(prefix)).await.map(drop) })
    }
}

/// Writes a fact, and removes expired ones.
pub(super) fn publish(
    transaction: &WriteTransaction,
    key: &[u8],
    fact: &Bytes,
    moment: Moment,
) -> Result<Outcome, StoreError> {
    let mut table = transaction.open_table(FACT)?;
    table.retain(|_, row| split(row).is_some_and(|(at, _)| moment.is_alive(at)))?;
    let topic = &key[..key.iter().position(|byte| *byte == 0).map_or(key.len(), |end| end + 1)];
    let is_new = table.get(key)?.is_none();
    let mut count = 0;
    for row in table.range::<&[u8]>(topic..)? {
        if !row?.0.value().starts_with(topic) {
            break;
        }
        count += 1;
    }
    if !is_new || (count < MAX_FACTS && table.len()? < MAX_ALL_FACTS as u64) {
        let row = [&moment.now.to_be_bytes()[..], fact].concat();
        table.insert(key, &row[..])?;
    }
    Ok(Ok(Effect::Done))
}

/// Removes the facts whose keys begin with a topic.
pub(super) fn forget(transaction: &WriteTransaction, topic: &[u8]) -> Result<Outcome, StoreError> {
    let mut table = transaction.open_table(FACT)?;
    table.retain_in::<&[u8], _>(topic.., |key, _| !key.starts_with(topic))?;
    Ok(Ok(Effect::Done))
}

fn published(
    transaction: &ReadTransaction,
    topic: &str,
    moment: Moment,
) -> Result<Vec<(String, Bytes)>, StoreError> {
    let table = match transaction.open_table(FACT) {
        Ok(table) => table,
        Err(TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let prefix = key(topic, "");
    let mut facts = Vec::new();
    for row in table.range::<&[u8]>(&prefix[..]..)? {
        let (key, value) = row?;
        let Some(name) = key.value().strip_prefix(&prefix[..]) else { break };
        if let Some((_, fact)) = split(value.value()).filter(|(at, _)| moment.is_alive(*at)) {
            facts.push((String::from_utf8_lossy(name).into_owned(), Bytes::copy_from_slice(fact)));
        }
    }
    Ok(facts)
}

/// Topics have no NUL.
fn key(topic: &str, name: &str) -> Vec<u8> {
    [topic.as_bytes(), &[0], name.as_bytes()].concat()
}

fn split(row: &[u8]) -> Option<(u64, &[u8])> {
    row.split_first_chunk::<8>().map(|(at, fact)| (u64::from_be_bytes(*at), fact))
}
