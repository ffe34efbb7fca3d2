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

mod column;
mod connection;
mod error;
mod insert;
mod queue;
mod record;
mod row_id;
mod schema;
mod stride;
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

/// Writes records behind the requests. Clones share one queue and one connection.
#[derive(Clone, Debug)]
pub struct Archive(Arc<Open>);

/// What an archive may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchiveOptions {
    /// How many records may wait, and how much memory they may take.
    pub max_records: usize,
    pub max_bytes: usize,
    /// The deadline of connecting, and of writing one batch.
    pub timeout: Duration,
}

#[derive(Debug)]
struct Open {
    queue: Arc<Queue>,
    /// When the writer is to end, even if records are left.
    end: watch::Sender<Option<Instant>>,
    /// How many were, once it has ended.
    left: watch::Receiver<Option<usize>>,
}

/// For an archive that nobody closes, but everybody has dropped.
const LINGER: Duration = Duration::from_secs(10);

/// The writer's own way to the end, beyond the deadline that it was given.
const GRACE: Duration = Duration::from_secs(1);

impl Default for ArchiveOptions {
    fn default() -> ArchiveOptions {
        ArchiveOptions { max_records: 50_000, max_bytes: 64 * 1024 * 1024, timeout: Duration::from_secs(10) }
    }
}

impl Archive {
    /// Opens `postgres://user:password@host:port/database`. It does not wait for the server: the writer, a task on the current
    /// runtime, connects when it can.
    ///
    /// `sslmode` is `disable`, `prefer` (the default), `require`, which encrypts but takes any certificate, or `verify-full`, which
    /// takes one that is in the server's name and vouched for by an authority that the system trusts, or that `sslrootcert` names.
    ///
    /// # Errors
    ///
    /// If the URL cannot be one, if the file that it names cannot be used, or if there is no runtime.
    pub fn open(url: &str, options: ArchiveOptions) -> Result<Archive, ArchiveError> {
        let target = url::parse(url, options.timeout)?;
        let dialer = Dialer::new(&target, options.timeout)?;
        let runtime = Handle::try_current().map_err(|_| ArchiveError::NoRuntime)?;
        let queue = Arc::new(Queue::new(options.max_records, options.max_bytes));
        let writer = Writer::new(queue.clone(), dialer, target.place);
        let (end, mut ends) = watch::channel(None);
        let (leave, left) = watch::channel(None);
        let shared = queue.clone();
        runtime.spawn(async move {
            tokio::select! {
                () = writer.run() => {}
                () = expired(&mut ends) => {}
            }
            leave.send_replace(Some(shared.give_up()));
        });
        Ok(Archive(Arc::new(Open { queue, end, left })))
    }

    /// Has a record written. It never waits and never fails: what there is no room for is dropped and counted.
    pub fn record(&self, record: ArchiveRecord) {
        match self.0.queue.push(record) {
            Pushed::Queued | Pushed::Dropped => {}
            Pushed::Overflowed => {
                warn!("the archive's queue is full; records are dropped until there is room")
            }
        }
    }

    #[must_use]
    pub fn stats(&self) -> ArchiveStats {
        self.0.queue.stats()
    }

    /// Takes in no more and writes what waits, for as long as `within`. How many were left, which are counted as dropped. Where it is
    /// called twice, the first deadline holds.
    pub async fn close(&self, within: Duration) -> usize {
        let end = self.0.end_within(within);
        let mut left = self.0.left.clone();
        let ended = timeout_at(end + GRACE, left.wait_for(Option::is_some)).await;
        match ended.ok().and_then(Result::ok).and_then(|left| *left) {
            Some(left) => left,
            // The writer's runtime is gone, or does not get round to it.
            None => self.0.queue.give_up(),
        }
    }
}

impl Open {
    /// The writer ends when nothing is left, and at this time at the latest.
    fn end_within(&self, within: Duration) -> Instant {
        self.queue.close();
        // It may be waiting for a database that is away, for nothing.
        let within = if self.queue.stats().queued == 0 { Duration::ZERO } else { within };
        let mut end = Instant::now() + within;
        self.end.send_modify(|known| end = *known.get_or_insert(end));
        end
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.end_within(LINGER);
    }
}

async fn expired(ends: &mut watch::Receiver<Option<Instant>>) {
    // The sender says when before it goes.
    if let Ok(Some(end)) = ends.wait_for(Option::is_some).await.map(|end| *end) {
        sleep_until(end).await;
    }
}
