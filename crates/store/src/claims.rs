//! Who may fold which conversation, among those in this process.

use crate::ConversationKey;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

#[derive(Debug, Default)]
pub(crate) struct Claims {
    held: Mutex<HashMap<ConversationKey, Held>>,
}

#[derive(Debug)]
struct Held {
    by: [u8; 16],
    until: Instant,
}

/// No fold takes this long, and the clock can still say when it ends.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

impl Claims {
    /// Whether `holder` has it now.
    pub(crate) fn claim(&self, key: ConversationKey, holder: [u8; 16], lease: Duration) -> bool {
        let now = Instant::now();
        let mut held = self.held();
        // Whoever never came back for theirs must not stay here for ever. There are as many as folds at work: few.
        held.retain(|_, held| held.until > now);
        let mine = held.entry(key).or_insert(Held { by: holder, until: now });
        if mine.by == holder {
            mine.until = now + lease.min(LONGEST);
        }
        mine.by == holder
    }

    /// Does nothing where another has it.
    pub(crate) fn release(&self, key: ConversationKey, holder: [u8; 16]) {
        let mut held = self.held();
        if held.get(&key).is_some_and(|held| held.by == holder) {
            held.remove(&key);
        }
    }

    pub(crate) fn forget(&self, key: ConversationKey) {
        self.held().remove(&key);
    }

    /// Claims are only inserted and removed, each in one step, so a poisoned lock holds whole ones.
    fn held(&self) -> MutexGuard<'_, HashMap<ConversationKey, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: ConversationKey = ConversationKey([7; 16]);
    const LEASE: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn a_lease_runs_out_to_the_moment_unless_it_is_renewed() {
        let claims = Claims::default();
        let (mine, other) = ([1; 16], [2; 16]);
        assert!(claims.claim(KEY, mine, LEASE) && !claims.claim(KEY, other, LEASE));
        tokio::time::advance(LEASE / 2).await;
        assert!(claims.claim(KEY, mine, LEASE));
        tokio::time::advance(LEASE - Duration::from_millis(1)).await;
        assert!(!claims.claim(KEY, other, LEASE));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(claims.claim(KEY, other, LEASE));
        claims.release(KEY, mine);
        assert!(!claims.claim(KEY, mine, LEASE));
        claims.release(KEY, other);
        assert!(claims.claim(KEY, mine, LEASE));
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_gives_back_does_not_pile_up() {
        let claims = Claims::default();
        for number in 0..100 {
            assert!(claims.claim(ConversationKey([number; 16]), [number; 16], LEASE));
            tokio::time::advance(LEASE).await;
        }
        assert_eq!(claims.held().len(), 1);
    }
}
