use crate::{ConversationKey, Head};
use bytes::Bytes;
use std::fmt;
use std::pin::Pin;
use std::time::Duration;
use thiserror::Error;

/// Keeps conversations. Records are opaque here; `record` knows what is in them.
///
/// Everything that is kept is added once under a name of its own: nothing is read, changed and written back, so that any
/// number of processes can share a store without a lock. Everything of a conversation is forgotten when nothing has been
/// written to it for the time to live that the store was opened with.
///
/// Nothing here has a deadline: whoever calls has one. A future that is dropped may still have its effect.
pub trait Store: fmt::Debug + Send + Sync {
    /// What was decided in a conversation. One round trip.
    fn recall(&self, key: ConversationKey) -> Answer<'_, Recollection>;

    /// Adds messages that are not there yet, and a waypoint behind all others: both or nothing. Done only when it is
    /// as safe as the store can make it.
    fn journal(&self, key: ConversationKey, journal: Journal) -> Answer<'_, ()>;

    /// Adds a fold behind all others under the prefix that it covers, unless there is one: the first stays, because
    /// another summary of the same prefix would change what has been forwarded already. Whether the one that is kept is this
    /// record, so that asking again after a lost answer gives the same answer.
    fn fold(&self, key: ConversationKey, covers: MessageId, record: Bytes) -> Answer<'_, bool>;

    /// Pins a record to a conversation, in the place of the one that was; none takes it away. The one thing here that is
    /// overwritten: a person writes it.
    fn pin(&self, key: ConversationKey, record: Option<Bytes>) -> Answer<'_, ()>;

    /// The right to fold a conversation, which one has at a time, and for `lease` at most: a holder that crashes blocks
    /// nobody for longer. Whether `holder` has it now; one that had it already has it for `lease` from now on. Not a write:
    /// it keeps no conversation alive.
    fn claim(&self, key: ConversationKey, holder: [u8; 16], lease: Duration) -> Answer<'_, bool>;

    /// Gives that right back. Nothing happens where another has it.
    fn release(&self, key: ConversationKey, holder: [u8; 16]) -> Answer<'_, ()>;

    /// Adds a turn and its counts, once for each id: both or nothing.
    fn count(&self, key: ConversationKey, turn: Turn) -> Answer<'_, ()>;

    /// What is known about a conversation; nothing if no turn of it was counted.
    fn head(&self, key: ConversationKey) -> Answer<'_, Option<Head>>;

    /// Conversations by the time of their last turn, the newest first.
    fn list(&self, offset: usize, limit: usize) -> Answer<'_, Listing>;

    /// The records of all turns, in no order.
    fn turns(&self, key: ConversationKey) -> Answer<'_, Vec<Bytes>>;

    /// All messages with their records, in no order.
    fn messages(&self, key: ConversationKey) -> Answer<'_, Vec<(MessageId, Bytes)>>;

    /// Forgets everything of a conversation, also who may fold it. Whether anything was written to it.
    fn delete(&self, key: ConversationKey) -> Answer<'_, bool>;

    /// Whether the store takes writes.
    fn probe(&self) -> Answer<'_, ()>;

    /// Whether other processes can write to it, so that what this one remembers may not be all there is.
    fn is_shared(&self) -> bool;
}

pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// How many waypoints of a conversation are kept. One branch needs one; those of more branches than this are decided anew.
pub const WAYPOINTS: usize = 64;

/// How many folds of a conversation are kept. A request uses one; the others are those of its branches and of its past.
pub const FOLDS: usize = 16;

/// A message under the digest of the conversation up to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub [u8; 32]);

/// What is known of a conversation before it is read: the newest of each kind, the newest last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recollection {
    /// At most [`WAYPOINTS`].
    pub waypoints: Vec<Bytes>,
    /// At most [`FOLDS`].
    pub folds: Vec<Bytes>,
    pub pinned: Option<Bytes>,
}

/// What a request leaves before it is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Journal {
    pub messages: Vec<(MessageId, Bytes)>,
    pub waypoint: Option<Bytes>,
}

/// What a request leaves when it is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Of this request alone: a second write of the same is none.
    pub id: [u8; 16],
    /// The digest of the conversation with this request. A retry has the same; it is another request but not another turn.
    pub end: Option<MessageId>,
    /// Milliseconds since 1970.
    pub at: u64,
    pub record: Bytes,
    /// What to add to which counter. `requests` and `turns` are added by the store.
    pub counts: Vec<(&'static str, u64)>,
    /// What is true of the conversation as of now; the last one wins.
    pub labels: Vec<(&'static str, String)>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    pub conversations: Vec<(ConversationKey, Head)>,
    /// How many there are in all.
    pub total: usize,
}

/// Why a store did not do what it was asked. The texts are for logs; they hold no credentials.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum StoreError {
    #[error("the store cannot be reached: {0}")]
    Unreachable(String),
    #[error("the store did not answer in time")]
    Timeout,
    #[error("the store refuses our credentials: {0}")]
    Denied(String),
    #[error("the store takes no writes: {0}")]
    ReadOnly(String),
    #[error("the store is full: {0}")]
    Full(String),
    #[error("the store is not ready yet: {0}")]
    Loading(String),
    #[error("the store holds something else than expected: {0}")]
    Corrupt(String),
    #[error("the store failed: {0}")]
    Failed(String),
}

impl StoreError {
    /// The label for headers and metrics: one of few.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            StoreError::Unreachable(_) => "store_unreachable",
            StoreError::Timeout => "store_timeout",
            StoreError::Denied(_) => "store_denied",
            StoreError::ReadOnly(_) => "store_readonly",
            StoreError::Full(_) => "store_full",
            StoreError::Loading(_) => "store_loading",
            StoreError::Corrupt(_) => "store_corrupt",
            StoreError::Failed(_) => "store_failed",
        }
    }
}
