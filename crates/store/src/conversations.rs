//! The store as the proxy uses it: with deadlines, and with a local cache for when the store fails.

mod branch;
mod exchanges;
mod facts;
mod folding;
mod history;
mod log;
mod operator;
#[cfg(test)]
mod tests;
mod turn_lease;

pub use branch::{Anchor, Branch, BranchNote, BranchState};
pub use folding::FoldLease;
pub use history::{History, Records};
pub use log::{Log, LogRoom, NewTurn, NotKept};
pub use operator::{Pinned, Timeline};
pub use turn_lease::{NoTurn, TurnLease};

use crate::health::{Change, Health};
use crate::leases::Leases;
use crate::local_cache::{LocalCache, StoredState};
use crate::record::{self, RawMessage, RecordError};
use crate::seal::Keyring;
use crate::store::{
    Generation, Journal, MessageId, Recollection, Store, StoreFuture, StoreSize, Turn, Written,
};
use crate::{ConversationKey, Degraded, Head, Recalled, StoreError};
use bytes::Bytes;
use quick_cache::sync::Cache;
use quick_cache::{OptionsBuilder, Weighter};
use std::sync::Arc;
use std::time::Duration;
use tidegate_engine::{FoldBackoff, Waypoint};
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

/// A store with deadlines, backed by a local cache that serves requests while the store is unavailable.
///
/// Decisions are stored under the digest of the conversation that they were made for, so stale data is never wrong, only
/// incomplete: a request served from the local cache gets the same decisions as before.
#[derive(Debug)]
pub struct Conversations {
    store: Arc<dyn Store>,
    options: Options,
    local: LocalCache,
    /// The instructions that were recorded. They are not part of the digest chain and are resent with every request.
    instructions: Cache<(ConversationKey, MessageId), ()>,
    /// Histories that are kept here, so that only new turns have to be read. Never used without asking the store.
    logs: LogCache,
    /// Checked before the store: two tasks of this process never fold at once, even if the store is unavailable.
    leases: Leases,
    /// When a summary is tried again. Known to this process only.
    backoffs: Cache<ConversationKey, FoldBackoff>,
    health: Health,
}

/// How [`Conversations`] uses its store.
#[derive(Clone, Debug)]
pub struct Options {
    /// The deadline of every operation that a request waits for.
    pub timeout: Duration,
    /// How long a conversation lives after its last write. The same as the store's.
    pub ttl: Duration,
    /// Whether messages are recorded.
    pub raw: bool,
    /// Encrypts messages, summaries and pins.
    pub keyring: Option<Keyring>,
}

/// The entries that a request writes before its response ends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entries {
    /// The generation of the conversation that the request was decided on.
    pub generation: Generation,
    /// Instructions. They are not part of the digest chain.
    pub instructions: Vec<RawMessage>,
    pub messages: Vec<RawMessage>,
    /// All messages up to its end must be in `messages` or in the store.
    pub waypoint: Option<Waypoint>,
}

impl Entries {
    /// Whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.instructions.is_empty() && self.messages.is_empty() && self.waypoint.is_none()
    }
}

type LogCache = Cache<ConversationKey, Arc<Log>, LogSize>;

/// Estimates the memory that a log takes.
#[derive(Clone, Debug)]
struct LogSize;

impl Weighter<ConversationKey, Arc<Log>> for LogSize {
    fn weight(&self, _: &ConversationKey, log: &Arc<Log>) -> u64 {
        log.bytes() as u64
    }
}

/// The shards of a cache divide its capacity, and what is larger than its shard is never cached. Few requests have a history that is kept
/// here, so all can share one lock, and any history fits that a request can forward.
fn log_cache(bytes: u64) -> LogCache {
    let mut options = OptionsBuilder::new();
    options.shards(1).estimated_items_capacity(1_024).weight_capacity(bytes);
    match options.build() {
        Ok(options) => Cache::with_options(options, LogSize, Default::default(), Default::default()),
        // Fails only if a capacity is missing.
        Err(_) => Cache::with_weighter(1_024, bytes, LogSize),
    }
}

/// How often a failing store is probed.
const PROBE_INTERVAL: Duration = Duration::from_millis(250);

/// Messages beyond this many bytes are encoded and encrypted on a blocking thread.
const INLINE_ENCODE_BYTES: usize = 64 * 1024;

impl Conversations {
    /// What the caches take at most by default: some ten thousand conversations without a summary, or some thousand at their maximum size,
    /// and half as much for histories.
    pub const CACHE_BYTES: u64 = 192 << 20;

    #[must_use]
    pub fn new(store: Arc<dyn Store>, options: Options) -> Arc<Conversations> {
        Conversations::with_cache(store, options, Conversations::CACHE_BYTES)
    }

    /// The same with caches that take at most this many bytes.
    #[must_use]
    pub fn with_cache(store: Arc<dyn Store>, options: Options, bytes: u64) -> Arc<Conversations> {
        let histories = bytes / 3;
        Arc::new(Conversations {
            store,
            local: LocalCache::new(options.ttl, bytes - histories),
            options,
            instructions: Cache::new(16_384),
            logs: log_cache(histories),
            leases: Leases::default(),
            backoffs: Cache::new(16_384),
            health: Health::default(),
        })
    }

