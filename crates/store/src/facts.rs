//! Facts that belong to no conversation, such as the windows of models: all processes that share a store know them.

use crate::store::StoreFuture;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Keeps named facts by topic. A fact lives at least for the store's time to live, and no longer than the last one of its topic.
pub trait FactStore {
    /// Stores a fact under its name. The last write wins: whoever publishes knows best.
    fn publish(&self, topic: String, name: String, fact: Bytes) -> StoreFuture<'_, ()>;

    /// All facts of a topic, in no particular order.
    fn published(&self, topic: String) -> StoreFuture<'_, Vec<(String, Bytes)>>;

    /// Removes all facts of a topic.
    fn forget(&self, topic: String) -> StoreFuture<'_, ()>;
}

/// The maximum number of facts of a topic in a local store, which drops those beyond it.
pub(crate) const MAX_FACTS: usize = 4_096;

/// The maximum number of facts of all topics in a local store. Topics can be named after tenants.
pub(crate) const MAX_ALL_FACTS: usize = 16 * MAX_FACTS;

/// Facts in memory.
#[derive(Debug, Default)]
pub(crate) struct LocalFacts(Mutex<BTreeMap<String, Topic>>);

#[derive(Debug, Default)]
struct Topic {
    touched: u64,
    facts: BTreeMap<String, Bytes>,
}

impl LocalFacts {
    pub(crate) fn publish(&self, topic: String, name: String, fact: Bytes, now: u64, ttl: Duration) {
        let mut topics = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        topics.retain(|_, topic| is_alive(topic.touched, now, ttl));
        let known = topics.get(&topic).map(|topic| (topic.facts.len(), topic.facts.contains_key(&name)));
        let (count, is_known) = known.unwrap_or_default();
        let all = || topics.values().map(|topic| topic.facts.len()).sum::<usize>();
        if !is_known && (count >= MAX_FACTS || all() >= MAX_ALL_FACTS) {
            return;
        }
        let topic = topics.entry(topic).or_default();
        topic.touched = now;
        topic.facts.insert(name, fact);
    }

    pub(crate) fn published(&self, topic: &str, now: u64, ttl: Duration) -> Vec<(String, Bytes)> {
        let topics = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let topic = topics.get(topic).filter(|topic| is_alive(topic.touched, now, ttl));
        topic.map(|topic| topic.facts.clone().into_iter().collect()).unwrap_or_default()
    }

    pub(crate) fn forget(&self, topic: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(topic);
    }
}

fn is_alive(touched: u64, now: u64, ttl: Duration) -> bool {
    touched.saturating_add(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)) > now
}
