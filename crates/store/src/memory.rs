//! A store in the memory of this process. It needs no setup and is lost with the process.

use crate::facts::{FactStore, LocalFacts};
use crate::leases::Leases;
use crate::store::{FOLDS, Journal, Listing, MessageId, Recollection, Store, StoreFuture, Turn, WAYPOINTS};
use crate::{ConversationKey, Head, StoreError};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::future::ready;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Returns milliseconds since the Unix epoch.
pub type Clock = fn() -> u64;

/// Reads the system clock.
#[must_use]
pub fn wall_clock() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A [`Store`] in the memory of this process.
#[derive(Debug)]
pub struct MemoryStore {
    ttl: Duration,
    /// The maximum size of all records in bytes. Beyond it, the least recently written conversations are evicted.
    capacity: usize,
    clock: Clock,
    state: Mutex<State>,
    leases: Leases,
    facts: LocalFacts,
}

#[derive(Debug, Default)]
struct State {
    conversations: HashMap<ConversationKey, Conversation>,
    /// Ordered by the time of the last write, to find expired conversations.
    touched: BTreeSet<(u64, ConversationKey)>,
    /// Ordered by the time of the last turn, for listing.
    listed: BTreeSet<(u64, ConversationKey)>,
    bytes: usize,
}

#[derive(Debug, Default)]
struct Conversation {
    waypoints: VecDeque<Bytes>,
    folds: VecDeque<(MessageId, Bytes)>,
    messages: BTreeMap<MessageId, Bytes>,
    turns: HashMap<[u8; 16], Bytes>,
    ends: HashSet<MessageId>,
    head: Option<Head>,
    pinned: Option<Bytes>,
    touched: u64,
    bytes: usize,
}

/// The default capacity in bytes: about a thousand long conversations with their messages.
const DEFAULT_CAPACITY: usize = 256 << 20;

/// The approximate cost of an entry in addition to its bytes.
const ENTRY_OVERHEAD: usize = 128;

impl MemoryStore {
    #[must_use]
    pub fn new(ttl: Duration) -> MemoryStore {
        MemoryStore::with(ttl, DEFAULT_CAPACITY, wall_clock)
    }

    #[must_use]
    pub fn with(ttl: Duration, capacity: usize, clock: Clock) -> MemoryStore {
        MemoryStore {
            ttl,
            capacity,
            clock,
            state: Mutex::default(),
            leases: Leases::default(),
            facts: LocalFacts::default(),
        }
    }

    /// Locks the state and removes what has expired or exceeds the capacity.
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics between two consistent states, so a poisoned lock still guards a consistent one.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let ttl = u64::try_from(self.ttl.as_millis()).unwrap_or(u64::MAX);
        let now = (self.clock)();
        while let Some((touched, key)) = state.touched.first().copied() {
            if touched.saturating_add(ttl) > now && state.bytes <= self.capacity {
                break;
            }
            state.remove(key);
        }
        state
    }

    fn change<T>(&self, key: ConversationKey, change: impl FnOnce(&mut Conversation) -> T) -> T {
        let now = (self.clock)();
        let mut state = self.state();
        let mut conversation = state.take(key);
        let outcome = change(&mut conversation);
        conversation.touched = now;
        state.insert(key, conversation);
        outcome
    }

    fn read<T: Default>(&self, key: ConversationKey, read: impl FnOnce(&Conversation) -> T) -> T {
        self.state().conversations.get(&key).map(read).unwrap_or_default()
    }
}

impl State {
    fn take(&mut self, key: ConversationKey) -> Conversation {
        let Some(conversation) = self.conversations.remove(&key) else { return Conversation::default() };
        self.touched.remove(&(conversation.touched, key));
        if let Some(head) = &conversation.head {
            self.listed.remove(&(head.last, key));
        }
        self.bytes -= conversation.bytes;
        conversation
    }

    fn insert(&mut self, key: ConversationKey, conversation: Conversation) {
        self.touched.insert((conversation.touched, key));
        if let Some(head) = &conversation.head {
            self.listed.insert((head.last, key));
        }
        self.bytes += conversation.bytes;
        self.conversations.insert(key, conversation);
    }

    fn remove(&mut self, key: ConversationKey) -> bool {
        let existed = self.conversations.contains_key(&key);
        drop(self.take(key));
        existed
    }
}

impl Conversation {
    fn journal(&mut self, journal: Journal) {
        for (id, record) in journal.messages {
            let bytes = record.len() + ENTRY_OVERHEAD;
            self.messages.entry(id).or_insert_with(|| {
                self.bytes += bytes;
                record
            });
        }
        if let Some(waypoint) = journal.waypoint {
            self.bytes += waypoint.len() + ENTRY_OVERHEAD;
            self.waypoints.push_back(waypoint);
            if self.waypoints.len() > WAYPOINTS
                && let Some(oldest) = self.waypoints.pop_front()
            {
                self.bytes -= oldest.len() + ENTRY_OVERHEAD;
            }
        }
    }

