//! What the proxy uses: conversations that can always be recalled.

mod folding;
mod history;
#[cfg(test)]
mod tests;

pub use folding::Claim;
pub use history::History;

use crate::claims::Claims;
use crate::health::{Change, Health};
use crate::local::{AskedPin, Local};
use crate::record::{self, RawMessage, RecordError, StoredFold};
use crate::seal::Keyring;
use crate::store::{Answer, Journal, Listing, MessageId, Recollection, Store, Turn};
use crate::{ConversationKey, Head, Recalled, StoreError};
use bytes::Bytes;
use quick_cache::sync::Cache;
use std::sync::Arc;
use std::time::Duration;
use tidegate_engine::Waypoint;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

/// A store with a deadline for everything, and what this process remembers itself for when the store does not answer.
///
/// Decisions are stored under what they were made for, so an old memory is never wrong, only short: a request that is
/// served from this process's own gets the same decisions as before.
#[derive(Debug)]
pub struct Conversations {
    store: Arc<dyn Store>,
    options: Options,
    local: Local,
    /// Instructions stand outside the chain of digests and are resent with every request: those that were recorded.
    instructions: Cache<(ConversationKey, MessageId), ()>,
    /// Histories that the proxy holds for their clients, for when the store does not answer.
    histories: Cache<ConversationKey, Arc<History>>,
    /// Asked before the store is: two in this process never both fold, whatever the store says or fails to say.
    claims: Claims,
    /// Until when folding a conversation is not worth trying again, in milliseconds since 1970.
    cooling: Cache<ConversationKey, u64>,
    health: Health,
}

#[derive(Clone, Debug)]
pub struct Options {
    /// The deadline of everything that a request waits for.
    pub timeout: Duration,
    /// Whether messages are recorded.
    pub raw: bool,
    /// Encrypts them, and summaries.
    pub keyring: Option<Keyring>,
}

/// What a request leaves before its answer ends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entries {
    /// Messages that instruct: they stand outside the chain of digests.
    pub instructions: Vec<RawMessage>,
    pub messages: Vec<RawMessage>,
    /// Covers all messages up to its end, which must all be here or in the store.
    pub waypoint: Option<Waypoint>,
}

/// The messages of a conversation, and how many more there are that cannot be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    pub messages: Vec<RawMessage>,
    pub unreadable: Vec<RecordError>,
}

/// What is pinned to a conversation: a text, or one that cannot be read, or nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pinned {
    pub text: Option<String>,
    pub unreadable: Option<RecordError>,
}

/// What of the records can be used, and what to say of the rest.
struct Usable {
    waypoints: Vec<Waypoint>,
    folds: Vec<StoredFold>,
    pinned: Option<Arc<str>>,
    damage: Option<&'static str>,
}

/// How often a store that fails is tried.
const PROBE_EVERY: Duration = Duration::from_millis(250);

/// A person reading a conversation back waits longer than a request does.
const PATIENCE: Duration = Duration::from_secs(10);

/// More than this is not encoded and encrypted on a worker.
const LIGHT: usize = 64 * 1024;

impl Conversations {
    #[must_use]
    pub fn new(store: Arc<dyn Store>, options: Options) -> Arc<Conversations> {
        Arc::new(Conversations {
            store,
            options,
            local: Local::default(),
            instructions: Cache::new(16_384),
            histories: Cache::new(1_024),
            claims: Claims::default(),
            cooling: Cache::new(16_384),
            health: Health::default(),
        })
    }

    /// Whether messages are recorded at all.
    #[must_use]
    pub fn records_messages(&self) -> bool {
        self.options.raw
    }

