use crate::exchanges::ExchangeStore;
use crate::facts::FactStore;
use crate::{ConversationKey, Degraded, Head};
use bytes::Bytes;
use std::fmt;
use std::pin::Pin;
use std::time::Duration;
use thiserror::Error;

/// Stores conversations. Records are opaque bytes here; the `record` module defines their format.
///
/// Entries are added once under a unique name and never read, changed and written back, so any number of processes can share a
/// store without locking. The exception is the log, whose head is compared and set. A conversation expires as a whole when it has not
/// been written to for the store's time to live.
///
/// Deleting a conversation begins another [`Generation`] of its key. Writes name the generation that they belong to, and a write of
/// an earlier one has no effect: whatever was under way when a conversation was deleted, it stays deleted.
///
/// Methods have no deadline of their own; callers impose one. Dropping a future does not undo its effect.
pub trait Store: FactStore + ExchangeStore + fmt::Debug + Send + Sync {
    /// Reads the decisions of a conversation in one round trip.
    fn recall(&self, key: ConversationKey) -> StoreFuture<'_, Recollection>;

    /// Atomically adds the messages that do not exist yet and appends a waypoint. Completes when the data is as durable as the
    /// store can make it.
    fn journal(
        &self,
        key: ConversationKey,
        generation: Generation,
        journal: Journal,
    ) -> StoreFuture<'_, Written>;

    /// Appends a fold under the prefix that it covers, unless that prefix has one. The first fold stored for a prefix is
    /// immutable, because another summary would change what has already been forwarded. A retry after a lost response returns
    /// the same result.
    fn fold(
        &self,
        key: ConversationKey,
        generation: Generation,
        covers: MessageId,
        record: Bytes,
    ) -> StoreFuture<'_, FoldWritten>;

    /// Reads the log from its `from`-th turn on, the oldest first, and its head.
    fn log(&self, key: ConversationKey, from: usize) -> StoreFuture<'_, LogRead>;

    /// Atomically appends a turn to the log, with its messages and its waypoint, if the head is still the expected one, and notes
    /// that its client does not have its answer yet. A retry after a lost response returns the same result, and leaves that note as
    /// it is by then.
    fn append(
        &self,
        key: ConversationKey,
        generation: Generation,
        append: Append,
    ) -> StoreFuture<'_, Appended>;

    /// Notes whether the client has the answer of the last turn, if `head` is still the head.
    fn note_delivery(
        &self,
        key: ConversationKey,
        generation: Generation,
        head: MessageId,
        delivery: Delivery,
    ) -> StoreFuture<'_, Written>;

    /// Replaces the record pinned to a conversation, or removes it if `record` is `None`. Pins are written by people, so the last one
    /// holds.
    fn pin(&self, key: ConversationKey, record: Option<Bytes>) -> StoreFuture<'_, ()>;

    /// Acquires or renews an exclusive lease on a conversation. Returns whether `holder` has it now. It expires after `duration`,
    /// so a crashed holder blocks others no longer than that. A new lease on a turn extends the life of the conversation, so that
    /// it does not expire while the turn runs; a lease on folding does not.
    fn claim(
        &self,
        key: ConversationKey,
        lease: Lease,
        holder: [u8; 16],
        duration: Duration,
    ) -> StoreFuture<'_, bool>;

    /// Renews a lease. Returns whether `holder` has it still: one that was revoked or has expired stays so.
    fn renew(
        &self,
        key: ConversationKey,
        lease: Lease,
        holder: [u8; 16],
        duration: Duration,
    ) -> StoreFuture<'_, bool>;

    /// Releases the lease. Does nothing if another holder has it.
    fn release(&self, key: ConversationKey, lease: Lease, holder: [u8; 16]) -> StoreFuture<'_, ()>;

    /// Atomically adds a turn and its counts, unless a turn with this id exists.
    fn count(&self, key: ConversationKey, generation: Generation, turn: Turn) -> StoreFuture<'_, Written>;

    /// The same with messages, which are added as those of a [`Journal`] are: one write where the store can.
    fn conclude(
        &self,
        key: ConversationKey,
        generation: Generation,
        turn: Turn,
        messages: Vec<(MessageId, Bytes)>,
    ) -> StoreFuture<'_, Written> {
        Box::pin(async move {
            self.journal(key, generation, Journal { messages, waypoint: None }).await?;
            self.count(key, generation, turn).await
        })
    }

    /// The head of a conversation; `None` if no turn was counted.
    fn head(&self, key: ConversationKey) -> StoreFuture<'_, Option<Head>>;

    /// Lists conversations by the time of their last turn, newest first.
    fn list(&self, offset: usize, limit: usize) -> StoreFuture<'_, Listing>;

    /// The records of all turns, in no particular order.
    fn turns(&self, key: ConversationKey) -> StoreFuture<'_, Vec<Bytes>>;

    /// All messages, in no particular order.
    fn messages(&self, key: ConversationKey) -> StoreFuture<'_, Vec<(MessageId, Bytes)>>;

    /// Deletes a conversation and the leases on it, and begins the generation `next`, which must be new. Returns whether the
    /// conversation existed.
    fn delete(&self, key: ConversationKey, next: Generation) -> StoreFuture<'_, bool>;

    /// Checks that the store accepts writes.
    fn probe(&self) -> StoreFuture<'_, ()>;

    /// How many bytes of this process's memory the records take; zero if they are elsewhere.
    fn memory(&self) -> u64 {
        0
    }

    /// How much this process's store holds; `None` if another system bounds it.
    fn size(&self) -> Option<StoreSize> {
        None
    }

    /// The conversations that were evicted since the last call, because the store was full. What is cached of them must go, too.
    fn take_evicted(&self) -> Vec<ConversationKey> {
        Vec::new()
    }

    /// Whether other processes may write to this store, so that a local copy can be incomplete.
    fn is_shared(&self) -> bool;
}