    fn fold(&mut self, covers: MessageId, record: Bytes) -> bool {
        if let Some((_, kept)) = self.folds.iter().find(|(known, _)| *known == covers) {
            return *kept == record;
        }
        self.bytes += record.len() + ENTRY_OVERHEAD;
        self.folds.push_back((covers, record));
        if self.folds.len() > FOLDS
            && let Some((_, oldest)) = self.folds.pop_front()
        {
            self.bytes -= oldest.len() + ENTRY_OVERHEAD;
        }
        true
    }

    fn recollection(&self) -> Recollection {
        let waypoints = self.waypoints.iter().cloned().collect();
        let folds = self.folds.iter().map(|(_, record)| record.clone()).collect();
        Recollection { waypoints, folds, pinned: self.pinned.clone() }
    }

    fn pin(&mut self, record: Option<Bytes>) {
        let size = |record: &Option<Bytes>| record.as_ref().map_or(0, |record| record.len() + ENTRY_OVERHEAD);
        self.bytes = self.bytes + size(&record) - size(&self.pinned);
        self.pinned = record;
    }

    fn count(&mut self, turn: Turn) {
        if self.turns.contains_key(&turn.id) {
            return;
        }
        self.bytes += turn.record.len() + ENTRY_OVERHEAD;
        self.turns.insert(turn.id, turn.record);
        let is_new = turn.end.is_some_and(|end| self.ends.insert(end));
        self.head.get_or_insert_default().add(turn.at, is_new, &turn.counts, turn.labels);
    }
}

impl FactStore for MemoryStore {
    fn publish(&self, topic: String, name: String, fact: Bytes) -> StoreFuture<'_, ()> {
        self.facts.publish(topic, name, fact, (self.clock)(), self.ttl);
        Box::pin(ready(Ok(())))
    }

    fn published(&self, topic: String) -> StoreFuture<'_, Vec<(String, Bytes)>> {
        Box::pin(ready(Ok(self.facts.published(&topic, (self.clock)(), self.ttl))))
    }
}

impl Store for MemoryStore {
    fn recall(&self, key: ConversationKey) -> StoreFuture<'_, Recollection> {
        done(self.read(key, Conversation::recollection))
    }

    fn journal(&self, key: ConversationKey, journal: Journal) -> StoreFuture<'_, ()> {
        self.change(key, |conversation| conversation.journal(journal));
        done(())
    }

    fn fold(&self, key: ConversationKey, covers: MessageId, record: Bytes) -> StoreFuture<'_, bool> {
        done(self.change(key, |conversation| conversation.fold(covers, record)))
    }

    fn pin(&self, key: ConversationKey, record: Option<Bytes>) -> StoreFuture<'_, ()> {
        self.change(key, |conversation| conversation.pin(record));
        done(())
    }

    fn claim(&self, key: ConversationKey, holder: [u8; 16], lease: Duration) -> StoreFuture<'_, bool> {
        done(self.leases.acquire(key, holder, lease))
    }

    fn release(&self, key: ConversationKey, holder: [u8; 16]) -> StoreFuture<'_, ()> {
        self.leases.release(key, holder);
        done(())
    }

    fn count(&self, key: ConversationKey, turn: Turn) -> StoreFuture<'_, ()> {
        self.change(key, |conversation| conversation.count(turn));
        done(())
    }

    fn head(&self, key: ConversationKey) -> StoreFuture<'_, Option<Head>> {
        done(self.read(key, |conversation| conversation.head.clone()))
    }

    fn list(&self, offset: usize, limit: usize) -> StoreFuture<'_, Listing> {
        let state = self.state();
        let page = state.listed.iter().rev().skip(offset).take(limit);
        let head = |key: &ConversationKey| state.conversations.get(key)?.head.clone();
        let conversations = page.filter_map(|(_, key)| Some((*key, head(key)?))).collect();
        done(Listing { conversations, total: state.listed.len() })
    }

    fn turns(&self, key: ConversationKey) -> StoreFuture<'_, Vec<Bytes>> {
        done(self.read(key, |conversation| conversation.turns.values().cloned().collect()))
    }

    fn messages(&self, key: ConversationKey) -> StoreFuture<'_, Vec<(MessageId, Bytes)>> {
        let all = |conversation: &Conversation| {
            conversation.messages.iter().map(|(id, record)| (*id, record.clone())).collect()
        };
        done(self.read(key, all))
    }

    fn delete(&self, key: ConversationKey) -> StoreFuture<'_, bool> {
        self.leases.revoke(key);
        done(self.state().remove(key))
    }

    fn probe(&self) -> StoreFuture<'_, ()> {
        done(())
    }

    fn is_shared(&self) -> bool {
        false
    }
}

fn done<'a, T: Send + 'a>(value: T) -> StoreFuture<'a, T> {
    Box::pin(ready(Ok::<T, StoreError>(value)))
}
