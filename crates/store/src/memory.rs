//! A store in the memory of this process. It needs no setup and is lost with the process.

mod conversation;
mod exchanges;

use crate::evictions::Evictions;
use crate::facts::{FactStore, LocalFacts};
use crate::leases::{Claimed, Leases};
use crate::store::{
    Append, Appended, Delivery, FoldWritten, Generation, Journal, Lease, Listing, LogRead, MessageId,
    Recollection, Store, StoreFuture, StoreSize, TOMBSTONE_LIFE, Turn, Written,
};
use crate::{ConversationKey, Head, StoreError};
use bytes::Bytes;
use conversation::Conversation;
use std::collections::{BTreeSet, HashMap};
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
    evictions: Evictions,
}

#[derive(Debug, Default)]
struct State {
    conversations: HashMap<ConversationKey, Conversation>,
    /// Ordered by the time of the last write, to find expired conversations.
    touched: BTreeSet<(u64, ConversationKey)>,
    /// Ordered by the time of the last turn, for listing.
    listed: BTreeSet<(u64, ConversationKey)>,
    bytes: usize,
    /// The generations of conversations that were deleted, and when.
    tombstones: HashMap<ConversationKey, (Generation, u64)>,
}

/// The default capacity in bytes: about a thousand long conversations with their messages.
const DEFAULT_CAPACITY: usize = 256 << 20;

impl MemoryStore {
    #[must_use]
    pub fn new(ttl: Duration) -> MemoryStore {
        MemoryStore::with(ttl, DEFAULT_CAPACITY, wall_clock)
    }

    /// A store of at most `max_size` bytes.
    #[must_use]
    pub fn bounded(ttl: Duration, max_size: u64) -> MemoryStore {
        MemoryStore::with(ttl, usize::try_from(max_size).unwrap_or(usize::MAX), wall_clock)
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
            evictions: Evictions::default(),
        }
    }

    /// Locks the state and removes what has expired or exceeds the capacity.
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics between two consistent states, so a poisoned lock still guards a consistent one.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let ttl = u64::try_from(self.ttl.as_millis()).unwrap_or(u64::MAX);
        let now = (self.clock)();
        while let Some((touched, key)) = state.touched.first().copied() {
            let is_alive = touched.saturating_add(ttl) > now;
            if is_alive && state.bytes <= self.capacity {
                break;
            }
            if is_alive {
                self.evictions.add(&[key]);
            }
            state.remove(key);
        }
        state
    }

    /// Changes a conversation, unless it was deleted since `generation`.
    fn change_in<T>(
        &self,
        key: ConversationKey,
        generation: Generation,
        gone: T,
        change: impl FnOnce(&mut Conversation) -> T,
    ) -> T {
        self.change_if(key, |state| state.generation(key) == generation, change).unwrap_or(gone)
    }

    fn change_if<T>(
        &self,
        key: ConversationKey,
        is_wanted: impl FnOnce(&State) -> bool,
        change: impl FnOnce(&mut Conversation) -> T,
    ) -> Option<T> {
        let now = (self.clock)();
        let mut state = self.state();
        if !is_wanted(&state) {
            return None;
        }
        let mut conversation = state.take(key);
        let outcome = change(&mut conversation);
        conversation.touched = now;
        state.insert(key, conversation);
        Some(outcome)
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

    fn generation(&self, key: ConversationKey) -> Generation {
        self.tombstones.get(&key).map_or(Generation::default(), |(generation, _)| *generation)
    }

    /// Begins another generation, and forgets the tombstones that nothing under way can be older than.
    fn bury(&mut self, key: ConversationKey, next: Generation, now: u64) {
        let life = u64::try_from(TOMBSTONE_LIFE.as_millis()).unwrap_or(u64::MAX);
        let State { tombstones, conversations, .. } = self;
        tombstones.retain(|key, (_, at)| conversations.contains_key(key) || at.saturating_add(life) > now);
        tombstones.insert(key, (next, now));
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
    fn forget(&self, topic: String) -> StoreFuture<'_, ()> {
        self.facts.forget(&topic);
        Box::pin(ready(Ok(())))
    }
}

