//! A circuit breaker for the store.
//!
//! After repeated failures, requests no longer wait for the store. It is probed in the background and used again as soon as a
//! probe succeeds.

use crate::{Degraded, StoreError};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

#[derive(Debug, Default)]
pub(crate) struct Health {
    /// Consecutive failures.
    failures: AtomicU32,
    /// Whether requests skip the store.
    is_down: AtomicBool,
    is_probing: AtomicBool,
    /// Why the store is degraded; `None` if it is healthy.
    degraded: Mutex<Option<Degraded>>,
}

/// How a failure changed the state of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    None,
    /// The store is newly degraded, or for another reason.
    Worse,
}

/// The number of consecutive failures after which requests skip the store. A single one may be a hiccup.
const MAX_FAILURES: u32 = 2;

impl Health {
    /// Why requests skip the store; `None` if they use it.
    pub(crate) fn down(&self) -> Option<Degraded> {
        self.is_down.load(Ordering::Relaxed).then(|| self.degraded().unwrap_or(Degraded::Unreachable))
    }

    /// Why the store is degraded; `None` if it is healthy.
    pub(crate) fn degraded(&self) -> Option<Degraded> {
        *self.degraded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a failed operation.
    pub(crate) fn failed(&self, error: &StoreError) -> Change {
        let failures = self.failures.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        match error {
            // The next attempt would fail in the same way.
            StoreError::Unreachable(_) | StoreError::Denied(_) => self.is_down.store(true, Ordering::Relaxed),
            StoreError::Timeout | StoreError::Loading(_) | StoreError::InUse(_) | StoreError::Failed(_) => {
                if failures < MAX_FAILURES {
                    return Change::None;
                }
                self.is_down.store(true, Ordering::Relaxed);
            }
            // Reads still work, and failures are quick.
            StoreError::ReadOnly(_) | StoreError::Full(_) => {}
            // Concerns this conversation, not the store.
            StoreError::Corrupt(_) => return Change::None,
        }
        let now = Some(Degraded::from(error));
        if self.replace(now) == now { Change::None } else { Change::Worse }
    }

    /// Notes a successful operation. It does not end a degradation: only a probe does, which tests writing.
    pub(crate) fn succeeded(&self) {
        if self.failures.load(Ordering::Relaxed) != 0 {
            self.failures.store(0, Ordering::Relaxed);
        }
    }

    /// Notes a successful probe. Returns whether the store was degraded.
    pub(crate) fn recovered(&self) -> bool {
        self.failures.store(0, Ordering::Relaxed);
        self.is_down.store(false, Ordering::Relaxed);
        self.replace(None).is_some()
    }

    /// Returns whether the caller should start probing; `false` if a probe is running.
    pub(crate) fn begin_probing(&self) -> bool {
        !self.is_probing.swap(true, Ordering::Relaxed)
    }

    pub(crate) fn end_probing(&self) {
        self.is_probing.store(false, Ordering::Relaxed);
    }

    /// Returns the previous state.
    fn replace(&self, degraded: Option<Degraded>) -> Option<Degraded> {
        std::mem::replace(&mut *self.degraded.lock().unwrap_or_else(PoisonError::into_inner), degraded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_consecutive_timeouts_open_the_circuit() {
        let health = Health::default();
        assert_eq!(health.failed(&StoreError::Timeout), Change::None);
        assert_eq!((health.down(), health.degraded()), (None, None));
        health.succeeded();
        assert_eq!(health.failed(&StoreError::Timeout), Change::None);
        assert_eq!(health.down(), None);
        assert_eq!(health.failed(&StoreError::Timeout), Change::Worse);
        assert_eq!(health.down(), Some(Degraded::Timeout));
        assert!(health.recovered() && !health.recovered());
        assert_eq!((health.down(), health.degraded()), (None, None));
    }

    #[test]
    fn an_unreachable_store_is_skipped_and_a_full_one_is_still_read() {
        let health = Health::default();
        health.failed(&StoreError::Full(String::new()));
        assert_eq!((health.down(), health.degraded()), (None, Some(Degraded::Full)));
        health.failed(&StoreError::Unreachable(String::new()));
        assert_eq!(health.down(), Some(Degraded::Unreachable));
    }

    #[test]
    fn corrupt_conversations_do_not_degrade_the_store() {
        let health = Health::default();
        for _ in 0..9 {
            assert_eq!(health.failed(&StoreError::Corrupt(String::new())), Change::None);
        }
        assert_eq!((health.down(), health.degraded()), (None, None));
    }
}
