//! The background task. It takes records from the queue in order and holds them until the database has them.

use crate::ArchiveError;
use crate::batch_size::BatchSize;
use crate::connection::{Connection, Dialer};
use crate::queue::{Queue, Queued};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;
use tracing::{error, info, warn};

#[derive(Debug)]
pub(crate) struct Writer {
    queue: Arc<Queue>,
    dialer: Dialer,
    /// Hosts and ports, for logs.
    server: String,
    connection: Option<Connection>,
    /// Taken from the queue and neither written nor rejected yet; the oldest first.
    pending: Vec<Queued>,
    batch_size: BatchSize,
    /// The pause after the next failure.
    delay: Duration,
    failing: Failing,
}

/// The step that failed last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failing {
    Nothing,
    Connecting,
    /// A new connection does not clear this: only a successful write does.
    Writing,
}

/// Limits of one transaction. Larger ones are not faster, and lose more work when they fail.
const MAX_BATCH: usize = 512;
const MAX_BATCH_BYTES: usize = 4 * 1024 * 1024;

/// The pause after a failure doubles from one to the other.
const MIN_DELAY: Duration = Duration::from_millis(50);
const MAX_DELAY: Duration = Duration::from_secs(2);

impl Writer {
    pub(crate) fn new(queue: Arc<Queue>, dialer: Dialer, server: String) -> Writer {
        Writer {
            queue,
            dialer,
            server,
            connection: None,
            pending: Vec::new(),
            batch_size: BatchSize::new(MAX_BATCH),
            delay: MIN_DELAY,
            failing: Failing::Nothing,
        }
    }

    /// Runs until the queue is closed and everything is written, or until an error makes the archive unusable for good.
    pub(crate) async fn run(mut self) {
        loop {
            let Some(connection) = &mut self.connection else {
                match self.connect().await {
                    Ok(()) => continue,
                    Err(error) if error.is_final() => return self.disabled(&error),
                    Err(error) => self.failed(&error, Failing::Connecting),
                }
                self.pause().await;
                continue;
            };
            if self.pending.is_empty() {
                tokio::select! {
                    taken = self.queue.take(MAX_BATCH, MAX_BATCH_BYTES) => match taken {
                        Some(taken) => self.pending = taken,
                        None => return,
                    },
                    () = connection.closed() => self.disconnect(),
                }
                continue;
            }
            let count = self.batch_size.next().min(self.pending.len());
            let attempt = self.pending[..count].iter().map(|queued| &*queued.record);
            match connection.write(attempt).await {
                Ok(()) => self.written(count),
                Err(error @ ArchiveError::Data(_)) => self.rejected(count, &error),
                Err(error) => {
                    if error == ArchiveError::Timeout {
                        self.batch_size.timed_out(count);
                    }
                    self.failed(&error, Failing::Writing);
                    self.pause().await;
                }
            }
        }
    }

    async fn connect(&mut self) -> Result<(), ArchiveError> {
        self.connection = Some(self.dialer.dial().await?);
        let is_healthy = self.failing != Failing::Writing;
        self.queue.connected(is_healthy);
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
        self.batch_size.succeeded(count);
        let done: Vec<Queued> = self.pending.drain(..count).collect();
        if self.queue.written(&done) {
            info!(dropped = self.queue.stats().dropped, "archive queue no longer full");
        }
        if self.failing != Failing::Nothing {
            self.recovered();
        }
    }

    fn rejected(&mut self, count: usize, error: &ArchiveError) {
        self.queue.failed(error.reason());
        if !self.batch_size.was_rejected(count) {
            return;
        }
        let queued = self.pending.remove(0);
        let rejected = self.queue.rejected(&queued);
        // A constraint that an operator added may reject every record. Log only a few of them.
        if rejected.is_power_of_two() {
            let (table, id) = (queued.record.table(), queued.record.id());
            warn!(table, %id, %error, rejected, "archive rejected a record; skipping it");
        }
    }

    fn failed(&mut self, error: &ArchiveError, step: Failing) {
        let keeps_connection =
            matches!(error, ArchiveError::Denied(_) | ArchiveError::Schema(_) | ArchiveError::Full(_));
        if !keeps_connection {
            self.disconnect();
        }
        let is_new = self.queue.failed(error.reason());
        if is_new || self.failing != step {
            let queued = self.queue.stats().queued;
            warn!(server = self.server, reason = error.reason(), %error, queued, "archive unavailable; queueing records");
        }
        self.failing = step;
    }

    fn recovered(&mut self) {
        self.failing = Failing::Nothing;
        self.delay = MIN_DELAY;
        info!(server = self.server, queued = self.queue.stats().queued, "archive available again");
    }

    fn disabled(&self, error: &ArchiveError) {
        self.queue.failed(error.reason());
        error!(server = self.server, reason = error.reason(), %error, "archive disabled; dropping all records");
    }

    async fn pause(&mut self) {
        sleep(self.delay).await;
        self.delay = (self.delay * 2).min(MAX_DELAY);
    }
}
