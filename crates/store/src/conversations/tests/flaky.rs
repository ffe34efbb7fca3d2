//! A store that takes no writes, and answers nothing, for as long as a test wants.

use super::*;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Debug)]
pub(super) struct Flaky {
    inner: MemoryStore,
    is_broken: AtomicBool,
    is_shared: bool,
}

impl Flaky {
    pub(super) fn shared() -> Arc<Flaky> {
        Arc::new(Flaky { inner: MemoryStore::new(HOUR), is_broken: AtomicBool::new(false), is_shared: true })
    }

    /// Of one process alone.
    pub(super) fn own() -> Arc<Flaky> {
        Arc::new(Flaky { inner: MemoryStore::new(HOUR), is_broken: AtomicBool::new(false), is_shared: false })
    }

    /// With an error that keeps nobody from asking again.
    pub(super) fn breaks(&self) {
        self.is_broken.store(true, Ordering::Relaxed);
    }

    pub(super) fn heals(&self) {
        self.is_broken.store(false, Ordering::Relaxed);
    }

    fn unless_broken<'a, T: Send + 'a>(&self, answer: impl FnOnce() -> Answer<'a, T>) -> Answer<'a, T> {
        if self.is_broken.load(Ordering::Relaxed) {
            return Box::pin(std::future::ready(Err(StoreError::ReadOnly(String::new()))));
        }
        answer()
    }
}

impl Store for Flaky {
    fn recall(&self, key: ConversationKey) -> Answer<'_, Recollection> {
        self.unless_broken(|| self.inner.recall(key))
    }
    fn journal(&self, key: ConversationKey, journal: Journal) -> Answer<'_, ()> {
        self.unless_broken(|| self.inner.journal(key, journal))
    }
    fn fold(&self, key: ConversationKey, covers: MessageId, record: Bytes) -> Answer<'_, bool> {
        self.unless_broken(|| self.inner.fold(key, covers, record))
    }
    fn pin(&self, key: ConversationKey, record: Option<Bytes>) -> Answer<'_, ()> {
        self.unless_broken(|| self.inner.pin(key, record))
    }
    fn claim(&self, key: ConversationKey, holder: [u8; 16], lease: Duration) -> Answer<'_, bool> {
        self.unless_broken(|| self.inner.claim(key, holder, lease))
    }
    fn release(&self, key: ConversationKey, holder: [u8; 16]) -> Answer<'_, ()> {
        self.unless_broken(|| self.inner.release(key, holder))
    }
    fn count(&self, key: ConversationKey, turn: Turn) -> Answer<'_, ()> {
        self.unless_broken(|| self.inner.count(key, turn))
    }
    fn head(&self, key: ConversationKey) -> Answer<'_, Option<Head>> {
        self.unless_broken(|| self.inner.head(key))
    }
    fn list(&self, offset: usize, limit: usize) -> Answer<'_, Listing> {
        self.unless_broken(|| self.inner.list(offset, limit))
    }
    fn turns(&self, key: ConversationKey) -> Answer<'_, Vec<Bytes>> {
        self.unless_broken(|| self.inner.turns(key))
    }
    fn messages(&self, key: ConversationKey) -> Answer<'_, Vec<(MessageId, Bytes)>> {
        self.unless_broken(|| self.inner.messages(key))
    }
    fn delete(&self, key: ConversationKey) -> Answer<'_, bool> {
        self.unless_broken(|| self.inner.delete(key))
    }
    fn probe(&self) -> Answer<'_, ()> {
        self.unless_broken(|| self.inner.probe())
    }
    fn is_shared(&self) -> bool {
        self.is_shared
    }
}
