//! Leases on folding conversations, held by tasks of this process.

use crate::ConversationKey;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

#[derive(Debug, Default)]
pub(crate) struct Leases {
    leases: Mutex<HashMap<ConversationKey, Lease>>,
}

#[derive(Debug)]
struct Lease {
    holder: [u8; 16],
    expires: Instant,
}

/// Longer than any fold takes, and short enough that adding it to an `Instant` cannot overflow.
const MAX_DURATION: Duration = Duration::from_secs(24 * 60 * 60);

impl Leases {
    /// Acquires or renews a lease. Returns whether `holder` has it now.
    pub(crate) fn acquire(&self, key: ConversationKey, holder: [u8; 16], duration: Duration) -> bool {
        let now = Instant::now();
        let mut leases = self.lock();
        // Holders that never released must not pile up. There are only as many leases as running folds.
        leases.retain(|_, lease| lease.expires > now);
        let lease = leases.entry(key).or_insert(Lease { holder, expires: now });
        if lease.holder == holder {
            lease.expires = now + duration.min(MAX_DURATION);
        }
        lease.holder == holder
    }

    /// Does nothing if another holder has the lease.
    pub(crate) fn release(&self, key: ConversationKey, holder: [u8; 16]) {
        let mut leases = self.lock();
        if leases.get(&key).is_some_and(|lease| lease.holder == holder) {
            leases.remove(&key);
        }
    }

    /// Removes the lease on a conversation, whoever holds it.
    pub(crate) fn revoke(&self, key: ConversationKey) {
        self.lock().remove(&key);
    }

    /// Every change is a single insertion or removal, so a poisoned lock still guards a consistent map.
    fn lock(&self) -> MutexGuard<'_, HashMap<ConversationKey, Lease>> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: ConversationKey = ConversationKey([7; 16]);
    const DURATION: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn a_lease_expires_unless_it_is_renewed() {
        let leases = Leases::default();
        let (one, other) = ([1; 16], [2; 16]);
        assert!(leases.acquire(KEY, one, DURATION) && !leases.acquire(KEY, other, DURATION));
        tokio::time::advance(DURATION / 2).await;
        assert!(leases.acquire(KEY, one, DURATION));
        tokio::time::advance(DURATION - Duration::from_millis(1)).await;
        assert!(!leases.acquire(KEY, other, DURATION));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(leases.acquire(KEY, other, DURATION));
        leases.release(KEY, one);
        assert!(!leases.acquire(KEY, one, DURATION));
        leases.release(KEY, other);
        assert!(leases.acquire(KEY, one, DURATION));
    }

    #[tokio::test(start_paused = true)]
    async fn expired_leases_do_not_pile_up() {
        let leases = Leases::default();
        for number in 0..100 {
            assert!(leases.acquire(ConversationKey([number; 16]), [number; 16], DURATION));
            tokio::time::advance(DURATION).await;
        }
        assert_eq!(leases.lock().len(), 1);
    }
}