/// The boxed future that [`Store`] methods return.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// The size of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreSize {
    /// About how many bytes the conversations take.
    pub bytes: u64,
    pub limit: u64,
    /// How many conversations were removed for others since the process started.
    pub evicted: u64,
}

/// Tells a conversation from the ones of the same key that were deleted before it. Zero if none was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(pub u64);

/// The shortest time for which a deletion is remembered. Longer than any request takes.
pub(crate) const TOMBSTONE_LIFE: Duration = Duration::from_secs(24 * 60 * 60);

/// The result of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    Done,
    /// Nothing was written: the conversation was deleted since.
    Gone,
}

/// The result of writing a fold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoldWritten {
    /// The stored record is this one.
    Stored,
    /// Another fold of the same prefix was stored first.
    Other,
    /// The conversation was deleted since.
    Gone,
}

/// The result of appending to a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appended {
    Done,
    /// Another turn was appended first, or the log has expired.
    Conflict,
    /// The conversation was deleted since.
    Gone,
}

/// Whether a client has the answer of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// It has, or may have it: what it says next is another turn.
    Delivered,
    /// It certainly does not have it: if it says the same again, that is the same turn.
    Undelivered,
}

/// What an exclusive lease is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lease {
    /// Summarizing the conversation.
    Fold,
    /// Running a turn of a conversation whose history is kept here.
    Turn,
}

/// A turn to append to a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Append {
    /// The head that the turn was run on; `None` for the first turn.
    pub expected: Option<MessageId>,
    /// The head afterwards.
    pub head: MessageId,
    /// Whether the turn takes the place of the last one: it is a retry of it.
    pub replaces: bool,
    pub record: Bytes,
    /// Added to the raw timeline. Unlike in a [`Journal`], they replace records of the same id, which come from attempts that
    /// failed.
    pub messages: Vec<(MessageId, Bytes)>,
    pub waypoint: Option<Bytes>,
}

/// A log, or the end of one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogRead {
    pub generation: Generation,
    pub head: Option<MessageId>,
    /// Whether the client certainly does not have the answer of the last turn.
    pub is_undelivered: bool,
    /// The oldest first.
    pub turns: Vec<Bytes>,
}

/// The number of waypoints kept per conversation. A branch needs one; branches beyond this limit are decided anew.
pub const WAYPOINTS: usize = 64;

/// The number of folds kept per conversation. A request uses one; the others belong to other branches and to the past.
pub const FOLDS: usize = 16;

/// Identifies a message: the digest of the conversation up to and including it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub [u8; 32]);

/// The stored decisions of a conversation, the newest last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recollection {
    pub generation: Generation,
    /// At most [`WAYPOINTS`].
    pub waypoints: Vec<Bytes>,
    /// At most [`FOLDS`].
    pub folds: Vec<Bytes>,
    pub pinned: Option<Bytes>,
}

/// The entries that a request writes before its response ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Journal {
    pub messages: Vec<(MessageId, Bytes)>,
    pub waypoint: Option<Bytes>,
}

/// The entry that a request writes when it is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Unique to this request. Writing it again has no effect.
    pub id: [u8; 16],
    /// The digest of the conversation including this request. A retry has the same one: it counts as another request, but not
    /// as another turn.
    pub end: Option<MessageId>,
    /// In milliseconds since the Unix epoch.
    pub at: u64,
    pub record: Bytes,
    /// Amounts to add to named counters. The store itself counts `requests` and `turns`.
    pub counts: Vec<(&'static str, u64)>,
    /// Current properties of the conversation; the last write wins.
    pub labels: Vec<(&'static str, String)>,
}

/// One page of conversations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    pub conversations: Vec<(ConversationKey, Head)>,
    /// The total number of conversations.
    pub total: usize,
}

/// Why a store operation failed. The texts go to logs and contain no credentials.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum StoreError {
    #[error("cannot reach the store: {0}")]
    Unreachable(String),
    #[error("the store did not answer in time")]
    Timeout,
    #[error("the store denied access: {0}")]
    Denied(String),
    #[error("the store is read-only: {0}")]
    ReadOnly(String),
    #[error("the store is full: {0}")]
    Full(String),
    #[error("the store is not ready yet: {0}")]
    Loading(String),
    #[error("the store contains unexpected data: {0}")]
    Corrupt(String),
    /// Only one process can have an embedded store.
    #[error("{0}")]
    InUse(String),
    #[error("the store failed: {0}")]
    Failed(String),
}

impl StoreError {
    /// A low-cardinality label for headers and metrics.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        Degraded::from(self).reason()
    }
}
