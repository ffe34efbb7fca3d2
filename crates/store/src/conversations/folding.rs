//! Storing summaries, and the lease on making one.

use super::Conversations;
use crate::leases::Claimed;
use crate::record::{self, StoredFold};
use crate::store::{FoldWritten, Generation, Lease, MessageId};
use crate::{ConversationKey, Degraded};
use chacha20poly1305::aead::OsRng;
use chacha20poly1305::aead::rand_core::RngCore;
use std::sync::Arc;
use std::time::Duration;
use tidegate_engine::FoldBackoff;

/// An exclusive, expiring lease on folding a conversation.
///
/// Dropping it releases it for this process at once, and for other processes when it expires. [`FoldLease::release`] releases it
/// for everyone.
#[derive(Debug)]
#[must_use = "dropping a lease keeps other processes from folding until it expires"]
pub struct FoldLease {
    conversations: Arc<Conversations>,
    key: ConversationKey,
    /// Unique to this lease, to distinguish tasks of the same process.
    holder: [u8; 16],
}

impl Conversations {
    /// Stores a fold of a generation. If another fold of the same prefix was stored first, the next recall returns that one. If
    /// storing fails, the local cache keeps the fold and stores it later.
    pub async fn fold(
        self: &Arc<Self>,
        key: ConversationKey,
        generation: Generation,
        fold: StoredFold,
    ) -> Result<FoldWritten, Degraded> {
        let record = record::encode_fold(key, &fold, self.options.keyring.as_ref());
        let covers = MessageId(fold.covers.0);
        let written = self.with_deadline(self.store.fold(key, generation, covers, record)).await;
        match written {
            Ok(FoldWritten::Stored) => self.local.add_fold(key, generation, fold, true),
            Ok(FoldWritten::Gone) => {}
            // `recall` does not read an unshared store again, so do it here.
            Ok(FoldWritten::Other) => {
                let same_prefix = |known: &StoredFold| known.covers == fold.covers;
                let recalled = self.recall_from_store(key).await;
                if recalled.is_ok_and(|recalled| !recalled.folds.iter().any(same_prefix)) {
                    // The stored fold is unreadable. Without ours, every request would summarize the prefix again.
                    self.local.add_fold(key, generation, fold, false);
                    return Ok(FoldWritten::Stored);
                }
            }
            Err(_) => self.local.add_fold(key, generation, fold, false),
        }
        written
    }

    /// Acquires the lease on folding a conversation. Returns `None` if another task has it, in this process or, while the store
    /// is available, in another one. `lease` should be as long as a fold can take.
    pub async fn claim(self: &Arc<Self>, key: ConversationKey, lease: Duration) -> Option<FoldLease> {
        let mut holder = [0; 16];
        OsRng.fill_bytes(&mut holder);
        if self.leases.acquire(key, Lease::Fold, holder, lease) == Claimed::Taken {
            return None;
        }
        // From here on, dropping `claim` releases the lease of this process.
        let claim = FoldLease { conversations: Arc::clone(self), key, holder };
        let is_acquired = self.with_deadline(self.store.claim(key, Lease::Fold, holder, lease)).await;
        // Without the store, each process folds on its own: paying twice is better than having no room for the next message.
        is_acquired.unwrap_or(true).then_some(claim)
    }

    /// When a summary of this conversation is tried again. Applies to this process only.
    #[must_use]
    pub fn fold_backoff(&self, key: ConversationKey) -> FoldBackoff {
        self.backoffs.get(&key).unwrap_or_default()
    }

    pub fn set_fold_backoff(&self, key: ConversationKey, backoff: FoldBackoff) {
        self.backoffs.insert(key, backoff);
    }

    /// Stores the folds that could not be stored when they were made.
    pub(super) async fn save_folds(self: &Arc<Self>, key: ConversationKey, generation: Generation) {
        for fold in self.local.unsaved_folds(key, generation) {
            // A fold that fails again stays unsaved, and so do the ones after it.
            if self.fold(key, generation, fold).await.is_err() {
                return;
            }
        }
    }
}

impl FoldLease {
    /// Releases the lease for all processes.
    pub async fn release(self) {
        let FoldLease { conversations, key, holder } = &self;
        // If this fails, the lease expires. The lease of this process is released only afterwards, so that no local task is
        // refused by the store.
        let _ = conversations.with_deadline(conversations.store.release(*key, Lease::Fold, *holder)).await;
    }
}

impl Drop for FoldLease {
    fn drop(&mut self) {
        self.conversations.leases.release(self.key, Lease::Fold, self.holder);
    }
}
