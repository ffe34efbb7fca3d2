//! The task that writes. It takes what waits, in order, and keeps it until the database has it.

use crate::ArchiveError;
use crate::connection::{Connection, Dialer};
use crate::queue::{Queue, Waiting};
use crate::stride::Stride;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;
use tracing::{error, info, warn};

#[derive(Debug)]
pub(crate) struct Writer {
    queue: Arc<Queue>,
    dialer: Dialer,
    /// Where the database is, for logs.
    place: String,
    connection: Option<Connection>,
    /// Taken from the queue and not settled yet; the oldest first.
    pending: Vec<Waiting>,
    stride: Stride,
    delay: Duration,
    failing: Failing,
}

/// What did not work the last time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failing {
    Nothing,
    Connecting,
    /// A new connection says nothing about whether it is better now.
    Writing,
}

/// The most in one transaction. Larger ones are not faster, and hold more when they fail.
const BATCH: usize = 512;
const BATCH_BYTES: usize = 4 * 1024 * 1024;

/// Between two attempts, from the first that fails on.
const SHORTEST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(2);

impl Writer {
    pub(crate) fn new(queue: Arc<Queue>, dialer: Dialer, place: String) -> Writer {
        Writer {
            queue,
            dialer,
            place,
            connection: None,
            pending: Vec::new(),
            stride: Stride::new(BATCH),
            delay: SHORTEST,
            failing: Failing::Nothing,
        }
    }

    /// Until the queue is closed and everything is written, or until the archive can never be written to.
    pub(crate) async fn run(mut self) {
        loop {
            let Some(connection) = &mut self.connection else {
                match self.connect().await {
                    Ok(()) => continue,
                    Err(error) if error.is_final() => return self.turn_off(&error),
                    Err(error) => self.failed(&error, Failing::Connecting),
                }
                self.pause().await;
                continue;
            };
            if self.pending.is_empty() {
                tokio::select! {
                    taken = self.queue.take(BATCH, BATCH_BYTES) => match taken {
                        Some(taken) => self.pending = taken,
                        None => return,
                    },
                    () = connection.closed() => self.disconnect(),
                }
                continue;
            }
            let count = self.stride.next().min(self.pending.len());
            let attempt = self.pending[..count].iter().map(|waiting| &*waiting.record);
            match connection.write(attempt).await {
                Ok(()) => self.written(count),
                Err(error @ ArchiveError::Data(_)) => self.refused(count, &error),
                Err(error) => {
                    self.stride_after(count, &error);
                    self.failed(&error, Failing::Writing);
                    self.pause().await;
                }
            }
        }
    }

    async fn connect(&mut self) -> Result<(), ArchiveError> {
        self.connection = Some(self.dialer.dial().await?);
        let is_well = self.failing != Failing::Writing;
        self.queue.connected(is_well);
        if self.failing == Failing::Connecting {
            self.recovered();
        }
        Ok(())
    }

    fn disconnect(&mut self) {
        self.connection = None;
        self.queue.disconnected();
    }

    fn written(&mut self, count: usize) {
        self.stride.went_well(count);
        let done: Vec<Waiting> = self.pending.drain(..count).collect();
        if self.queue.written(&done) {
            info!(dropped = self.queue.stats().dropped, "there is room in the archive's queue again");
        }
        if self.failing != Failing::Nothing {
            self.recovered();
        }
    }

    fn refused(&mut self, count: usize, error: &ArchiveError) {
        self.queue.failed(error.reason());
        if !self.stride.was_refused(count) {
            return;
        }
        let waiting = self.pending.remove(0);
        let rejected = self.queue.rejected(&waiting);
        // Where many are refused, for a constraint that somebody has added, a few lines say so.
        if rejected.is_power_of_two() {
            let (table, id) = (waiting.record.table(), waiting.record.id());
            warn!(table, %id, %error, rejected, "a record cannot be archived and is left out");
        }
    }

    fn stride_after(&mut self, count: usize, error: &ArchiveError) {
        if *error == ArchiveError::Timeout {
            self.stride.took_too_long(count);
        }
    }

    fn failed(&mut self, error: &ArchiveError, what: Failing) {
        let keeps_connection =
            matches!(error, ArchiveError::Denied(_) | ArchiveError::Schema(_) | ArchiveError::Full(_));
        if !keeps_connection {
            self.disconnect();
        }
        let is_new = self.queue.failed(error.reason());
        if is_new || self.failing != what {
            let queued = self.queue.stats().queued;
            warn!(server = self.place, reason = error.reason(), %error, queued, "the archive is not written to; records wait");
        }
        self.failing = what;
    }

    fn recovered(&mut self) {
        self.failing = Failing::Nothing;
        self.delay = SHORTEST;
        info!(server = self.place, queued = self.queue.stats().queued, "the archive is written to again");
    }

    fn turn_off(&self, error: &ArchiveError) {
        self.queue.failed(error.reason());
        error!(server = self.place, reason = error.reason(), %error, "the archive stays off; records are dropped");
    }

    async fn pause(&mut self) {
        sleep(self.delay).await;
        self.delay = (self.delay * 2).min(LONGEST);
    }
}