impl Store for MemoryStore {
    fn recall(&self, key: ConversationKey) -> StoreFuture<'_, Recollection> {
        let state = self.state();
        let recollection = state.conversations.get(&key).map(Conversation::recollection).unwrap_or_default();
        done(Recollection { generation: state.generation(key), ..recollection })
    }

    fn journal(
        &self,
        key: ConversationKey,
        generation: Generation,
        journal: Journal,
    ) -> StoreFuture<'_, Written> {
        done(self.change_in(key, generation, Written::Gone, |conversation| conversation.journal(journal)))
    }

    fn fold(
        &self,
        key: ConversationKey,
        generation: Generation,
        covers: MessageId,
        record: Bytes,
    ) -> StoreFuture<'_, FoldWritten> {
        let fold = |conversation: &mut Conversation| conversation.fold(covers, record);
        done(self.change_in(key, generation, FoldWritten::Gone, fold))
    }

    fn log(&self, key: ConversationKey, from: usize) -> StoreFuture<'_, LogRead> {
        let state = self.state();
        let generation = state.generation(key);
        let Some(conversation) = state.conversations.get(&key) else {
            return done(LogRead { generation, ..LogRead::default() });
        };
        let turns = conversation.log.iter().skip(from).cloned().collect();
        let Conversation { log_head: head, is_undelivered, .. } = *conversation;
        done(LogRead { generation, head, is_undelivered, turns })
    }

    fn append(
        &self,
        key: ConversationKey,
        generation: Generation,
        append: Append,
    ) -> StoreFuture<'_, Appended> {
        let mut state = self.state();
        if state.generation(key) != generation {
            return done(Appended::Gone);
        }
        // A turn that is refused must not create a conversation, nor extend the life of one.
        let mut conversation = state.take(key);
        let touched = conversation.touched;
        let is_new = conversation.bytes == 0;
        let appended = conversation.append(append);
        conversation.touched = if appended == Appended::Done { (self.clock)() } else { touched };
        if appended == Appended::Done || !is_new {
            state.insert(key, conversation);
        }
        done(appended)
    }

    fn note_delivery(
        &self,
        key: ConversationKey,
        generation: Generation,
        head: MessageId,
        delivery: Delivery,
    ) -> StoreFuture<'_, Written> {
        let mut state = self.state();
        if state.generation(key) != generation {
            return done(Written::Gone);
        }
        let conversation = state.conversations.get_mut(&key);
        if let Some(conversation) = conversation.filter(|conversation| conversation.log_head == Some(head)) {
            conversation.is_undelivered = delivery == Delivery::Undelivered;
        }
        done(Written::Done)
    }

    fn pin(&self, key: ConversationKey, record: Option<Bytes>) -> StoreFuture<'_, ()> {
        self.change_if(key, |_| true, |conversation| conversation.pin(record));
        done(())
    }

    fn claim(
        &self,
        key: ConversationKey,
        lease: Lease,
        holder: [u8; 16],
        duration: Duration,
    ) -> StoreFuture<'_, bool> {
        let claimed = self.leases.acquire(key, lease, holder, duration);
        if claimed == Claimed::New && lease == Lease::Turn {
            self.change_if(key, |state| state.conversations.contains_key(&key), |_| ());
        }
        done(claimed != Claimed::Taken)
    }

    fn renew(
        &self,
        key: ConversationKey,
        lease: Lease,
        holder: [u8; 16],
        duration: Duration,
    ) -> StoreFuture<'_, bool> {
        done(self.leases.renew(key, lease, holder, duration))
    }

    fn release(&self, key: ConversationKey, lease: Lease, holder: [u8; 16]) -> StoreFuture<'_, ()> {
        self.leases.release(key, lease, holder);
        done(())
    }

    fn count(&self, key: ConversationKey, generation: Generation, turn: Turn) -> StoreFuture<'_, Written> {
        self.conclude(key, generation, turn, Vec::new())
    }

    fn conclude(
        &self,
        key: ConversationKey,
        generation: Generation,
        turn: Turn,
        messages: Vec<(MessageId, Bytes)>,
    ) -> StoreFuture<'_, Written> {
        done(self.change_in(key, generation, Written::Gone, |conversation| {
            conversation.journal(Journal { messages, waypoint: None });
            conversation.count(turn)
        }))
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

    fn delete(&self, key: ConversationKey, next: Generation) -> StoreFuture<'_, bool> {
        self.leases.revoke(key);
        let now = (self.clock)();
        let mut state = self.state();
        let existed = state.remove(key);
        state.bury(key, next, now);
        done(existed)
    }

    fn probe(&self) -> StoreFuture<'_, ()> {
        done(())
    }

    fn memory(&self) -> u64 {
        self.state().bytes as u64
    }

    fn size(&self) -> Option<StoreSize> {
        let (bytes, limit) = (self.memory(), self.capacity as u64);
        Some(StoreSize { bytes, limit, evicted: self.evictions.count() })
    }

    fn take_evicted(&self) -> Vec<ConversationKey> {
        self.evictions.take()
    }

    fn is_shared(&self) -> bool {
        false
    }
}

fn done<'a, T: Send + 'a>(value: T) -> StoreFuture<'a, T> {
    Box::pin(ready(Ok::<T, StoreError>(value)))
}
