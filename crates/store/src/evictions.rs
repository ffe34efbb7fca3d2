//! The conversations that a store removed before their time, because it was full.

use crate::ConversationKey;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Counts evictions, and remembers which conversations are gone until the caches have been told.
#[derive(Debug, Default)]
pub(crate) struct Evictions {
    count: AtomicU64,
    /// The number of keys in `untold`. Read by every request, which therefore takes no lock.
    waiting: AtomicU64,
    untold: Mutex<Vec<ConversationKey>>,
}

impl Evictions {
    pub(crate) fn add(&self, keys: &[ConversationKey]) {
        if keys.is_empty() {
            return;
        }
        let mut untold = self.untold.lock().unwrap_or_else(PoisonError::into_inner);
        untold.extend_from_slice(keys);
        self.count.fetch_add(keys.len() as u64, Ordering::Relaxed);
        self.waiting.store(untold.len() as u64, Ordering::Release);
    }

    /// How many conversations were evicted since the process started.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// The conversations evicted since the last call.
    pub(crate) fn take(&self) -> Vec<ConversationKey> {
        if self.waiting.load(Ordering::Acquire) == 0 {
            return Vec::new();
        }
        let mut untold = self.untold.lock().unwrap_or_else(PoisonError::into_inner);
        self.waiting.store(0, Ordering::Release);
        mem::take(&mut untold)
    }
}
