//! Leases on conversations, held by tasks of this process.

use crate::{ConversationKey, Lease};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

#[derive(Debug, Default)]
pub(crate) struct Leases {
    held: Mutex<Held>,
}

type Held = HashMap<(ConversationKey, Lease), Holding>;

#[derive(Debug)]
struct Holding {
    holder: [u8; 16],
    expires: Instant,
}

/// The result of claiming a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claimed {
    New,
    Renewed,
    /// Another holder has it.
    Taken,
}

/// Longer than any fold or turn takes, and short enough that adding it to an `Instant` cannot overflow.
const MAX_DURATION: Duration = Duration::from_secs(24 * 60 * 60);

impl Leases {
    /// Acquires or renews a lease.
    pub(crate) fn acquire(
        &self,
        key: ConversationKey,
        lease: Lease,
        holder: [u8; 16],
        duration: Duration,
    ) -> Claimed {
        let now = Instant::now();
        let mut held = self.lock();
        // Holders that never released must not pile up. There are only as many leases as running folds and turns.
        held.retain(|_, holding| holding.expires > now);
        let expires = now + duration.min(MAX_DURATION);
        match held.entry((key, lease)) {
            Entry::Vacant(entry) => {
                entry.insert(Holding { holder, expires });
                Claimed::New
            }
            Entry::Occupied(mut entry) if entry.get().holder == holder => {
                entry.get_mut().expires = expires;
                Claimed::Renewed
            }
            Entry::Occupied(_) => Claimed::Taken,
        }
    }

    /// Renews a lease. Returns whether the holder has it still.
    pub(crate) fn renew(
        &self,
        key: ConversationKey,
        lease: Lease,
        holder: [u8; 16],
        duration: Duration,
    ) -> bool {
        let now = Instant::now();
        let mut held = self.lock();
        let holding = held.get_mut(&(key, lease));
        let Some(holding) = holding.filter(|holding| holding.holder == holder && holding.expires > now)
        else {
            return false;
        };
        holding.expires = now + duration.min(MAX_DURATION);
        true
    }

    /// Hands a lease over, whoever holds it.
    pub(crate) fn hand_over(&self, key: ConversationKey, lease: Lease, holder: [u8; 16], duration: Duration) {
        let expires = Instant::now() + duration.min(MAX_DURATION);
        self.lock().insert((key, lease), Holding { holder, expires });
    }

    /// Does nothing if another holder has the lease.
    pub(crate) fn release(&self, key: ConversationKey, lease: Lease, holder: [u8; 16]) {
        let mut held = self.lock();
        if held.get(&(key, lease)).is_some_and(|holding| holding.holder == holder) {
            held.remove(&(key, lease));
        }
    }

    /// Removes the leases on a conversation, whoever holds them.
    pub(crate) fn revoke(&self, key: ConversationKey) {
        let mut held = self.lock();
        held.remove(&(key, Lease::Fold));
        held.remove(&(key, Lease::Turn));
    }

    /// Every change is a single insertion or removal, so a poisoned lock still guards a consistent map.
    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
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
        let acquire = |holder| leases.acquire(KEY, Lease::Fold, holder, DURATION) != Claimed::Taken;
        assert!(acquire(one) && !acquire(other));
        tokio::time::advance(DURATION / 2).await;
        assert!(acquire(one));
        tokio::time::advance(DURATION - Duration::from_millis(1)).await;
        assert!(!acquire(other));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(acquire(other));
        leases.release(KEY, Lease::Fold, one);
        assert!(!acquire(one));
        leases.release(KEY, Lease::Fold, other);
        assert!(acquire(one));
    }

    #[tokio::test(start_paused = true)]
    async fn expired_leases_do_not_pile_up() {
        let leases = Leases::default();
        for number in 0..100 {
            let claimed = leases.acquire(ConversationKey([number; 16]), Lease::Turn, [number; 16], DURATION);
            assert_eq!(claimed, Claimed::New);
            tokio::time::advance(DURATION).await;
        }
        assert_eq!(leases.lock().len(), 1);
    }
}
