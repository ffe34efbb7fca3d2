//! The records that wait, and what became of the others. Everything is under one lock that is never held for longer than it
//! takes to move a pointer, so that the figures always add up.

use crate::record::ArchiveRecord;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// How an archive is doing. Every record that was handed over is in exactly one of `queued`, `written`, `dropped` and
/// `rejected`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArchiveStats {
    /// Records that wait to be written or are being written, and the memory that they take.
    pub queued: usize,
    pub queued_bytes: usize,
    /// Records that are in the database, also those that were there before.
    pub written: u64,
    /// Records that were given up: the queue was full, or the archive is off or closed.
    pub dropped: u64,
    /// Records that the database refused for what they say.
    pub rejected: u64,
    /// Attempts to connect or to write that failed. What they held was tried again, whole or in parts.
    pub failed_batches: u64,
    pub connected: bool,
    /// Why the last attempt failed; none while all is well.
    pub error: Option<&'static str>,
}

#[derive(Debug)]
pub(crate) struct Queue {
    max_records: usize,
    max_bytes: usize,
    state: Mutex<State>,
    /// Told when there is something to do for the writer: a record, or the end.
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Those that the writer has not taken yet.
    waiting: VecDeque<Waiting>,
    /// Counts what the writer has taken as well, until it is settled.
    stats: ArchiveStats,
    /// No more is taken in.
    is_closed: bool,
    /// Something was dropped since the last write.
    is_overflowing: bool,
}

/// A record with its size.
pub(crate) struct Waiting {
    pub(crate) record: Box<ArchiveRecord>,
    pub(crate) size: usize,
}

/// What became of a record that was handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pushed {
    Queued,
    Dropped,
    /// The first that found the queue full, since the last time that there was room.
    Overflowed,
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
                // The guard ends before the record, whose memory is given back without the lock.
                return if is_first { Pushed::Overflowed } else { Pushed::Dropped };
            }
            state.stats.queued += 1;
            state.stats.queued_bytes += size;
            state.waiting.push_back(Waiting { record, size });
            Pushed::Queued
        };
        self.changed.notify_one();
        pushed
    }

    /// Some of those that have waited longest, at least one; none when the queue is closed and empty. They stay counted until
    /// they are settled.
    pub(crate) async fn take(&self, records: usize, bytes: usize) -> Option<Vec<Waiting>> {
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
            // A permit that was stored between the look and this wait ends it at once.
            self.changed.notified().await;
        }
    }

    /// These are in the database. Whether others were dropped since the last time.
    pub(crate) fn written(&self, done: &[Waiting]) -> bool {
        let mut state = self.state();
        state.settle(done);
        state.stats.written += done.len() as u64;
        state.stats.error = None;
        std::mem::take(&mut state.is_overflowing)
    }

    /// The database never takes this one. How many there were.
    pub(crate) fn rejected(&self, done: &Waiting) -> u64 {
        let mut state = self.state();
        state.settle(std::slice::from_ref(done));
        state.stats.rejected += 1;
        // It was the record that was wrong, not the database.
        state.stats.error = None;
        state.stats.rejected
    }

    /// An attempt failed. Whether the one before it did not fail for the same reason.
    pub(crate) fn failed(&self, reason: &'static str) -> bool {
        let mut state = self.state();
        state.stats.failed_batches += 1;
        state.stats.error.replace(reason) != Some(reason)
    }

    /// `is_well`: and nothing else is known to be wrong.
    pub(crate) fn connected(&self, is_well: bool) {
        let mut state = self.state();
        state.stats.connected = true;
        if is_well {
            state.stats.error = None;
        }
    }

    pub(crate) fn disconnected(&self) {
        self.state().stats.connected = false;
    }

    /// Takes in no more.
    pub(crate) fn close(&self) {
        self.state().is_closed = true;
        self.changed.notify_one();
    }

    /// Drops all that are left. How many there were.
    pub(crate) fn give_up(&self) -> usize {
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
        // Nothing panics while it holds the lock, and if something did, the figures would still be figures.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take(&mut self, records: usize, bytes: usize) -> Vec<Waiting> {
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

    fn settle(&mut self, done: &[Waiting]) {
        self.stats.queued -= done.len();
        self.stats.queued_bytes -= done.iter().map(|one| one.size).sum::<usize>();
    }
}

/// Without what the record says.
impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting").field("table", &self.record.table()).field("size", &self.size).finish()
    }
}
