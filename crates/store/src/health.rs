//! Whether the store is worth waiting for.
//!
//! A request waits for a store that answers, and for one that has just failed to, until it fails again. From then on nobody
//! waits: the store is probed from the side, and is used again as soon as it answers.

use crate::StoreError;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

#[derive(Debug, Default)]
pub(crate) struct Health {
    /// Failures without a success between them.
    failures: AtomicU32,
    /// Nobody waits while this is set.
    is_down: AtomicBool,
    is_probed: AtomicBool,
    /// Why the last request went without; none while all is well.
    reason: Mutex<Option<&'static str>>,
}

/// What a failure means for those who come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    None,
    /// From now on something is wrong: say so, and probe.
    Worse,
}

/// So many failures in a row, and nobody waits any more. One alone may be a hiccup.
const MOST_FAILURES: u32 = 2;

impl Health {
    /// Why the store is not to be waited for; none if it is.
    pub(crate) fn down(&self) -> Option<&'static str> {
        self.is_down.load(Ordering::Relaxed).then(|| self.reason().unwrap_or("store_unreachable"))
    }

    /// Why what is written now may be lost, as far as is known.
    pub(crate) fn reason(&self) -> Option<&'static str> {
        *self.reason.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn failed(&self, error: &StoreError) -> Change {
        let failures = self.failures.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        match error {
            // Waiting again would be the same again.
            StoreError::Unreachable(_) | StoreError::Denied(_) => self.is_down.store(true, Ordering::Relaxed),
            StoreError::Timeout | StoreError::Loading(_) | StoreError::Failed(_) => {
                if failures < MOST_FAILURES {
                    return Change::None;
                }
                self.is_down.store(true, Ordering::Relaxed);
            }
            // It answers at once and can be read.
            StoreError::ReadOnly(_) | StoreError::Full(_) => {}
            // Something about this conversation, not about the store.
            StoreError::Corrupt(_) => return Change::None,
        }
        let before = self.set_reason(Some(error.reason()));
        if before == Some(error.reason()) { Change::None } else { Change::Worse }
    }

    /// An answer came in time. Only a probe, which writes, says that all is well again after a failure.
    pub(crate) fn answered(&self) {
        if self.failures.load(Ordering::Relaxed) != 0 {
            self.failures.store(0, Ordering::Relaxed);
        }
    }

    /// A probe was written. Whether something was wrong until now.
    pub(crate) fn recovered(&self) -> bool {
        self.failures.store(0, Ordering::Relaxed);
        self.is_down.store(false, Ordering::Relaxed);
        self.set_reason(None).is_some()
    }

    /// Whether the caller is the one to probe.
    pub(crate) fn begin_probing(&self) -> bool {
        !self.is_probed.swap(true, Ordering::Relaxed)
    }

    pub(crate) fn end_probing(&self) {
        self.is_probed.store(false, Ordering::Relaxed);
    }

    fn set_reason(&self, reason: Option<&'static str>) -> Option<&'static str> {
        std::mem::replace(&mut *self.reason.lock().unwrap_or_else(PoisonError::into_inner), reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_hiccup_is_forgiven_and_two_are_not() {
        let health = Health::default();
        assert_eq!(health.failed(&StoreError::Timeout), Change::None);
        assert_eq!((health.down(), health.reason()), (None, None));
        health.answered();
        assert_eq!(health.failed(&StoreError::Timeout), Change::None);
        assert_eq!(health.down(), None);
        assert_eq!(health.failed(&StoreError::Timeout), Change::Worse);
        assert_eq!(health.down(), Some("store_timeout"));
        assert!(health.recovered() && !health.recovered());
        assert_eq!((health.down(), health.reason()), (None, None));
    }

    #[test]
    fn nobody_waits_for_what_is_not_there_but_reads_go_on_where_only_writes_fail() {
        let health = Health::default();
        health.failed(&StoreError::Full(String::new()));
        assert_eq!((health.down(), health.reason()), (None, Some("store_full")));
        health.failed(&StoreError::Unreachable(String::new()));
        assert_eq!(health.down(), Some("store_unreachable"));
    }

    #[test]
    fn one_damaged_conversation_says_nothing_about_the_store() {
        let health = Health::default();
        for _ in 0..9 {
            assert_eq!(health.failed(&StoreError::Corrupt(String::new())), Change::None);
        }
        assert_eq!((health.down(), health.reason()), (None, None));
    }
}
