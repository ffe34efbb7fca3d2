//! How much space the conversations take in the file, and how much they may.

use super::rows::space;
use super::tables::{ALL, META, Tables};
use crate::StoreError;
use crate::evictions::Evictions;
use redb::{Database, ReadableDatabase, ReadableTable, WriteTransaction};
use std::sync::atomic::{AtomicU64, Ordering};

/// The space of conversations. The file keeps its largest size, because freed space is used again and not returned; so the space in use
/// is counted row by row, and stored with every commit.
#[derive(Debug)]
pub(super) struct Space {
    used: AtomicU64,
    limit: u64,
    pub(super) evictions: Evictions,
}

/// The name of the row that holds the space in use.
const USED: &str = "bytes";

impl Space {
    /// Reads how much is in use. A file of a version that did not count is read once.
    pub(super) fn open(database: &Database, limit: u64) -> Result<Space, StoreError> {
        let known = database.begin_read()?.open_table(META)?.get(USED)?.map(|used| used.value());
        let used = known.map_or_else(|| measure(database), Ok)?;
        Ok(Space { used: AtomicU64::new(used), limit, evictions: Evictions::default() })
    }

    pub(super) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    /// By how much the space exceeds its limit with the changes of a transaction.
    pub(super) fn excess(&self, tables: &Tables<'_>) -> u64 {
        self.with(tables).saturating_sub(self.limit)
    }

    /// The space in use once a transaction is committed.
    pub(super) fn with(&self, tables: &Tables<'_>) -> u64 {
        self.used().saturating_add_signed(tables.growth())
    }

    /// Stores the space with the transaction that changes it.
    pub(super) fn store(transaction: &WriteTransaction, used: u64) -> Result<(), StoreError> {
        transaction.open_table(META)?.insert(USED, used)?;
        Ok(())
    }

    /// Called when a transaction was committed.
    pub(super) fn committed(&self, used: u64) {
        self.used.store(used, Ordering::Relaxed);
    }
}

/// Reads all rows.
fn measure(database: &Database) -> Result<u64, StoreError> {
    let transaction = database.begin_read()?;
    let mut used = 0u64;
    for table in ALL {
        for row in transaction.open_table(table)?.iter()? {
            let (key, value) = row?;
            used = used.saturating_add_signed(space(key.value(), value.value()));
        }
    }
    Ok(used)
}