    /// Whether messages are recorded.
    #[must_use]
    pub fn records_messages(&self) -> bool {
        self.options.raw
    }

    /// Why the store is degraded; `None` if it is healthy.
    #[must_use]
    pub fn degraded(&self) -> Option<Degraded> {
        self.health.degraded()
    }

    /// Tries the store before the first request needs it. A store that is unavailable is logged, and probed until it is back.
    pub async fn try_out(self: &Arc<Self>) {
        // The first timeout may be a hiccup and says nothing.
        for _ in 0..2 {
            if self.with_deadline(self.store.probe()).await.is_ok() {
                return;
            }
        }
    }

    /// About how many bytes this process keeps in memory, by what they are for. All of it is bounded.
    #[must_use]
    pub fn cache_bytes(&self) -> [(&'static str, u64); 3] {
        const ENTRY: u64 = 128;
        let names = self.instructions.len() + self.backoffs.len();
        let decisions = self.local.bytes() + names as u64 * ENTRY;
        [("conversations", decisions), ("histories", self.logs.weight()), ("store", self.store.memory())]
    }

    /// How much the store holds and may hold; `None` if another system bounds it.
    #[must_use]
    pub fn store_size(&self) -> Option<StoreSize> {
        self.store.size()
    }

    /// Whether this process has served the conversation lately. Asks nobody.
    #[must_use]
    pub fn is_known(&self, key: ConversationKey) -> bool {
        self.local.get(key).is_some_and(|cached| cached.recalled(None).is_under_way())
    }

    /// Recalls a conversation. Never fails: if the store is unavailable, the result comes from the local cache.
    pub async fn recall(self: &Arc<Self>, key: ConversationKey) -> Recalled {
        // What the store has lost has to be recorded again, so the cache must not say that it is there.
        self.store.take_evicted().into_iter().for_each(|evicted| self.local.remove(evicted));
        let cached = self.local.get(key);
        if let Some(cached) = cached.as_ref().filter(|cached| cached.is_complete && !self.store.is_shared()) {
            return cached.recalled(self.health.degraded());
        }
        match self.recall_from_store(key).await {
            Ok(recalled) => recalled,
            Err(degraded) => cached.unwrap_or_default().without_store(degraded),
        }
    }

    /// Reads a conversation from the store and merges it with the local cache.
    async fn recall_from_store(self: &Arc<Self>, key: ConversationKey) -> Result<Recalled, Degraded> {
        let version = self.local.version();
        let recollection = self.resolve(self.with_deadline(self.store.recall(key)).await?).await?;
        let (stored, damage) = self.decode(key, &recollection);
        // Usually it has expired. But a store that has just lost its data and takes no writes, as a new replica does, is not one to
        // believe.
        if stored.is_empty() && self.local.has_saved(key, stored.generation) {
            self.with_deadline(self.store.probe()).await?;
        }
        let cached = self.local.merge(key, StoredState { version, ..stored });
        Ok(cached.recalled(damage.or(self.health.degraded())))
    }

    /// Writes the entries of a request. If that fails, the local cache keeps the decision, and the next request of the
    /// conversation writes the messages again.
    pub async fn journal(self: &Arc<Self>, key: ConversationKey, entries: Entries) -> Result<(), Degraded> {
        self.write_journal(key, entries, None).await
    }

    /// Where the waypoint is stored `elsewhere`, only that is written.
    async fn write_journal(
        self: &Arc<Self>,
        key: ConversationKey,
        entries: Entries,
        elsewhere: Option<ConversationKey>,
    ) -> Result<(), Degraded> {
        let Entries { generation, instructions, mut messages, waypoint } = entries;
        let ids: Vec<MessageId> = instructions.iter().map(|instruction| instruction.id).collect();
        messages.extend(instructions);
        let record = waypoint.as_ref().map(|waypoint| {
            elsewhere.map_or_else(|| record::encode_waypoint(waypoint), record::encode_reference)
        });
        let written = match self.encode(key, messages).await {
            Ok(messages) if messages.is_empty() && record.is_none() => return Ok(()),
            Ok(messages) => {
                let journal = Journal { messages, waypoint: record };
                self.with_deadline(self.store.journal(key, generation, journal)).await
            }
            Err(degraded) => Err(degraded),
        };
        if written == Ok(Written::Gone) {
            return Ok(());
        }
        if let Some(waypoint) = waypoint {
            self.local.add(key, generation, waypoint, written.is_ok());
        }
        if written.is_ok() {
            ids.into_iter().for_each(|id| self.instructions.insert((key, id), ()));
            self.save_folds(key, generation).await;
        }
        written.map(drop)
    }

    /// Keeps a decision in the local cache only, because the store has just failed for the same request.
    pub fn keep_locally(&self, key: ConversationKey, generation: Generation, waypoint: Waypoint) {
        self.local.add(key, generation, waypoint, false);
    }

    /// Whether this process has recorded an instruction of a conversation.
    #[must_use]
    pub fn has_instruction(&self, key: ConversationKey, id: MessageId) -> bool {
        self.instructions.get(&(key, id)).is_some()
    }

    /// Records a turn and adds to the counters.
    pub async fn count(
        self: &Arc<Self>,
        key: ConversationKey,
        generation: Generation,
        turn: Turn,
    ) -> Result<(), Degraded> {
        self.conclude(key, generation, turn, None).await
    }

    /// Records a turn and the answer to it, and adds to the counters. If that fails, the next request brings the answer back.
    pub async fn conclude(
        self: &Arc<Self>,
        key: ConversationKey,
        generation: Generation,
        turn: Turn,
        answer: Option<RawMessage>,
    ) -> Result<(), Degraded> {
        let messages = self.encode(key, Vec::from_iter(answer)).await?;
        self.with_deadline(self.store.conclude(key, generation, turn, messages)).await.map(drop)
    }

    /// Reads the head of a conversation with the deadline of a request.
    pub async fn counted(self: &Arc<Self>, key: ConversationKey) -> Result<Option<Head>, Degraded> {
        self.with_deadline(self.store.head(key)).await
    }

    /// The records of messages, if they are recorded.
    async fn encode(
        self: &Arc<Self>,
        key: ConversationKey,
        messages: Vec<RawMessage>,
    ) -> Result<Vec<(MessageId, Bytes)>, Degraded> {
        if !self.options.raw {
            return Ok(Vec::new());
        }
        let bytes: usize = messages.iter().map(|message| message.json.len()).sum();
        let this = self.clone();
        let encode = move || -> Vec<(MessageId, Bytes)> {
            let keyring = this.options.keyring.as_ref();
            messages
                .iter()
                .map(|message| (message.id, record::encode_message(key, message, keyring)))
                .collect()
        };
        if bytes <= INLINE_ENCODE_BYTES {
            Ok(encode())
        } else {
            off_worker(self.options.timeout, encode).await
        }
    }

    /// The records that can be decoded, and why others cannot.
    fn decode(&self, key: ConversationKey, recollection: &Recollection) -> (StoredState, Option<Degraded>) {
        let Recollection { generation, waypoints, folds, pinned } = recollection;
        let keyring = self.options.keyring.as_ref();
        let mut damage = None;
        let mut note = |error: RecordError| damage = Some(error.into());
        let waypoint = |record: &Bytes| record::decode_waypoint(record).map_err(&mut note).ok();
        let waypoints = waypoints.iter().filter_map(waypoint).collect();
        let fold = |record: &Bytes| record::decode_fold(key, record, keyring).map_err(&mut note).ok();
        let folds = folds.iter().filter_map(fold).collect();
        let pin = |record: &Bytes| record::decode_pin(key, record, keyring).map_err(&mut note).ok();
        let pinned = pinned.as_ref().and_then(pin).map(Arc::from);
        (StoredState { generation: *generation, waypoints, folds, pinned, version: 0 }, damage)
    }

    /// Runs a store operation with the deadline of a request. Fails at once while the store is down.
    async fn with_deadline<T>(self: &Arc<Self>, operation: StoreFuture<'_, T>) -> Result<T, Degraded> {
        self.with_timeout(self.options.timeout, operation).await
    }

    async fn with_timeout<T>(
        self: &Arc<Self>,
        limit: Duration,
        operation: StoreFuture<'_, T>,
    ) -> Result<T, Degraded> {
        if let Some(degraded) = self.health.down() {
            return Err(degraded);
        }
        let outcome = timeout(limit, operation).await.unwrap_or(Err(StoreError::Timeout));
        outcome.inspect(|_| self.health.succeeded()).map_err(|error| {
            if self.health.failed(&error) == Change::Worse {
                warn!(%error, reason = error.reason(), "store unavailable; serving from local cache");
            }
            if self.health.degraded().is_some() {
                self.start_probing();
            }
            Degraded::from(&error)
        })
    }

    /// Probes the store in the background until it accepts writes again.
    fn start_probing(self: &Arc<Self>) {
        if !self.health.begin_probing() {
            return;
        }
        let this = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                sleep(PROBE_INTERVAL).await;
                let Some(this) = this.upgrade() else { return };
                let outcome = timeout(this.options.timeout, this.store.probe()).await;
                if matches!(outcome, Ok(Ok(()))) {
                    this.health.end_probing();
                    if this.health.recovered() {
                        info!("store available again");
                    }
                    return;
                }
            }
        });
    }
}

/// Runs work on a blocking thread. All of them may be busy, so that waits no longer than the store does.
async fn off_worker<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Degraded> {
    match timeout(limit, tokio::task::spawn_blocking(work)).await {
        Ok(Ok(done)) => Ok(done),
        // The runtime shuts down.
        Ok(Err(_)) => Err(Degraded::Failed),
        Err(_) => Err(Degraded::Timeout),
    }
}
