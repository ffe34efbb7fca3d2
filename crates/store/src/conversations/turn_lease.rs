//! One turn at a time per conversation whose history is kept here, across all processes.

use super::Conversations;
use crate::leases::Claimed;
use crate::store::Lease;
use crate::{ConversationKey, Degraded};
use chacha20poly1305::aead::OsRng;
use chacha20poly1305::aead::rand_core::RngCore;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

/// An exclusive lease on running a turn. It is renewed until it is dropped, and then released for everyone.
#[derive(Debug)]
pub struct TurnLease {
    conversations: Arc<Conversations>,
    key: ConversationKey,
    holder: [u8; 16],
    renewing: JoinHandle<()>,
}

/// Why a turn cannot begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoTurn {
    /// Another turn of the conversation is running.
    Busy,
    /// The store cannot say.
    Unavailable(Degraded),
}

/// A crashed process blocks a conversation for no longer than this.
const DURATION: Duration = Duration::from_secs(5);
const RENEWAL: Duration = Duration::from_millis(1_500);

/// How often a waiting turn tries again.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Every how many attempts a turn that waits for another one of its process asks the store.
const STORE_INTERVAL: u32 = 10;

/// How long a release may take. Nobody waits for it.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(5);

impl Conversations {
    /// Waits until no other turn of the conversation is running, for at most `wait`.
    pub async fn begin_turn(
        self: &Arc<Self>,
        key: ConversationKey,
        wait: Duration,
    ) -> Result<TurnLease, NoTurn> {
        let mut holder = [0; 16];
        OsRng.fill_bytes(&mut holder);
        let deadline = Instant::now() + wait;
        for attempt in 1_u32.. {
            // First here: tasks of one process do not have to ask the store. But now and then, because it knows if the conversation
            // was deleted since, and the turn that runs here has lost its lease.
            let is_free = self.leases.acquire(key, Lease::Turn, holder, DURATION) != Claimed::Taken;
            if is_free || attempt.is_multiple_of(STORE_INTERVAL) {
                let claim = PendingClaim { conversations: self, key, holder };
                match self.with_deadline(self.store.claim(key, Lease::Turn, holder, DURATION)).await {
                    Ok(true) => {
                        std::mem::forget(claim);
                        self.leases.hand_over(key, Lease::Turn, holder, DURATION);
                        return Ok(self.lease(key, holder));
                    }
                    Ok(false) => {
                        std::mem::forget(claim);
                        self.leases.release(key, Lease::Turn, holder);
                    }
                    Err(degraded) => return Err(NoTurn::Unavailable(degraded)),
                }
            }
            if Instant::now() >= deadline {
                return Err(NoTurn::Busy);
            }
            sleep(POLL_INTERVAL).await;
        }
        Err(NoTurn::Busy)
    }

    fn lease(self: &Arc<Self>, key: ConversationKey, holder: [u8; 16]) -> TurnLease {
        let this = Arc::downgrade(self);
        let renewing = tokio::spawn(async move {
            loop {
                sleep(RENEWAL).await;
                let Some(this) = this.upgrade() else { return };
                let renewed = timeout(RENEWAL, this.store.renew(key, Lease::Turn, holder, DURATION)).await;
                if renewed == Ok(Ok(false)) {
                    // The conversation was deleted. Whoever begins it anew does not have to wait for this turn.
                    this.leases.release(key, Lease::Turn, holder);
                    return;
                }
                // If it fails, the log still takes one turn only.
                this.leases.renew(key, Lease::Turn, holder, DURATION);
            }
        });
        TurnLease { conversations: self.clone(), key, holder, renewing }
    }

    /// Releases a lease in the background. If that fails, the lease expires.
    fn spawn_release(self: &Arc<Self>, key: ConversationKey, holder: [u8; 16]) {
        // There is no runtime while the process ends.
        let Ok(runtime) = Handle::try_current() else { return };
        let this = self.clone();
        drop(runtime.spawn(async move {
            let _ = timeout(RELEASE_TIMEOUT, this.store.release(key, Lease::Turn, holder)).await;
            // Only now, so that no task of this process is refused by the store.
            this.leases.release(key, Lease::Turn, holder);
        }));
    }
}

impl Drop for TurnLease {
    fn drop(&mut self) {
        self.renewing.abort();
        self.conversations.spawn_release(self.key, self.holder);
    }
}

/// A claim whose result is not known. The store may grant it even if the caller has given up.
struct PendingClaim<'a> {
    conversations: &'a Arc<Conversations>,
    key: ConversationKey,
    holder: [u8; 16],
}

impl Drop for PendingClaim<'_> {
    fn drop(&mut self) {
        self.conversations.spawn_release(self.key, self.holder);
    }
}
