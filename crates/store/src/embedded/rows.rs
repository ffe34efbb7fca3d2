//! A table that accounts for the space of its rows.

use redb::{AccessGuard, StorageError, Table};
use std::ops::Deref;

type Bytes = &'static [u8];

/// A table of conversations. All changes go through it, so that what they take and free is known without reading the file.
pub(super) struct Rows<'t> {
    table: Table<'t, Bytes, Bytes>,
    growth: i64,
    inserted: usize,
}

/// Reads need no accounting.
impl<'t> Deref for Rows<'t> {
    type Target = Table<'t, Bytes, Bytes>;

    fn deref(&self) -> &Self::Target {
        &self.table
    }
}

impl<'t> Rows<'t> {
    pub(super) fn new(table: Table<'t, Bytes, Bytes>) -> Rows<'t> {
        Rows { table, growth: 0, inserted: 0 }
    }

    /// How many more bytes the rows take than when the table was opened.
    pub(super) fn growth(&self) -> i64 {
        self.growth
    }

    /// How many rows were inserted.
    pub(super) fn inserted(&self) -> usize {
        self.inserted
    }

    pub(super) fn insert(
        &mut self,
        key: &[u8],
        value: &[u8],
    ) -> Result<Option<AccessGuard<'_, Bytes>>, StorageError> {
        self.growth += space(key, value);
        self.inserted += 1;
        let replaced = self.table.insert(key, value)?;
        if let Some(replaced) = &replaced {
            self.growth -= space(key, replaced.value());
        }
        Ok(replaced)
    }

    pub(super) fn remove(&mut self, key: &[u8]) -> Result<Option<AccessGuard<'_, Bytes>>, StorageError> {
        let removed = self.table.remove(key)?;
        if let Some(removed) = &removed {
            self.growth -= space(key, removed.value());
        }
        Ok(removed)
    }

    /// Removes the rows for which `keep` is false.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&[u8]) -> bool) -> Result<(), StorageError> {
        let growth = &mut self.growth;
        self.table.retain(|key, value| {
            let is_kept = keep(key);
            if !is_kept {
                *growth -= space(key, value);
            }
            is_kept
        })
    }
}

const PAGE: usize = 4096;

/// About how many bytes of the file a row takes. Rows are inserted at random places, so that pages of small rows are three fifths full on
/// average. A row that fills most of a page has it alone, and a larger one takes the next power of two of pages.
pub(super) fn space(key: &[u8], value: &[u8]) -> i64 {
    const ENDS: usize = 8;
    let bytes = key.len() + value.len() + ENDS;
    let taken =
        if bytes > PAGE / 2 { bytes.div_ceil(PAGE).next_power_of_two() * PAGE } else { bytes * 5 / 3 };
    i64::try_from(taken).unwrap_or(i64::MAX)
}
