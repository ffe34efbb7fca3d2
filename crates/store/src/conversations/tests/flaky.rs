//! A store that fails on demand.

use super::*;
use crate::exchanges::ExchangeStore;
use crate::facts::FactStore;
use crate::store::Listing;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Debug)]
pub(super) struct Flaky {
    inner: MemoryStore,
    is_failing: AtomicBool,
    is_shared: bool,
    /// How long every operation takes.
    latency: Duration,
}

impl Flaky {
    pub(super) fn shared() -> Arc<Flaky> {
        Flaky::distant(Duration::ZERO)
    }

    pub(super) fn unshared() -> Arc<Flaky> {
        Arc::new(Flaky {
            inner: MemoryStore::new(HOUR),
            is_failing: AtomicBool::new(false),
            is_shared: false,
            latency: Duration::ZERO,
        })
    }

    /// A shared one, this far away.
    pub(super) fn distant(latency: Duration) -> Arc<Flaky> {
        let (inner, is_failing) = (MemoryStore::new(HOUR), AtomicBool::new(false));
        Arc::new(Flaky { inner, is_failing, is_shared: true, latency })
    }

    /// Makes all operations fail with an error that does not open the circuit.
    pub(super) fn fail(&self) {
        self.is_failing.store(true, Ordering::Relaxed);
    }

    pub(super) fn recover(&self) {
        self.is_failing.store(false, Ordering::Relaxed);
    }

    fn unless_failing<'a, T: Send + 'a>(
        &self,
        operation: impl FnOnce() -> StoreFuture<'a, T>,
    ) -> StoreFuture<'a, T> {
        if self.is_failing.load(Ordering::Relaxed) {
            return Box::pin(std::future::ready(Err(StoreError::ReadOnly(String::new()))));
        }
        let (operation, latency) = (operation(), self.latency);
        if latency.is_zero() {
            return operation;
        }
        Box::pin(async move {
            sleep(latency).await;
            operation.await
        })
    }
}

impl FactStore for Flaky {
    fn publish(&self, topic: String, name: String, fact: Bytes) -> StoreFuture<'_, ()> {
        self.unless_failing(|| self.inner.publish(topic, name, fact))
    }
    fn published(&self, topic: String) -> StoreFuture<'_, Vec<(String, Bytes)>> {
        self.unless_failing(|| self.inner.published(topic))
    }
    fn forget(&self, topic: String) -> StoreFuture<'_, ()> {
        self.unless_failing(|| self.inner.forget(topic))
    }
}

impl ExchangeStore for Flaky {
    fn save_exchange(
        &self,
        key: ConversationKey,
        generation: Generation,
        after: MessageId,
        record: Bytes,
    ) -> StoreFuture<'_, Written> {
        self.unless_failing(|| self.inner.save_exchange(key, generation, after, record))
    }
    fn exchanges(&self, key: ConversationKey) -> StoreFuture<'_, Vec<(MessageId, Bytes)>> {
        self.unless_failing(|| self.inner.exchanges(key))
    }
}

impl Store for Flaky {
    fn recall(&self, key: ConversationKey) -> StoreFuture<'_, Recollection> {
        self.unless_failing(|| self.inner.recall(key))
    }
    fn journal(
        &self,
        key: ConversationKey,
        generation: Generation,
        journal: Journal,
    ) -> StoreFuture<'_, Written> {
        self.unless_failing(|| self.inner.journal(key, generation, journal))
    }
    fn fold(
        &self,
        key: ConversationKey,
        generation: Generation,
        covers: MessageId,
        record: Bytes,
    ) -> StoreFuture<'_, FoldWritten> {
        self.unless_failing(|| self.inner.fold(key, generation, covers, record))
    }
    fn log(&self, key: ConversationKey, from: usize) -> StoreFuture<'_, LogRead> {
        self.unless_failing(|| self.inner.log(key, from))
    }
    fn append(
        &self,
        key: ConversationKey,
        generation: Generation,
        append: Append,
    ) -> StoreFuture<'_, Appended> {
        self.unless_failing(|| self.inner.append(key, generation, append))
    }
    fn note_delivery(
        &self,
        key: ConversationKey,
        generation: Generation,
        head: MessageId,
        delivery: Delivery,
    ) -> StoreFuture<'_, Written> {
        self.unless_failing(|| self.inner.note_delivery(key, generation, head, delivery))
    }
    fn pin(&self, key: ConversationKey, record: Option<Bytes>) -> StoreFuture<'_, ()> {
        self.unless_failing(|| self.inner.pin(key, record))
    }
    fn claim(
        &self,
        key: ConversationKey,
        lease: Lease,
        holder: [u8; 16],
        duration: Duration,
    ) -> StoreFuture<'_, bool> {
        self.unless_failing(|| self.inner.claim(key, lease, holder, duration))
    }
    fn renew(
        &self,
        key: ConversationKey,
        lease: Lease,
        holder: [u8; 16],
        duration: Duration,
    ) -> StoreFuture<'_, bool> {
        self.unless_failing(|| self.inner.renew(key, lease, holder, duration))
    }
    fn release(&self, key: ConversationKey, lease: Lease, holder: [u8; 16]) -> StoreFuture<'_, ()> {
        self.unless_failing(|| self.inner.release(key, lease, holder))
    }
    fn count(&self, key: ConversationKey, generation: Generation, turn: Turn) -> StoreFuture<'_, Written> {
        self.unless_failing(|| self.inner.count(key, generation, turn))
    }
    fn head(&self, key: ConversationKey) -> StoreFuture<'_, Option<Head>> {
        self.unless_failing(|| self.inner.head(key))
    }
    fn list(&self, offset: usize, limit: usize) -> StoreFuture<'_, Listing> {
        self.unless_failing(|| self.inner.list(offset, limit))
    }
    fn turns(&self, key: ConversationKey) -> StoreFuture<'_, Vec<Bytes>> {
        self.unless_failing(|| self.inner.turns(key))
    }
    fn messages(&self, key: ConversationKey) -> StoreFuture<'_, Vec<(MessageId, Bytes)>> {
        self.unless_failing(|| self.inner.messages(key))
    }
    fn delete(&self, key: ConversationKey, next: Generation) -> StoreFuture<'_, bool> {
        self.unless_failing(|| self.inner.delete(key, next))
    }
    fn probe(&self) -> StoreFuture<'_, ()> {
        self.unless_failing(|| self.inner.probe())
    }
    fn is_shared(&self) -> bool {
        self.is_shared
    }
}
