//! Heavy work: everything that would keep a worker from its other requests for hundreds of microseconds.
//!
//! Reading and counting a body that was not seen before takes milliseconds to seconds. Threads of its own do it, as many as there are
//! cores, so that it never holds the threads of the store. Tenants take turns by the amount of work, conversations under way come
//! before new ones, and one more thread only takes small work, which therefore never waits behind large bodies.

mod queue;

use crate::transport::overload::{self, Charge, Limit, Share};
use queue::{Class, Queue};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;
use std::num::{NonZeroU32, NonZeroUsize};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use tokio::sync::oneshot;

/// The threads for heavy work. Dropping it ends them when they have done what is queued.
#[derive(Debug)]
pub(crate) struct HeavyPool {
    shared: Arc<Shared>,
    hasher: RandomState,
}

/// How one request gets its heavy work done.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    shared: Arc<Shared>,
    tenant: u64,
    is_under_way: bool,
    /// Keeps what the work reads accounted for, even if the client leaves while it is queued.
    charge: Option<Arc<Charge>>,
}

/// The work panicked, or the process is ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("heavy work was not completed")]
pub(crate) struct Crashed;

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Wakes the threads that take any work, and the one that takes small work.
    any: Condvar,
    small: Condvar,
}

#[derive(Debug, Default)]
struct State {
    queue: Queue<Job>,
    is_closed: bool,
}

struct Job(Box<dyn FnOnce() + Send>);

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Job")
    }
}

/// Work on no more than this is small.
const SMALL: usize = 256 * 1024;

/// What a worker walks through itself: it takes less than half a millisecond.
pub(crate) const SCANNED_AT_ONCE: usize = 512 * 1024;

/// How much faster a body is walked through than its tokens are counted, at the least.
const SCAN_SPEED: usize = 8;

impl HeavyPool {
    pub(crate) fn start() -> io::Result<HeavyPool> {
        let pool = HeavyPool { shared: Arc::default(), hasher: RandomState::new() };
        let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        for number in 0..=cores {
            let (shared, is_small) = (pool.shared.clone(), number == cores);
            let name = if is_small { "heavy-small".to_owned() } else { format!("heavy-{number}") };
            thread::Builder::new().name(name).spawn(move || shared.work(is_small))?;
        }
        Ok(pool)
    }

    /// The lane of a request of this tenant.
    pub(crate) fn lane(&self, tenant: &[u8], charge: Arc<Charge>) -> Lane {
        let tenant = self.hasher.hash_one(tenant);
        Lane { shared: self.shared.clone(), tenant, is_under_way: false, charge: Some(charge) }
    }

    /// The lane of work that belongs to no tenant.
    pub(crate) fn own_lane(&self) -> Lane {
        Lane { shared: self.shared.clone(), tenant: 0, is_under_way: true, charge: None }
    }

    /// The number of requests whose work waits.
    pub(crate) fn queued(&self) -> usize {
        self.shared.lock().queue.len()
    }

    /// Refuses a request that needs heavy work if too many wait already. A quarter of the queue is for conversations under way.
    pub(crate) fn admit(&self, most: NonZeroU32, is_under_way: bool) -> Result<(), Limit> {
        let most = usize::try_from(most.get()).unwrap_or(usize::MAX);
        let most = if is_under_way { most } else { (most - most / 4).max(1) };
        if self.queued() >= most { Err(Limit::Queue) } else { Ok(()) }
    }
}

impl Drop for HeavyPool {
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        self.shared.any.notify_all();
        self.shared.small.notify_all();
    }
}

impl Lane {
    /// The same lane for a conversation that is under way, or is not.
    pub(crate) fn with_progress(&self, is_under_way: bool) -> Lane {
        Lane { is_under_way, ..self.clone() }
    }

    /// The same lane for work that outlives the request and keeps this much of it.
    pub(crate) fn detached(&self, bytes: usize) -> Lane {
        let charge = self.charge.as_ref().map(|charge| charge.another(bytes as u64));
        Lane { charge: charge.map(Arc::new), is_under_way: false, ..self.clone() }
    }

    /// Runs work that reads about this many bytes.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Crashed> {
        let (sender, receiver) = oneshot::channel();
        let charge = self.charge.clone();
        let job = move || {
            // The client may have left meanwhile.
            if !sender.is_closed() {
                // A panic is logged by the hook, and fails this request alone.
                if let Ok(done) = catch_unwind(AssertUnwindSafe(work)) {
                    let _ = sender.send(done);
                }
            }
            drop(charge);
        };
        self.shared.push(self.tenant, self.class(bytes), bytes, Job(Box::new(job)));
        receiver.await.map_err(|_| Crashed)
    }

    /// Runs work that walks through this many bytes once: at once if they are few, else as [`Lane::run`] does.
    pub(crate) async fn scan<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Crashed> {
        if bytes <= SCANNED_AT_ONCE {
            return Ok(work());
        }
        self.run(bytes / SCAN_SPEED, work).await
    }

    /// Whether the request takes more memory than a small one.
    pub(crate) fn is_large(&self) -> bool {
        self.charge.as_ref().is_some_and(|charge| charge.bytes() > 2 * overload::SMALL)
    }

    /// Takes more memory for the request, if there is as much for a conversation like its.
    #[must_use]
    pub(crate) fn take(&self, bytes: u64) -> bool {
        let Some(charge) = &self.charge else { return true };
        charge.take(bytes) || (self.is_under_way && charge.grow(bytes, Share::UnderWay))
    }

    fn class(&self, bytes: usize) -> Class {
        match (bytes <= SMALL, self.is_under_way) {
            (true, true) => Class::SmallUnderWay,
            (true, false) => Class::SmallNew,
            (false, true) => Class::LargeUnderWay,
            (false, false) => Class::LargeNew,
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Jobs run outside the lock, so nothing panics while it is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, tenant: u64, class: Class, bytes: usize, job: Job) {
        self.lock().queue.push(tenant, class, bytes, job);
        self.any.notify_one();
        if class.is_small() {
            self.small.notify_one();
        }
    }

    fn work(&self, is_small: bool) {
        let wake = if is_small { &self.small } else { &self.any };
        loop {
            let mut state = self.lock();
            let job = loop {
                if let Some(job) = state.queue.pop(is_small) {
                    break job;
                }
                if state.is_closed {
                    return;
                }
                state = wake.wait(state).unwrap_or_else(PoisonError::into_inner);
            };
            drop(state);
            (job.0)();
        }
    }
}

#[cfg(test)]
mod tests;
