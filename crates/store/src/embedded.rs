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
//! compaction: it would have to read the whole file. Beyond a maximum size the conversations that were not written to for longest are
//! removed, in the commit that would exceed it.

mod change;
mod error;
mod exchanges;
mod facts;
mod file;
mod head;
mod lifetime;
mod read;
mod readers;
mod remove;
mod rows;
mod space;
mod sweep;
mod tables;
#[cfg(test)]
mod tests;
mod writer;

use crate::leases::{Claimed, Leases};
use crate::store::{
    Append, Appended, Delivery, FoldWritten, Generation, Journal, Lease, Listing, LogRead, MessageId,
    Recollection, Store, StoreFuture, StoreSize, Turn, Written,
};
use crate::{Clock, ConversationKey, Head, StoreError, wall_clock};
use bytes::Bytes;
use change::{Change, Effect};
use file::{DatabaseFile, Opener};
use lifetime::{Lifetime, Moment};
use readers::Readers;
use redb::{ReadTransaction, ReadableDatabase};
use space::Space;
use std::future::ready;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use writer::Writer;

/// A [`Store`] in a directory. Dropping it waits for pending writes and reads, then closes the file.
#[derive(Debug)]
pub struct EmbeddedStore {
    file: Arc<DatabaseFile>,
    space: Arc<Space>,
    lifetime: Lifetime,
    writer: Writer,
    readers: Readers,
    /// Not on disk: no other process has the directory open, and a lease that outlives its holder is useless.
    leases: Leases,
}

impl EmbeddedStore {
    /// The maximum size where none is given.
    pub const DEFAULT_MAX_SIZE: u64 = 10 << 30;

    /// Opens the database in a directory, creating both if necessary. Blocks on the disk.
    ///
    /// # Errors
    /// If the directory is not writable, another process has the database open, or the file is not a database of ours.
    pub fn open(directory: &Path, ttl: Duration) -> Result<EmbeddedStore, StoreError> {
        EmbeddedStore::open_with_clock(directory, ttl, wall_clock)
    }

    /// Opens a database of at most `max_size` bytes. Beyond it, the conversations that were not written to for longest go.
    ///
    /// # Errors
    /// As [`EmbeddedStore::open`].
    pub fn open_bounded(directory: &Path, ttl: Duration, max_size: u64) -> Result<EmbeddedStore, StoreError> {
        EmbeddedStore::open_with(directory, ttl, max_size, wall_clock, file::open_database)
    }

    /// For tests, which control the time.
    #[doc(hidden)]
    pub fn open_with_clock(
        directory: &Path,
        ttl: Duration,
        clock: Clock,
    ) -> Result<EmbeddedStore, StoreError> {
        EmbeddedStore::open_with(directory, ttl, EmbeddedStore::DEFAULT_MAX_SIZE, clock, file::open_database)
    }

    fn open_with(
        directory: &Path,
        ttl: Duration,
        max_size: u64,
        clock: Clock,
        opener: Opener,
    ) -> Result<EmbeddedStore, StoreError> {
        let file = Arc::new(DatabaseFile::open(directory, opener)?);
        let lifetime = Lifetime::new(ttl, clock);
        let space = Arc::new(file.with(|database| Space::open(database, max_size))?);
        let writer = Writer::start(Arc::clone(&file), Arc::clone(&space), lifetime)?;
        let readers = Readers::start()?;
        Ok(EmbeddedStore { file, space, lifetime, writer, readers, leases: Leases::default() })
    }

    fn write(&self, change: Change) -> StoreFuture<'_, Written> {
        Box::pin(async move {
            let effect = self.writer.write(change).await?;
            Ok(if effect == Effect::Gone { Written::Gone } else { Written::Done })
        })
    }

    /// Reads on a thread for reads, because reading may wait for the disk.
    fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&ReadTransaction, Moment) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        let file = Arc::clone(&self.file);
        let lifetime = self.lifetime;
        let read = move || file.with(|database| read(&database.begin_read()?, lifetime.moment()));
        Box::pin(async move { self.readers.read(read).await })
    }
}

/// The writer mixed up two changes.
fn unexpected(effect: Effect) -> StoreError {
    StoreError::Failed(format!("a change had another effect: {effect:?}"))
}

impl Drop for EmbeddedStore {
    fn drop(&mut self) {
        self.writer.stop();
        self.readers.stop();
        self.file.close();
    }
}

