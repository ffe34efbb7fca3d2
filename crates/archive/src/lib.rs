//! The archive: every message, summary and decision as rows of a PostgreSQL database, for auditing, analysis and billing.
//!
//! [`Archive::record`] puts an [`ArchiveRecord`] into a bounded in-memory queue and returns at once. A background task writes
//! the queue to the database in batches, one transaction each. While the database is down, records wait, up to a limit in number
//! and in bytes; beyond it, new records are dropped and counted ([`ArchiveStats`]). Records that are still queued when the
//! process is killed are lost.
//!
//! Every row exists once, however often it is written. Row ids are derived from content ([`RowId`]), and an insert skips rows
//! that exist. So a batch whose acknowledgement was lost can be written again, and several replicas may archive the same
//! conversation.
//!
//! The tables are created on the first connection (see `migrations`), under a lock, so that replicas can start together. Once
//! they exist, a role that may only insert is enough.
//!
//! This crate never reads archived rows back, never delays a request, and never puts message text or credentials into a log
//! line or an error.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! use std::time::Duration;
//! use tidegate_archive::{Archive, ArchiveOptions, ArchiveRecord, ArchivedTurn, RowId};
//!
//! // Opening does not wait for the server, so this one need not exist.
//! let archive = Archive::open("postgres://tidegate@127.0.0.1:1/archive", ArchiveOptions::default()).unwrap();
//! let conversation = [7; 16];
//! archive.record(ArchiveRecord::Turn(ArchivedTurn {
//!     id: RowId::of_message(conversation, [1; 32]),
//!     parent_id: None,
//!     conversation_id: "chat-42".to_owned(),
//!     conversation,
//!     tenant: "acme".to_owned(),
//!     route: "default".to_owned(),
//!     turn_number: Some(1),
//!     position: 0,
//!     role: "user".to_owned(),
//!     message: r#"{"role":"user","content":"Hello"}"#.to_owned(),
//!     estimated_tokens: Some(8),
//!     at: 1_767_323_045_678,
//! }));
//! assert_eq!(archive.stats().queued, 1);
//! // Nothing could be written, so closing reports the one record that was dropped.
//! assert_eq!(archive.close(Duration::ZERO).await, 1);
//! assert_eq!(archive.stats().dropped, 1);
//! # }
//! ```

mod batch_size;
mod column;
mod connection;
mod error;
mod insert;
mod queue;
mod record;
mod row_id;
mod schema;
mod tls;
mod url;
mod writer;

pub use error::ArchiveError;
pub use queue::ArchiveStats;
pub use record::{ArchiveRecord, ArchivedAudit, ArchivedSummary, ArchivedTurn};
pub use row_id::RowId;

use connection::Dialer;
use queue::{Pushed, Queue};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout_at};
use tracing::warn;
use writer::Writer;

/// A handle to the archive. Clones share one queue and one connection.
#[derive(Clone, Debug)]
pub struct Archive(Arc<Shared>);

/// Limits of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchiveOptions {
    /// The maximum number of queued records.
    pub max_records: usize,
    /// The maximum memory that queued records may take.
    pub max_bytes: usize,
    /// The deadline for connecting, and for writing one batch.
    pub timeout: Duration,
}

#[derive(Debug)]
struct Shared {
    queue: Arc<Queue>,
    /// When the writer must stop, even if records are left.
    deadline: watch::Sender<Option<Instant>>,
    /// The number of records that were left, once the writer has stopped.
    left: watch::Receiver<Option<usize>>,
}

/// How long the writer may go on after the last handle was dropped without `close`.
const DROP_TIMEOUT: Duration = Duration::from_secs(10);

/// How long `close` waits beyond its deadline for the writer to report.
const STOP_GRACE: Duration = Duration::from_secs(1);

impl Default for ArchiveOptions {
    fn default() -> ArchiveOptions {
        ArchiveOptions { max_records: 50_000, max_bytes: 64 * 1024 * 1024, timeout: Duration::from_secs(10) }
    }
}

impl Archive {
    /// Opens `postgres://user:password@host:port/database` without waiting for the server. A task on the current runtime
    /// connects in the background and retries until it succeeds.
    ///
    /// `sslmode` is `disable`, `prefer` (the default), `require` (encrypts, but accepts any certificate) or `verify-full` (the
    /// certificate must match the host name and be issued by an authority that the system trusts, or one in the `sslrootcert`
    /// file).
    ///
    /// # Errors
    ///
    /// If the URL is invalid, the `sslrootcert` file is unusable, or there is no current runtime.
    pub fn open(url: &str, options: ArchiveOptions) -> Result<Archive, ArchiveError> {
        let target = url::parse(url, options.timeout)?;
        let dialer = Dialer::new(&target, options.timeout)?;
        let runtime = Handle::try_current().map_err(|_| ArchiveError::NoRuntime)?;
        let queue = Arc::new(Queue::new(options.max_records, options.max_bytes));
        let writer = Writer::new(queue.clone(), dialer, target.server);
        let (deadline, mut deadlines) = watch::channel(None);
        let (report, left) = watch::channel(None);
        let writers_queue = queue.clone();
        runtime.spawn(async move {
            tokio::select! {
                () = writer.run() => {}
                () = past_deadline(&mut deadlines) => {}
            }
            report.send_replace(Some(writers_queue.drop_all()));
        });
        Ok(Archive(Arc::new(Shared { queue, deadline, left })))
    }

    /// Queues a record for writing. Never waits and never fails: if the queue is full, the record is dropped and counted.
    pub fn record(&self, record: ArchiveRecord) {
        match self.0.queue.push(record) {
            Pushed::Queued | Pushed::Dropped => {}
            Pushed::DroppedFirst => {
                warn!("archive queue full; dropping new records")
            }
        }
    }

    #[must_use]
    pub fn stats(&self) -> ArchiveStats {
        self.0.queue.stats()
    }

    /// Stops accepting records and writes the queued ones for up to `within`. Returns the number of records that could not be
    /// written; they count as dropped. If called twice, the first deadline holds.
    pub async fn close(&self, within: Duration) -> usize {
        let deadline = self.0.stop_within(within);
        let mut left = self.0.left.clone();
        let stopped = timeout_at(deadline + STOP_GRACE, left.wait_for(Option::is_some)).await;
        match stopped.ok().and_then(Result::ok).and_then(|left| *left) {
            Some(left) => left,
            // The writer's runtime is gone or too busy to run it.
            None => self.0.queue.drop_all(),
        }
    }
}

impl Shared {
    /// Closes the queue and tells the writer to stop when it is empty, or at the returned deadline.
    fn stop_within(&self, within: Duration) -> Instant {
        self.queue.close();
        // With nothing to write, the writer must not keep waiting for a database that is down.
        let within = if self.queue.stats().queued == 0 { Duration::ZERO } else { within };
        let mut deadline = Instant::now() + within;
        self.deadline.send_modify(|known| deadline = *known.get_or_insert(deadline));
        deadline
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.stop_within(DROP_TIMEOUT);
    }
}

/// Completes at the deadline, once there is one.
async fn past_deadline(deadlines: &mut watch::Receiver<Option<Instant>>) {
    // The sender always sets a deadline before it is dropped.
    if let Ok(Some(deadline)) = deadlines.wait_for(Option::is_some).await.map(|deadline| *deadline) {
        sleep_until(deadline).await;
    }
}
