//! A budget in bytes that requests take from while their bodies and answers are in memory.

use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::timeout;

#[derive(Debug)]
pub(crate) struct MemoryBudget {
    limit: AtomicU64,
    used: AtomicU64,
    /// Requests that wait for memory. Nobody is woken while there are none.
    waiting: AtomicUsize,
    freed: Notify,
}

/// How much of the budget a request may fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    /// All of it. What large requests leave is a reserve for small ones.
    Small,
    /// A large request of a conversation that is under way.
    UnderWay,
    /// Any other large request.
    Large,
}

/// Requests up to this size are small.
pub(crate) const SMALL: u64 = 64 * 1024;

/// How long a large request waits for memory before it is read.
const PATIENCE: Duration = Duration::from_secs(1);

/// The most requests that wait. Each has a connection and a task, and all are woken at once.
const MAX_WAITING: usize = 256;

impl Share {
    fn of(self, limit: u64) -> u64 {
        match self {
            Share::Small => limit,
            Share::UnderWay => limit - limit / 8,
            Share::Large => limit - limit / 4,
        }
    }
}

impl MemoryBudget {
    pub(crate) fn new(limit: u64) -> Arc<MemoryBudget> {
        Arc::new(MemoryBudget {
            limit: AtomicU64::new(limit),
            used: AtomicU64::new(0),
            waiting: AtomicUsize::new(0),
            freed: Notify::new(),
        })
    }

    pub(crate) fn set_limit(&self, limit: u64) {
        self.limit.store(limit, Ordering::Relaxed);
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Whether large requests of new conversations are refused.
    pub(crate) fn is_crowded(&self) -> bool {
        self.used() > Share::Large.of(self.limit())
    }

    pub(crate) fn would_fit(&self, bytes: u64, share: Share) -> bool {
        self.used().saturating_add(bytes) <= share.of(self.limit())
    }

    /// Waits until `bytes` would fit, and says whether they do. Takes nothing: the length that a client declares is only a claim, and a
    /// client that waits must not hold what others wait for.
    pub(crate) async fn wait_for(&self, bytes: u64, share: Share) -> bool {
        let fits = || self.would_fit(bytes, share);
        if fits() {
            return true;
        }
        if bytes > share.of(self.limit()) {
            return false;
        }
        let before = self.waiting.fetch_add(1, Ordering::AcqRel);
        let waiting = Waiting(self);
        if before >= MAX_WAITING {
            return false;
        }
        let wait = async {
            loop {
                let freed = self.freed.notified();
                if fits() {
                    return;
                }
                freed.await;
            }
        };
        let is_free = timeout(PATIENCE, wait).await.is_ok();
        drop(waiting);
        is_free
    }

    fn take(&self, bytes: u64, share: Share) -> bool {
        let most = share.of(self.limit());
        let took = |used: u64| used.checked_add(bytes).filter(|used| *used <= most);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, took).is_ok()
    }

    fn give_back(&self, bytes: u64) {
        if bytes == 0 {
            return;
        }
        self.used.fetch_sub(bytes, Ordering::AcqRel);
        if self.waiting.load(Ordering::Acquire) > 0 {
            self.freed.notify_waiters();
        }
    }
}

/// One that waits, also if it is dropped while it does.
struct Waiting<'a>(&'a MemoryBudget);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}

/// What one request has taken from the budget. Dropping it gives everything back, so whoever keeps the body keeps the charge.
#[derive(Debug)]
pub(crate) struct Charge {
    budget: Arc<MemoryBudget>,
    bytes: AtomicU64,
}

impl Charge {
    pub(crate) fn new(budget: &Arc<MemoryBudget>) -> Charge {
        Charge { budget: budget.clone(), bytes: AtomicU64::new(0) }
    }

    /// A charge of its own on the same budget, for what is in memory already.
    pub(crate) fn another(&self, bytes: u64) -> Charge {
        let charge = Charge::new(&self.budget);
        charge.grow_regardless(bytes);
        charge
    }

    pub(crate) fn budget(&self) -> &MemoryBudget {
        &self.budget
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Takes more, if the budget has as much for this share.
    #[must_use]
    pub(crate) fn grow(&self, bytes: u64, share: Share) -> bool {
        let took = self.budget.take(bytes, share);
        if took {
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        took
    }

    /// Takes more as whoever is neither large nor under way.
    #[must_use]
    pub(crate) fn take(&self, bytes: u64) -> bool {
        let share = if self.bytes() + bytes <= SMALL { Share::Small } else { Share::Large };
        self.grow(bytes, share)
    }

    /// Bytes that are accounted for as long as anybody has them.
    pub(crate) fn kept(&self, bytes: Vec<u8>) -> Bytes {
        let charge = self.another(bytes.len() as u64);
        Bytes::from_owner(Kept { bytes, _charge: charge })
    }

    /// Takes more for an answer that has begun, which cannot be refused. New requests are refused instead.
    pub(crate) fn grow_regardless(&self, bytes: u64) {
        self.budget.used.fetch_add(bytes, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Gives back all but `bytes`.
    pub(crate) fn shrink_to(&self, bytes: u64) {
        let before = self.bytes.fetch_min(bytes, Ordering::Relaxed);
        self.budget.give_back(before.saturating_sub(bytes));
    }
}

struct Kept {
    bytes: Vec<u8>,
    _charge: Charge,
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}