impl Store for EmbeddedStore {
    fn recall(&self, key: ConversationKey) -> StoreFuture<'_, Recollection> {
        self.read(move |transaction, moment| {
            let waypoints = read::waypoints(transaction, key, moment)?;
            let folds = read::folds(transaction, key, moment)?;
            let pinned = read::pinned(transaction, key, moment)?;
            let generation = read::generation(transaction, key)?;
            Ok(Recollection { generation, waypoints, folds, pinned })
        })
    }

    fn journal(
        &self,
        key: ConversationKey,
        generation: Generation,
        journal: Journal,
    ) -> StoreFuture<'_, Written> {
        self.write(Change::Journal(key, generation, journal))
    }

    fn fold(
        &self,
        key: ConversationKey,
        generation: Generation,
        covers: MessageId,
        record: Bytes,
    ) -> StoreFuture<'_, FoldWritten> {
        Box::pin(async move {
            match self.writer.write(Change::Fold(key, generation, covers, record)).await? {
                Effect::Folded(written) => Ok(written),
                Effect::Gone => Ok(FoldWritten::Gone),
                other => Err(unexpected(other)),
            }
        })
    }

    fn log(&self, key: ConversationKey, from: usize) -> StoreFuture<'_, LogRead> {
        self.read(move |transaction, moment| read::log(transaction, key, from, moment))
    }

    fn append(
        &self,
        key: ConversationKey,
        generation: Generation,
        append: Append,
    ) -> StoreFuture<'_, Appended> {
        Box::pin(async move {
            match self.writer.write(Change::Append(key, generation, append)).await? {
                Effect::Appended(appended) => Ok(appended),
                Effect::Gone => Ok(Appended::Gone),
                other => Err(unexpected(other)),
            }
        })
    }

    fn note_delivery(
        &self,
        key: ConversationKey,
        generation: Generation,
        head: MessageId,
        delivery: Delivery,
    ) -> StoreFuture<'_, Written> {
        self.write(Change::NoteDelivery(key, generation, head, delivery))
    }

    fn pin(&self, key: ConversationKey, record: Option<Bytes>) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.writer.write(Change::Pin(key, record)).await.map(drop) })
    }

    fn claim(
        &self,
        key: ConversationKey,
        lease: Lease,
        holder: [u8; 16],
        duration: Duration,
    ) -> StoreFuture<'_, bool> {
        Box::pin(async move {
            let claimed = self.leases.acquire(key, lease, holder, duration);
            if claimed == Claimed::New && lease == Lease::Turn {
                self.writer.write(Change::Touch(key)).await?;
            }
            Ok(claimed != Claimed::Taken)
        })
    }

    fn renew(
        &self,
        key: ConversationKey,
        lease: Lease,
        holder: [u8; 16],
        duration: Duration,
    ) -> StoreFuture<'_, bool> {
        Box::pin(ready(Ok(self.leases.renew(key, lease, holder, duration))))
    }

    fn release(&self, key: ConversationKey, lease: Lease, holder: [u8; 16]) -> StoreFuture<'_, ()> {
        self.leases.release(key, lease, holder);
        Box::pin(ready(Ok(())))
    }

    fn count(&self, key: ConversationKey, generation: Generation, turn: Turn) -> StoreFuture<'_, Written> {
        self.conclude(key, generation, turn, Vec::new())
    }

    fn conclude(
        &self,
        key: ConversationKey,
        generation: Generation,
        turn: Turn,
        messages: Vec<(MessageId, Bytes)>,
    ) -> StoreFuture<'_, Written> {
        self.write(Change::Conclude(key, generation, turn, messages))
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

    fn delete(&self, key: ConversationKey, next: Generation) -> StoreFuture<'_, bool> {
        self.leases.revoke(key);
        Box::pin(async move {
            match self.writer.write(Change::Delete(key, next)).await? {
                Effect::Deleted { existed } => Ok(existed),
                other => Err(unexpected(other)),
            }
        })
    }

    fn probe(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.writer.write(Change::Probe).await.map(drop) })
    }

    fn memory(&self) -> u64 {
        // The database fills its cache and does not say how far.
        file::CACHE_BYTES as u64
    }

    fn size(&self) -> Option<StoreSize> {
        let (bytes, limit) = (self.space.used(), self.space.limit());
        Some(StoreSize { bytes, limit, evicted: self.space.evictions.count() })
    }

    fn take_evicted(&self) -> Vec<ConversationKey> {
        self.space.evictions.take()
    }

    fn is_shared(&self) -> bool {
        false
    }
}
