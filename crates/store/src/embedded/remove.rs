//! Removes conversations, at once or in steps.

use super::change::{Effect, Outcome};
use super::head;
use super::lifetime::{EXPIRED, Moment};
use super::rows::Rows;
use super::tables::{Tables, at, range_of};
use crate::ConversationKey;
use crate::store::Generation;
use redb::{ReadableTable, StorageError};

impl Tables<'_> {
    pub(super) fn delete(
        &mut self,
        key: ConversationKey,
        next: Generation,
        moment: Moment,
    ) -> Result<Outcome, StorageError> {
        let existed = self.touched_at(key)?.is_some_and(|touched| moment.is_alive(touched));
        self.clear(key, &mut { usize::MAX })?;
        self.unbury(key)?;
        let row = [next.0.to_be_bytes(), moment.now.to_be_bytes()].concat();
        self.tombstones.insert(&key.0[..], &row[..])?;
        self.by_buried.insert(&at(moment.now, key)[..], &[][..])?;
        Ok(Ok(Effect::Deleted { existed }))
    }

    /// Forgets that a conversation was deleted.
    pub(super) fn unbury(&mut self, key: ConversationKey) -> Result<(), StorageError> {
        let buried = self.tombstones.remove(&key.0[..])?.and_then(|row| parse_tombstone(row.value()));
        if let Some((_, buried)) = buried {
            self.by_buried.remove(&at(buried, key)[..])?;
        }
        Ok(())
    }

    /// Removes a conversation that has expired but not been swept, so that a write does not revive it.
    pub(super) fn clear_expired(&mut self, key: ConversationKey, moment: Moment) -> Result<(), StorageError> {
        match self.touched_at(key)? {
            Some(touched) if !moment.is_alive(touched) => self.clear(key, &mut { usize::MAX }),
            Some(_) | None => Ok(()),
        }
    }

    /// Removes up to `rows` rows of a conversation and decrements `rows`. The rows that mark it as expired go last, so that a
    /// partly removed conversation never looks alive.
    pub(super) fn clear(&mut self, key: ConversationKey, rows: &mut usize) -> Result<(), StorageError> {
        for table in [
            &mut self.waypoints,
            &mut self.folds,
            &mut self.log,
            &mut self.log_heads,
            &mut self.undelivered,
            &mut self.pins,
            &mut self.messages,
            &mut self.exchanges,
            &mut self.turns,
            &mut self.ends,
        ] {
            remove_range(table, key, rows)?;
        }
        if *rows == 0 {
            return Ok(());
        }
        *rows -= 1;
        let last =
            self.heads.remove(&key.0[..])?.map(|head| head::decode(head.value()).map(|head| head.last));
        match last {
            Some(Ok(last)) => drop(self.by_last.remove(&at(last, key)[..])?),
            // The time in its index row is unknown, but the row must go, or the listing would count it forever.
            Some(Err(_)) => self.by_last.retain(|row| !row.ends_with(&key.0))?,
            None => {}
        }
        if let Some(touched) = self.touched_at(key)? {
            self.touched.remove(&key.0[..])?;
            self.by_touched.remove(&at(touched, key)[..])?;
        }
        Ok(())
    }

    /// Makes a conversation look expired, so that it can be removed in steps and is never seen in part.
    pub(super) fn expire(&mut self, key: ConversationKey) -> Result<(), StorageError> {
        if let Some(touched) = self.touched_at(key)? {
            self.by_touched.remove(&at(touched, key)[..])?;
            self.touched.insert(&key.0[..], &EXPIRED.to_be_bytes()[..])?;
            self.by_touched.insert(&at(EXPIRED, key)[..], &[][..])?;
        }
        Ok(())
    }
}

/// Splits a tombstone into the generation and the time of the deletion.
pub(super) fn parse_tombstone(row: &[u8]) -> Option<(Generation, u64)> {
    let (generation, at) = row.split_first_chunk::<8>()?;
    Some((Generation(u64::from_be_bytes(*generation)), u64::from_be_bytes(at.try_into().ok()?)))
}

fn remove_range(table: &mut Rows<'_>, key: ConversationKey, rows: &mut usize) -> Result<(), StorageError> {
    let (first, last) = range_of(key);
    let found: Vec<Vec<u8>> = table
        .range::<&[u8]>(&first[..]..=&last[..])?
        .take(*rows)
        .map(|row| Ok(row?.0.value().to_vec()))
        .collect::<Result<_, StorageError>>()?;
    for row in &found {
        table.remove(&row[..])?;
    }
    *rows -= found.len();
    Ok(())
}
