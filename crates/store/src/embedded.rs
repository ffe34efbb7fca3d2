//! A store in a local file, for one process, on [`redb`].
//!
//! A write completes when it is on disk. One thread writes; changes that arrive while it waits for the disk share the next
//! commit. Reads see whole commits only and do not wait for writes. Expired conversations are hidden at once and removed
//! later, in small steps.
//!
//! Every commit includes what is needed to open the file after a crash without reading all of it (`quick_repair`). That costs a
//! second disk sync, which is negligible next to a model's response; a restart that takes minutes is not.
//!
//! The space of removed rows is reused, and the free end of the file is returned when the store is closed. There is no
//! compaction: it would have to read the whole file, and the time to live already bounds its size.

mod change;
mod error;
mod facts;
mod file;
mod head;
mod lifetime;
mod read;
mod sweep;
mod tables;
#[cfg(test)]
mod tests;
mod writer;

use crate::leases::Leases;
use crate::store::{Journal, Listing, MessageId, Recollection, Store, StoreFuture, Turn};
use crate::{Clock, ConversationKey, Head, StoreError, wall_clock};
use bytes::Bytes;
use change::Change;
use file::{DatabaseFile, Opener};
use lifetime::{Lifetime, Moment};
use redb::{ReadTransaction, ReadableDatabase};
use std::future::ready;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use writer::Writer;

/// A [`Store`] in a directory. Dropping it waits for pending writes and reads, then closes the file.
#[derive(Debug)]
pub struct EmbeddedStore {
    file: Arc<DatabaseFile>,
    lifetime: Lifetime,
    writer: Writer,
    /// Not on disk: no other process has the directory open, and a lease that outlives its holder is useless.
    leases: Leases,
}

impl EmbeddedStore {
    /// Opens the database in a directory, creating both if necessary. Blocks on the disk.
    ///
    /// # Errors
    /// If the directory is not writable, another process has the database open, or the file is not a database of ours.
    pub fn open(directory: &Path, ttl: Duration) -> Result<EmbeddedStore, StoreError> {
        EmbeddedStore::open_with_clock(directory, ttl, wall_clock)
    }

    /// For tests, which control the time.
    #[doc(hidden)]
    pub fn open_with_clock(
        directory: &Path,
        ttl: Duration,
        clock: Clock,
    ) -> Result<EmbeddedStore, StoreError> {
        EmbeddedStore::open_with(directory, ttl, clock, file::open_database)
    }

    fn open_with(
        directory: &Path,
        ttl: Duration,
        clock: Clock,
        opener: Opener,
    ) -> Result<EmbeddedStore, StoreError> {
        let file = Arc::new(DatabaseFile::open(directory, opener)?);
        let lifetime = Lifetime::new(ttl, clock);
        let writer = Writer::start(Arc::clone(&file), lifetime)?;
        Ok(EmbeddedStore { file, lifetime, writer, leases: Leases::default() })
    }

    /// Reads on a blocking thread, because reading may wait for the disk.
    fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&ReadTransaction, Moment) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        let file = Arc::clone(&self.file);
        let lifetime = self.lifetime;
        Box::pin(async move {
            let reading = tokio::task::spawn_blocking(move || {
                file.with(|database| read(&database.begin_read()?, lifetime.moment()))
            });
            reading
                .await
                .unwrap_or_else(|error| Err(StoreError::Failed(format!("a read was interrupted: {error}"))))
        })
    }
}

impl Drop for EmbeddedStore {
    fn drop(&mut self) {
        self.writer.stop();
        self.file.close();
    }
}

impl Store for EmbeddedStore {
    fn recall(&self, key: ConversationKey) -> StoreFuture<'_, Recollection> {
        self.read(move |transaction, moment| {
            let waypoints = read::waypoints(transaction, key, moment)?;
            let folds = read::folds(transaction, key, moment)?;
            let pinned = read::pinned(transaction, key, moment)?;
            Ok(Recollection { waypoints, folds, pinned })
        })
    }

    fn journal(&self, key: ConversationKey, journal: Journal) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.writer.write(Change::Journal(key, journal)).await.map(drop) })
    }

    fn fold(&self, key: ConversationKey, covers: MessageId, record: Bytes) -> StoreFuture<'_, bool> {
        Box::pin(self.writer.write(Change::Fold(key, covers, record)))
    }

    fn pin(&self, key: ConversationKey, record: Option<Bytes>) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.writer.write(Change::Pin(key, record)).await.map(drop) })
    }

    fn claim(&self, key: ConversationKey, holder: [u8; 16], lease: Duration) -> StoreFuture<'_, bool> {
        Box::pin(ready(Ok(self.leases.acquire(key, holder, lease))))
    }

    fn release(&self, key: ConversationKey, holder: [u8; 16]) -> StoreFuture<'_, ()> {
        self.leases.release(key, holder);
        Box::pin(ready(Ok(())))
    }

    fn count(&self, key: ConversationKey, turn: Turn) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.writer.write(Change::Count(key, turn)).await.map(drop) })
    }

    fn head(&self, key: ConversationKey) -> StoreFuture<'_, Option<Head>> {
        self.read(move |transaction, moment| read::head(transaction, key, moment))
    }

    fn list(&self, offset: usize, limit: usize) -> StoreFuture<'_, Listing> {
        self.read(move |transaction, moment| read::list(transaction, offset, limit, moment))
    }

    fn turns(&self, key: ConversationKey) -> StoreFuture<'_, Vec<Bytes>> {
        self.read(move |transaction, moment| read::turns(transaction, key, moment))
    }

    fn messages(&self, key: ConversationKey) -> StoreFuture<'_, Vec<(MessageId, Bytes)>> {
        self.read(move |transaction, moment| read::messages(transaction, key, moment))
    }

    fn delete(&self, key: ConversationKey) -> StoreFuture<'_, bool> {
        self.leases.revoke(key);
        Box::pin(self.writer.write(Change::Delete(key)))
    }

    fn probe(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.writer.write(Change::Probe).await.map(drop) })
    }

    fn is_shared(&self) -> bool {
        false
    }
}