    /// Why the store is not as it should be, for readiness and for answers; none while all is well.
    #[must_use]
    pub fn degraded(&self) -> Option<&'static str> {
        self.health.reason()
    }

    /// What is known of a conversation. It cannot fail: without the store it is what this process knows.
    pub async fn recall(self: &Arc<Self>, key: ConversationKey) -> Recalled {
        let mine = self.local.get(key);
        if let Some(mine) = mine.as_ref().filter(|mine| mine.is_whole && !self.store.is_shared()) {
            return mine.recalled(self.health.reason());
        }
        match self.ask(key).await {
            Ok(recalled) => recalled,
            Err(reason) => mine.unwrap_or_default().without_store(reason),
        }
    }

    /// What the store knows of a conversation, with what only this process knows.
    async fn ask(self: &Arc<Self>, key: ConversationKey) -> Result<Recalled, &'static str> {
        let since = self.local.pins();
        let recollection = self.waited(self.store.recall(key)).await?;
        let Usable { waypoints, folds, pinned, damage } = self.decode(key, &recollection);
        let mine = self.local.merge(key, waypoints, folds, AskedPin { text: pinned, since });
        Ok(mine.recalled(damage.or(self.health.reason())))
    }

    /// Writes what a request leaves before its answer ends. If it fails, this process keeps the decision, and the next request
    /// of the conversation brings the messages again.
    pub async fn journal(
        self: &Arc<Self>,
        key: ConversationKey,
        entries: Entries,
    ) -> Result<(), &'static str> {
        let Entries { instructions, mut messages, waypoint } = entries;
        self.note(key, &messages);
        let ids: Vec<MessageId> = instructions.iter().map(|instruction| instruction.id).collect();
        messages.extend(instructions);
        let journal = self.encode(key, messages, waypoint).await;
        if journal == Journal::default() {
            return Ok(());
        }
        let written = self.waited(self.store.journal(key, journal)).await;
        if let Some(waypoint) = waypoint {
            self.local.add(key, waypoint, written.is_ok());
        }
        if written.is_ok() {
            ids.into_iter().for_each(|id| self.instructions.insert((key, id), ()));
            self.save_folds(key).await;
        }
        written
    }

    /// Remembers a decision in this process alone, because the store has just failed to answer the same request.
    pub fn keep_here(&self, key: ConversationKey, waypoint: Waypoint) {
        self.local.add(key, waypoint, false);
    }

    /// Whether this process has recorded an instruction of a conversation that the store still has.
    #[must_use]
    pub fn has_instruction(&self, key: ConversationKey, id: MessageId) -> bool {
        self.instructions.get(&(key, id)).is_some()
    }

    /// Adds a turn to the counts.
    pub async fn count(self: &Arc<Self>, key: ConversationKey, turn: Turn) -> Result<(), &'static str> {
        self.waited(self.store.count(key, turn)).await
    }

    pub async fn list(&self, offset: usize, limit: usize) -> Result<Listing, StoreError> {
        patiently(self.store.list(offset, limit)).await
    }

    pub async fn head(&self, key: ConversationKey) -> Result<Option<Head>, StoreError> {
        patiently(self.store.head(key)).await
    }

    /// What has been counted of a conversation, for a request that waits for it.
    pub async fn counted(self: &Arc<Self>, key: ConversationKey) -> Result<Option<Head>, &'static str> {
        self.waited(self.store.head(key)).await
    }

    /// Pins a text to a conversation, in the place of the one that was; none takes it away.
    pub async fn pin(&self, key: ConversationKey, text: Option<&str>) -> Result<(), StoreError> {
        let text = text.filter(|text| !text.is_empty());
        let record = text.map(|text| record::encode_pin(key, text, self.options.keyring.as_ref()));
        patiently(self.store.pin(key, record)).await?;
        self.local.pin(key, text.map(Arc::from));
        Ok(())
    }

    /// What is pinned to a conversation, for a person. One that cannot be read is told from none: whoever sees nothing there
    /// would write another in its place.
    pub async fn pinned(&self, key: ConversationKey) -> Result<Pinned, StoreError> {
        let record = patiently(self.store.recall(key)).await?.pinned;
        let read = record.map(|record| record::decode_pin(key, &record, self.options.keyring.as_ref()));
        Ok(match read {
            None => Pinned::default(),
            Some(Ok(text)) => Pinned { text: Some(text), unreadable: None },
            Some(Err(error)) => Pinned { text: None, unreadable: Some(error) },
        })
    }

    /// The record of every turn, in no particular order. What a record means is not the store's business.
    pub async fn turns(&self, key: ConversationKey) -> Result<Vec<Bytes>, StoreError> {
        patiently(self.store.turns(key)).await
    }

    /// Every message, in order.
    pub async fn timeline(&self, key: ConversationKey) -> Result<Timeline, StoreError> {
        let records = patiently(self.store.messages(key)).await?;
        let mut timeline = Timeline::default();
        for (id, record) in &records {
            match record::decode_message(key, *id, record, self.options.keyring.as_ref()) {
                Ok(message) => timeline.messages.push(message),
                Err(error) => timeline.unreadable.push(error),
            }
        }
        timeline.messages.sort_by_key(|message| (message.position, message.at, message.id));
        Ok(timeline)
    }

    pub async fn delete(&self, key: ConversationKey) -> Result<bool, StoreError> {
        self.local.forget(key);
        self.histories.remove(&key);
        self.cooling.remove(&key);
        let deleted = patiently(self.store.delete(key)).await?;
        // A request may have brought it back in the meantime, with what it knew before.
        self.local.forget(key);
        Ok(deleted)
    }

    async fn encode(
        self: &Arc<Self>,
        key: ConversationKey,
        messages: Vec<RawMessage>,
        waypoint: Option<Waypoint>,
    ) -> Journal {
        let waypoint = waypoint.as_ref().map(record::encode_waypoint);
        if !self.options.raw {
            return Journal { messages: Vec::new(), waypoint };
        }
        let bytes: usize = messages.iter().map(|message| message.json.len()).sum();
        let this = self.clone();
        let encode = move || -> Vec<(MessageId, Bytes)> {
            let keyring = this.options.keyring.as_ref();
            messages.iter().map(|one| (one.id, record::encode_message(key, one, keyring))).collect()
        };
        let messages = if bytes <= LIGHT {
            encode()
        } else {
            // It fails only when the process is ending.
            tokio::task::spawn_blocking(encode).await.unwrap_or_default()
        };
        Journal { messages, waypoint }
    }

    fn decode(&self, key: ConversationKey, recollection: &Recollection) -> Usable {
        let Recollection { waypoints, folds, pinned } = recollection;
        let keyring = self.options.keyring.as_ref();
        let mut damage = None;
        let mut say = |error: RecordError| damage = Some(error.reason());
        let waypoint = |one: &Bytes| record::decode_waypoint(one).map_err(&mut say).ok();
        let waypoints = waypoints.iter().filter_map(waypoint).collect();
        let fold = |one: &Bytes| record::decode_fold(key, one, keyring).map_err(&mut say).ok();
        let folds = folds.iter().filter_map(fold).collect();
        let pin = |one: &Bytes| record::decode_pin(key, one, keyring).map_err(&mut say).ok();
        let pinned = pinned.as_ref().and_then(pin).map(Arc::from);
        Usable { waypoints, folds, pinned, damage }
    }

    /// Waits for the store, if it is worth waiting for.
    async fn waited<T>(self: &Arc<Self>, answer: Answer<'_, T>) -> Result<T, &'static str> {
        self.waited_for(self.options.timeout, answer).await
    }

    async fn waited_for<T>(
        self: &Arc<Self>,
        limit: Duration,
        answer: Answer<'_, T>,
    ) -> Result<T, &'static str> {
        if let Some(reason) = self.health.down() {
            return Err(reason);
        }
        let answer = timeout(limit, answer).await.unwrap_or(Err(StoreError::Timeout));
        answer.inspect(|_| self.health.answered()).map_err(|error| {
            if self.health.failed(&error) == Change::Worse {
                warn!(%error, reason = error.reason(), "conversations are served without their store");
            }
            if self.health.reason().is_some() {
                self.probe();
            }
            error.reason()
        })
    }

    /// Tries the store from the side until it takes writes again.
    fn probe(self: &Arc<Self>) {
        if !self.health.begin_probing() {
            return;
        }
        let this = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                sleep(PROBE_EVERY).await;
                let Some(this) = this.upgrade() else { return };
                let answer = timeout(this.options.timeout, this.store.probe()).await;
                if matches!(answer, Ok(Ok(()))) {
                    this.health.end_probing();
                    if this.health.recovered() {
                        info!("the store is back");
                    }
                    return;
                }
            }
        });
    }
}

async fn patiently<T>(answer: Answer<'_, T>) -> Result<T, StoreError> {
    timeout(PATIENCE, answer).await.unwrap_or(Err(StoreError::Timeout))
}
