//! Summaries: who makes one, and where it goes.

use super::Conversations;
use crate::ConversationKey;
use crate::record::{self, StoredFold};
use crate::store::MessageId;
use chacha20poly1305::aead::OsRng;
use chacha20poly1305::aead::rand_core::RngCore;
use std::sync::Arc;
use std::time::Duration;

/// The right to fold a conversation, until it is given back or its lease runs out.
///
/// One that is only dropped is given back to this process at once, and to others when its lease runs out.
#[derive(Debug)]
#[must_use = "a claim that is dropped keeps other processes from folding until its lease runs out"]
pub struct Claim {
    conversations: Arc<Conversations>,
    key: ConversationKey,
    /// Of this claim alone, so that two tasks of a process are told apart.
    holder: [u8; 16],
}

impl Conversations {
    /// Stores a fold. Whether it is the one to use: if not, another covers the same prefix, and the next recall brings that
    /// one. If it cannot be stored, this process goes on with it and stores it when the store takes writes again.
    pub async fn fold(
        self: &Arc<Self>,
        key: ConversationKey,
        fold: StoredFold,
    ) -> Result<bool, &'static str> {
        let record = record::encode_fold(key, &fold, self.options.keyring.as_ref());
        let written = self.waited(self.store.fold(key, MessageId(fold.covers.0), record)).await;
        match written {
            Ok(true) => self.local.add_fold(key, fold, true),
            // A store that nobody else writes to is not asked again by itself.
            Ok(false) => {
                let is_kept = |known: &StoredFold| known.covers == fold.covers;
                if self.ask(key).await.is_ok_and(|recalled| !recalled.folds.iter().any(is_kept)) {
                    // The other cannot be read. Without ours, the same would be summarized again at each request.
                    self.local.add_fold(key, fold, false);
                    return Ok(true);
                }
            }
            Err(_) => self.local.add_fold(key, fold, false),
        }
        written
    }

    /// The right to fold a conversation, if nobody else has it: neither in this process nor, while the store can say so, in
    /// another. The lease should be as long as a fold can take.
    pub async fn claim(self: &Arc<Self>, key: ConversationKey, lease: Duration) -> Option<Claim> {
        let mut holder = [0; 16];
        OsRng.fill_bytes(&mut holder);
        if !self.claims.claim(key, holder, lease) {
            return None;
        }
        // From here on it is given back however this ends.
        let claim = Claim { conversations: Arc::clone(self), key, holder };
        let is_ours = self.waited(self.store.claim(key, holder, lease)).await;
        // Without the store, each process folds for itself: twice the cost is better than no room for the next message.
        is_ours.unwrap_or(true).then_some(claim)
    }

    /// Folding this conversation has failed or was of no use: it is not worth trying again until then, in milliseconds
    /// since 1970. Known to this process alone: each tries for itself.
    pub fn cool_down(&self, key: ConversationKey, until: u64) {
        self.cooling.insert(key, until);
    }

    #[must_use]
    pub fn is_cooling(&self, key: ConversationKey, now: u64) -> bool {
        self.cooling.get(&key).is_some_and(|until| now < until)
    }

    /// Stores what could not be stored when it was made.
    pub(super) async fn save_folds(self: &Arc<Self>, key: ConversationKey) {
        for fold in self.local.unsaved_folds(key) {
            // What fails again is still unsaved, and so are those behind it.
            if self.fold(key, fold).await.is_err() {
                return;
            }
        }
    }
}

impl Claim {
    /// Gives it back to everybody.
    pub async fn release(self) {
        let Claim { conversations, key, holder } = &self;
        // If it fails, the lease runs out. Our own process waits for it, so that nobody here is told that the store says no.
        let _ = conversations.waited(conversations.store.release(*key, *holder)).await;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.conversations.claims.release(self.key, self.holder);
    }
}
