//! The bounded queue of records, and the statistics. Both are under one lock, which is held only long enough to move pointers,
//! so that the counts always add up.

use crate::record::ArchiveRecord;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Statistics of an archive. Every record passed to it counts in exactly one of `queued`, `written`, `dropped` and `rejected`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArchiveStats {
    /// Records that are waiting to be written or being written.
    pub queued: usize,
    /// The memory that they take.
    pub queued_bytes: usize,
    /// Records that are in the database, including those that already existed.
    pub written: u64,
    /// Records that were discarded: the queue was full, or the archive is disabled or closed.
    pub dropped: u64,
    /// Records that the database rejected because of their content.
    pub rejected: u64,
    /// Failed attempts to connect or to write. Their records were retried, together or in smaller batches.
    pub failed_batches: u64,
    pub connected: bool,
    /// The [`ArchiveError::reason`](crate::ArchiveError::reason) of the last attempt; `None` if it succeeded.
    pub error: Option<&'static str>,
}

#[derive(Debug)]
pub(crate) struct Queue {
    max_records: usize,
    max_bytes: usize,
    state: Mutex<State>,
    /// Wakes the writer when a record arrives or the queue is closed.
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Records that the writer has not taken yet.
    waiting: VecDeque<Queued>,
    /// Records that the writer has taken stay counted as queued until it reports their outcome.
    stats: ArchiveStats,
    /// Whether new records are discarded.
    is_closed: bool,
    /// Whether a record was dropped since the last successful write.
    is_overflowing: bool,
}

/// A record and the memory that it takes.
pub(crate) struct Queued {
    pub(crate) record: Box<ArchiveRecord>,
    pub(crate) size: usize,
}

/// The outcome of [`Queue::push`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pushed {
    Queued,
    Dropped,
    /// Dropped, as the first record since the queue became full.
    DroppedFirst,
}

impl Queue {
    pub(crate) fn new(max_records: usize, max_bytes: usize) -> Queue {
        Queue { max_records, max_bytes, state: Mutex::default(), changed: Notify::new() }
    }

    pub(crate) fn push(&self, record: ArchiveRecord) -> Pushed {
        let size = record.size();
        let record = Box::new(record);
        let pushed = {
            let mut state = self.state();
            let ArchiveStats { queued, queued_bytes, .. } = state.stats;
            let has_room = queued < self.max_records && size <= self.max_bytes.saturating_sub(queued_bytes);
            if state.is_closed || !has_room {
                state.stats.dropped += 1;
                let is_first = !state.is_closed && !std::mem::replace(&mut state.is_overflowing, true);
                // The guard is dropped before the record, so its memory is freed outside the lock.
                return if is_first { Pushed::DroppedFirst } else { Pushed::Dropped };
            }
            state.stats.queued += 1;
            state.stats.queued_bytes += size;
            state.waiting.push_back(Queued { record, size });
            Pushed::Queued
        };
        self.changed.notify_one();
        pushed
    }

    /// Takes the oldest records, at least one and at most `records` or `bytes`. Returns `None` if the queue is closed and empty.
    /// Taken records stay counted as queued until `written` or `rejected` is called for them.
    pub(crate) async fn take(&self, records: usize, bytes: usize) -> Option<Vec<Queued>> {
        loop {
            {
                let mut state = self.state();
                let taken = state.take(records, bytes);
                if !taken.is_empty() {
                    return Some(taken);
                }
                if state.is_closed {
                    return None;
                }
            }
            // `Notify` stores a permit, so a push between the check and this wait is not missed.
            self.changed.notified().await;
        }
    }

    /// Counts records as written. Returns whether others were dropped since the last write.
    pub(crate) fn written(&self, done: &[Queued]) -> bool {
        let mut state = self.state();
        state.settle(done);
        state.stats.written += done.len() as u64;
        state.stats.error = None;
        std::mem::take(&mut state.is_overflowing)
    }

    /// Counts a record as rejected. Returns the number of rejected records so far.
    pub(crate) fn rejected(&self, done: &Queued) -> u64 {
        let mut state = self.state();
        state.settle(std::slice::from_ref(done));
        state.stats.rejected += 1;
        // The record was at fault, not the database.
        state.stats.error = None;
        state.stats.rejected
    }

    /// Counts a failed attempt. Returns whether the previous attempt succeeded or failed for another reason.
    pub(crate) fn failed(&self, reason: &'static str) -> bool {
        let mut state = self.state();
        state.stats.failed_batches += 1;
        state.stats.error.replace(reason) != Some(reason)
    }

    /// Notes a new connection. `is_healthy` clears the error: connecting was the only thing that failed.
    pub(crate) fn connected(&self, is_healthy: bool) {
        let mut state = self.state();
        state.stats.connected = true;
        if is_healthy {
            state.stats.error = None;
        }
    }

    pub(crate) fn disconnected(&self) {
        self.state().stats.connected = false;
    }

    /// Discards all records pushed from now on.
    pub(crate) fn close(&self) {
        self.state().is_closed = true;
        self.changed.notify_one();
    }

    /// Closes the queue and drops all records in it. Returns how many there were.
    pub(crate) fn drop_all(&self) -> usize {
        let (left, _freed) = {
            let mut state = self.state();
            state.is_closed = true;
            state.stats.connected = false;
            let left = std::mem::take(&mut state.stats.queued);
            state.stats.queued_bytes = 0;
            state.stats.dropped += left as u64;
            (left, std::mem::take(&mut state.waiting))
        };
        left
    }

    pub(crate) fn stats(&self) -> ArchiveStats {
        self.state().stats
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while holding the lock, and a panic would leave usable counts.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take(&mut self, records: usize, bytes: usize) -> Vec<Queued> {
        let mut taken = Vec::new();
        let mut size = 0;
        while let Some(next) = self.waiting.front() {
            size += next.size;
            if taken.len() == records || (size > bytes && !taken.is_empty()) {
                break;
            }
            taken.extend(self.waiting.pop_front());
        }
        taken
    }

    fn settle(&mut self, done: &[Queued]) {
        self.stats.queued -= done.len();
        self.stats.queued_bytes -= done.iter().map(|queued| queued.size).sum::<usize>();
    }
}

/// Omits the content of the record.
impl fmt::Debug for Queued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queued").field("table", &self.record.table()).field("size", &self.size).finish()
    }
}
