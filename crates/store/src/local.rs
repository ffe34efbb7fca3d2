//! What this process remembers of conversations itself.

use crate::ConversationKey;
use crate::store::WAYPOINTS;
use quick_cache::sync::Cache;
use std::sync::{Arc, Mutex, PoisonError};
use tidegate_engine::{Digest, Memory, Waypoint};

/// The memories of this process, the least used forgotten first.
#[derive(Debug)]
pub(crate) struct Local {
    memories: Cache<ConversationKey, Arc<Mutex<Mine>>>,
}

/// What is known here of one conversation.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Mine {
    memory: Memory,
    /// The ends of waypoints that the store does not have, because writing them failed.
    unsaved: Vec<Digest>,
}

/// What is known of a conversation when a request of it arrives.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recalled {
    pub memory: Memory,
    unsaved: Vec<Digest>,
    /// Why it may not be all; none if it is.
    pub degraded: Option<&'static str>,
    /// Whether the store could not be asked at all.
    pub is_unavailable: bool,
}

/// In milliseconds. Shorter than any provider's cache lives, so that the time of a waypoint stays right where it matters.
const MOMENT: u64 = 60_000;

/// A memory is at most a few kilobytes, so this many fit into some tens of megabytes.
const MOST: usize = 16_384;

impl Default for Local {
    fn default() -> Local {
        Local { memories: Cache::new(MOST) }
    }
}

impl Local {
    pub(crate) fn get(&self, key: ConversationKey) -> Option<Mine> {
        self.memories.get(&key).map(|mine| mine.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// Takes over what the store has, and keeps what it does not have: because it could not be written, or because the store
    /// has lost it, as one that was restarted or failed over may.
    pub(crate) fn merge(&self, key: ConversationKey, mut stored: Vec<Waypoint>) -> Mine {
        self.change(key, |mine| {
            let is_missing = |one: &&Waypoint| !stored.iter().any(|waypoint| waypoint.end == one.end);
            let missing: Vec<Waypoint> = mine.memory.waypoints().iter().filter(is_missing).copied().collect();
            if !missing.is_empty() {
                stored.extend_from_slice(&missing);
                stored.sort_by_key(|waypoint| waypoint.at.0);
                stored.drain(..stored.len().saturating_sub(WAYPOINTS));
            }
            mine.unsaved = missing.iter().map(|waypoint| waypoint.end).collect();
            mine.memory = Memory::of(stored);
        })
    }

    pub(crate) fn add(&self, key: ConversationKey, waypoint: Waypoint, is_saved: bool) {
        self.change(key, |mine| {
            mine.unsaved.retain(|end| *end != waypoint.end);
            if !is_saved {
                mine.unsaved.push(waypoint.end);
            }
            mine.memory.add(waypoint);
            let memory = &mine.memory;
            mine.unsaved.retain(|end| memory.waypoints().iter().any(|one| one.end == *end));
        });
    }

    pub(crate) fn forget(&self, key: ConversationKey) {
        self.memories.remove(&key);
    }

    /// Two requests at once both add theirs; neither overwrites the other's.
    fn change(&self, key: ConversationKey, change: impl FnOnce(&mut Mine)) -> Mine {
        let fresh = || Ok::<_, std::convert::Infallible>(Arc::default());
        let Ok(mine) = self.memories.get_or_insert_with(&key, fresh);
        let mut mine = mine.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut mine);
        mine.clone()
    }
}

impl Mine {
    pub(crate) fn recalled(&self, degraded: Option<&'static str>) -> Recalled {
        let Mine { memory, unsaved } = self.clone();
        Recalled { memory, unsaved, degraded, is_unavailable: false }
    }

    /// What is known without the store: it may have less than this process believes.
    pub(crate) fn without_store(self, reason: &'static str) -> Recalled {
        let unsaved = self.memory.waypoints().iter().map(|waypoint| waypoint.end).collect();
        Recalled { memory: self.memory, unsaved, degraded: Some(reason), is_unavailable: true }
    }
}

impl Recalled {
    /// Whether the store has this decision from a moment ago: a retry has nothing to add to it.
    #[must_use]
    pub fn knows(&self, waypoint: &Waypoint) -> bool {
        let is_same = |known: &&Waypoint| {
            (known.end, known.frontier) == (waypoint.end, waypoint.frontier)
                && waypoint.at.0.saturating_sub(known.at.0) <= MOMENT
        };
        self.memory.waypoints().iter().rev().find(is_same).is_some() && !self.unsaved.contains(&waypoint.end)
    }

    /// How many messages of a request, from the first one on, are in the timeline already: a waypoint is only ever stored
    /// together with all messages before it. `digests` are those of the conversation at each message.
    #[must_use]
    pub fn recorded(&self, digests: impl DoubleEndedIterator<Item = Digest> + ExactSizeIterator) -> usize {
        let is_saved = |end: &Digest| {
            self.memory.waypoints().iter().any(|one| one.end == *end) && !self.unsaved.contains(end)
        };
        digests.enumerate().rev().find(|(_, digest)| is_saved(digest)).map_or(0, |(index, _)| index + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_engine::Timestamp;

    const KEY: ConversationKey = ConversationKey([7; 16]);

    fn waypoint(number: u8) -> Waypoint {
        Waypoint { end: Digest([number; 32]), frontier: None, tally: 0.0, at: Timestamp(0) }
    }

    fn ends(memory: &Memory) -> Vec<u8> {
        memory.waypoints().iter().map(|waypoint| waypoint.end.0[0]).collect()
    }

    fn digests(numbers: &[u8]) -> impl DoubleEndedIterator<Item = Digest> + ExactSizeIterator {
        numbers.iter().map(|number| Digest([*number; 32])).collect::<Vec<_>>().into_iter()
    }

    #[test]
    fn what_is_added_by_many_at_once_is_all_there() {
        let local = Local::default();
        std::thread::scope(|scope| {
            for number in 0..8 {
                let local = &local;
                scope.spawn(move || local.add(KEY, waypoint(number), true));
            }
        });
        let mut all = ends(&local.get(KEY).unwrap().memory);
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(local.get(ConversationKey([8; 16])), None);
    }

    #[test]
    fn what_the_store_missed_is_kept_until_the_store_has_it() {
        let local = Local::default();
        local.add(KEY, waypoint(1), true);
        local.add(KEY, waypoint(2), false);
        let merged = local.merge(KEY, vec![waypoint(1), waypoint(9)]).recalled(None);
        assert_eq!(ends(&merged.memory), [1, 9, 2]);
        // The second message was only ever remembered here, so it has to be recorded again.
        assert_eq!(merged.recorded(digests(&[1, 2, 3])), 1);
        local.add(KEY, waypoint(2), true);
        let merged = local.merge(KEY, vec![waypoint(1), waypoint(2)]).recalled(None);
        assert_eq!(merged.recorded(digests(&[1, 2, 3])), 2);
        assert_eq!(merged.recorded(digests(&[5, 6])), 0);
        // A store that has lost everything is told everything again.
        let merged = local.merge(KEY, vec![]).recalled(None);
        assert_eq!(ends(&merged.memory), [1, 2]);
        assert_eq!(merged.recorded(digests(&[1, 2, 3])), 0);
    }

    #[test]
    fn without_the_store_everything_counts_as_not_recorded() {
        let local = Local::default();
        local.add(KEY, waypoint(1), true);
        let recalled = local.get(KEY).unwrap().without_store("store_timeout");
        assert_eq!((recalled.recorded(digests(&[1])), recalled.degraded), (0, Some("store_timeout")));
        assert!(recalled.is_unavailable);
    }
}
