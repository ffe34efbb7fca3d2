//! The conversations that this process has in memory, for when the store is unavailable.

use crate::record::StoredFold;
use crate::store::{FOLDS, WAYPOINTS};
use crate::{ConversationKey, Degraded, Recalled};
use quick_cache::Weighter;
use quick_cache::sync::{Cache, EntryAction, EntryResult};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tidegate_engine::{Digest, Memory, Waypoint};

/// A cache of conversations, bounded in bytes. The least used are evicted first.
#[derive(Debug)]
pub(crate) struct LocalCache {
    conversations: Cache<ConversationKey, Arc<CachedConversation>, Size>,
    /// The number of changes to pins so far.
    pin_version: AtomicU64,
}

/// The pin that the store returned, if any.
#[derive(Clone, Debug)]
pub(crate) struct StoredPin {
    pub(crate) text: Option<Arc<str>>,
    /// [`LocalCache::pin_version`] before the store was read.
    pub(crate) version: u64,
}

/// The cached state of one conversation.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CachedConversation {
    memory: Memory,
    /// The ends of waypoints that are not in the store.
    unsaved: Vec<Digest>,
    folds: Vec<StoredFold>,
    /// What the folds cover that are not in the store.
    unsaved_folds: Vec<Digest>,
    pinned: Option<Arc<str>>,
    /// The pin version of a pin set by this process; 0 if the pin came from the store.
    pin_version: u64,
    /// Whether the store was read. Until then, only newer entries are here.
    pub(crate) is_complete: bool,
}

/// The maximum size of the cache: some ten thousand conversations without a summary, or some thousand at their maximum size.
const MAX_BYTES: u64 = 128 << 20;

/// Estimates the memory that a conversation takes.
#[derive(Clone, Debug)]
struct Size;

impl Weighter<ConversationKey, Arc<CachedConversation>> for Size {
    fn weight(&self, _: &ConversationKey, cached: &Arc<CachedConversation>) -> u64 {
        let folds = cached.folds.iter().map(|fold| size_of::<StoredFold>() + fold.state.len());
        let waypoints = size_of_val(cached.memory.waypoints());
        let pinned = cached.pinned.as_ref().map_or(0, |pinned| pinned.len());
        (size_of::<CachedConversation>() + waypoints + folds.sum::<usize>() + pinned) as u64
    }
}

impl Default for LocalCache {
    fn default() -> LocalCache {
        LocalCache {
            conversations: Cache::with_weighter(16_384, MAX_BYTES, Size),
            pin_version: AtomicU64::new(0),
        }
    }
}

impl LocalCache {
    pub(crate) fn get(&self, key: ConversationKey) -> Option<Arc<CachedConversation>> {
        self.conversations.get(&key)
    }

    /// Merges the stored state into the cache. Entries that the store lacks are kept: writing them failed, or the store lost
    /// them in a restart or failover.
    pub(crate) fn merge(
        &self,
        key: ConversationKey,
        mut stored: Vec<Waypoint>,
        folds: Vec<StoredFold>,
        pin: StoredPin,
    ) -> Arc<CachedConversation> {
        self.change(key, |cached| {
            cached.is_complete = true;
            // The store may have been read just before this process changed the pin. An unshared store is not read again, so
            // accepting the old pin would make it permanent.
            if cached.pin_version <= pin.version {
                (cached.pinned, cached.pin_version) = (pin.text, 0);
            }
            cached.merge_folds(folds);
            let is_missing = |known: &&Waypoint| !stored.iter().any(|waypoint| waypoint.end == known.end);
            let missing: Vec<Waypoint> =
                cached.memory.waypoints().iter().filter(is_missing).copied().collect();
            if !missing.is_empty() {
                stored.extend_from_slice(&missing);
                stored.sort_by_key(|waypoint| waypoint.at.0);
                stored.drain(..stored.len().saturating_sub(WAYPOINTS));
            }
            cached.unsaved = missing.iter().map(|waypoint| waypoint.end).collect();
            cached.memory = Memory::of(stored);
        })
    }

    /// Adds a waypoint. `is_saved` says whether it is in the store.
    pub(crate) fn add(&self, key: ConversationKey, waypoint: Waypoint, is_saved: bool) {
        self.change(key, |cached| {
            cached.unsaved.retain(|end| *end != waypoint.end);
            if !is_saved {
                cached.unsaved.push(waypoint.end);
            }
            cached.memory.add(waypoint);
            let memory = &cached.memory;
            cached.unsaved.retain(|end| memory.waypoints().iter().any(|waypoint| waypoint.end == *end));
        });
    }

    /// Adds a fold. An existing fold of the same prefix stays, as it does in the store.
    pub(crate) fn add_fold(&self, key: ConversationKey, fold: StoredFold, is_saved: bool) {
        self.change(key, |cached| {
            cached.unsaved_folds.retain(|covers| *covers != fold.covers);
            if !is_saved {
                cached.unsaved_folds.push(fold.covers);
            }
            if !cached.folds.iter().any(|known| known.covers == fold.covers) {
                cached.folds.push(fold);
            }
            cached.drop_oldest_folds();
        });
    }

    /// Sets the pin, which is already in the store.
    pub(crate) fn pin(&self, key: ConversationKey, text: Option<Arc<str>>) {
        let version = self.pin_version.fetch_add(1, Ordering::AcqRel) + 1;
        self.change(key, |cached| (cached.pinned, cached.pin_version) = (text, version));
    }

    /// The number of changes to pins so far. Read it before reading the store; see [`StoredPin`].
    pub(crate) fn pin_version(&self) -> u64 {
        self.pin_version.load(Ordering::Acquire)
    }

    /// The folds that are not in the store.
    pub(crate) fn unsaved_folds(&self, key: ConversationKey) -> Vec<StoredFold> {
        let Some(cached) = self.get(key) else { return Vec::new() };
        cached.folds.iter().filter(|fold| cached.unsaved_folds.contains(&fold.covers)).cloned().collect()
    }

    pub(crate) fn remove(&self, key: ConversationKey) {
        self.conversations.remove(&key);
    }

    /// Changes an entry atomically, so that concurrent changes are all kept.
    fn change(
        &self,
        key: ConversationKey,
        change: impl FnOnce(&mut CachedConversation),
    ) -> Arc<CachedConversation> {
        let mut change = Some(change);
        let mut changed = |cached: &mut Arc<CachedConversation>| {
            if let Some(change) = change.take() {
                change(Arc::make_mut(cached));
            }
            Arc::clone(cached)
        };
        match self.conversations.entry(&key, None, |_, cached| EntryAction::Retain(changed(cached))) {
            EntryResult::Retained(cached) => cached,
            EntryResult::Vacant(entry) => {
                let cached = changed(&mut Arc::default());
                // Fails only if the conversation is removed concurrently, which might as well have happened right after.
                let _ = entry.insert(Arc::clone(&cached));
                cached
            }
            // We neither remove or replace entries here nor set a timeout.
            EntryResult::Removed(..) | EntryResult::Replaced(..) | EntryResult::Timeout => {
                changed(&mut Arc::default())
            }
        }
    }
}

impl CachedConversation {
    pub(crate) fn recalled(&self, degraded: Option<Degraded>) -> Recalled {
        let CachedConversation { memory, unsaved, folds, pinned, .. } = self.clone();
        Recalled { memory, folds, pinned, unsaved, degraded, is_unavailable: false }
    }

    /// The state to use while the store is unavailable. All waypoints count as unsaved: the store may have lost them.
    pub(crate) fn without_store(&self, degraded: Degraded) -> Recalled {
        let unsaved = self.memory.waypoints().iter().map(|waypoint| waypoint.end).collect();
        Recalled { unsaved, is_unavailable: true, ..self.recalled(Some(degraded)) }
    }

    /// A stored fold replaces ours for the same prefix, because all other processes use it.
    fn merge_folds(&mut self, mut stored: Vec<StoredFold>) {
        let is_missing = |known: &&StoredFold| !stored.iter().any(|fold| fold.covers == known.covers);
        let missing: Vec<StoredFold> = self.folds.iter().filter(is_missing).cloned().collect();
        self.unsaved_folds = missing.iter().map(|fold| fold.covers).collect();
        if !missing.is_empty() {
            stored.extend(missing);
            stored.sort_by_key(|fold| fold.at.0);
        }
        self.folds = stored;
        self.drop_oldest_folds();
    }

    fn drop_oldest_folds(&mut self) {
        self.folds.drain(..self.folds.len().saturating_sub(FOLDS));
        // Folds that the store dropped as too old must not be stored again.
        let folds = &self.folds;
        self.unsaved_folds.retain(|covers| folds.iter().any(|fold| fold.covers == *covers));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_engine::Timestamp;

    const KEY: ConversationKey = ConversationKey([7; 16]);
    const NO_PIN: StoredPin = StoredPin { text: None, version: 0 };

    #[test]
    fn a_stale_read_does_not_undo_a_pin() {
        let local = LocalCache::default();
        let merged = |text: Option<&str>, version| {
            let pin = StoredPin { text: text.map(Arc::from), version };
            local.merge(KEY, vec![], vec![], pin).recalled(None).pinned
        };
        let before = local.pin_version();
        assert_eq!(merged(Some("old"), before).as_deref(), Some("old"));
        local.pin(KEY, Some("new".into()));
        assert_eq!(merged(Some("old"), before).as_deref(), Some("new"), "read before, merged after");
        assert_eq!(
            merged(Some("newer"), local.pin_version()).as_deref(),
            Some("newer"),
            "by another process"
        );
        let before = local.pin_version();
        local.pin(KEY, None);
        assert_eq!(merged(Some("newer"), before), None);
        assert_eq!(merged(None, local.pin_version()), None);
    }

    fn waypoint(number: u8) -> Waypoint {
        Waypoint { end: Digest([number; 32]), ..Waypoint::default() }
    }

    fn ends(memory: &Memory) -> Vec<u8> {
        memory.waypoints().iter().map(|waypoint| waypoint.end.0[0]).collect()
    }

    fn digests(numbers: &[u8]) -> impl DoubleEndedIterator<Item = Digest> + ExactSizeIterator {
        numbers.iter().map(|number| Digest([*number; 32])).collect::<Vec<_>>().into_iter()
    }

    #[test]
    fn concurrent_additions_are_all_kept() {
        let local = LocalCache::default();
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
    fn unsaved_entries_are_kept_until_the_store_has_them() {
        let local = LocalCache::default();
        local.add(KEY, waypoint(1), true);
        local.add(KEY, waypoint(2), false);
        let merged = local.merge(KEY, vec![waypoint(1), waypoint(9)], vec![], NO_PIN).recalled(None);
        assert_eq!(ends(&merged.memory), [1, 9, 2]);
        // The second waypoint is only in the cache, so its messages have to be recorded again.
        assert_eq!(merged.recorded(digests(&[1, 2, 3])), 1);
        local.add(KEY, waypoint(2), true);
        let merged = local.merge(KEY, vec![waypoint(1), waypoint(2)], vec![], NO_PIN).recalled(None);
        assert_eq!(merged.recorded(digests(&[1, 2, 3])), 2);
        assert_eq!(merged.recorded(digests(&[5, 6])), 0);
        // Everything is unsaved again after the store lost it, including entries of other processes.
        let merged = local.merge(KEY, vec![], vec![], NO_PIN).recalled(None);
        assert_eq!(ends(&merged.memory), [1, 2, 9]);
        assert_eq!(merged.recorded(digests(&[1, 2, 3])), 0);
    }

    fn fold(number: u8, state: &'static str) -> StoredFold {
        let at = Timestamp(u64::from(number));
        StoredFold { covers: Digest([number; 32]), covered: 1, at, state: state.into() }
    }

    #[test]
    fn stored_folds_replace_ours_and_the_oldest_are_dropped() {
        let local = LocalCache::default();
        let newest = u8::try_from(FOLDS).unwrap();
        for number in 0..newest {
            local.add_fold(KEY, fold(number, "ours"), false);
        }
        // The store has another fold for one prefix, and one more prefix.
        let stored = vec![fold(3, "theirs"), fold(newest, "theirs")];
        let merged = local.merge(KEY, vec![], stored, NO_PIN);
        let expected: Vec<StoredFold> = (1..=newest)
            .map(|number| fold(number, if number == 3 || number == newest { "theirs" } else { "ours" }))
            .collect();
        assert_eq!(merged.folds, expected);
        assert_eq!(local.unsaved_folds(KEY).len(), FOLDS - 2);
        local.add_fold(KEY, fold(1, "again"), true);
        assert_eq!(local.get(KEY).unwrap().folds, expected);
        assert_eq!(local.unsaved_folds(KEY).len(), FOLDS - 3);
        assert!(!local.unsaved_folds(KEY).contains(&fold(0, "ours")));
    }

    #[test]
    fn the_cache_is_bounded_in_bytes() {
        let local = LocalCache::default();
        for number in 0..1_000u16 {
            let mut key = KEY;
            key.0[..2].copy_from_slice(&number.to_be_bytes());
            let state = vec![0; 400_000].into();
            local.add_fold(key, StoredFold { state, ..fold(1, "") }, true);
        }
        assert!(local.conversations.weight() <= MAX_BYTES);
        assert!((10..1_000).contains(&local.conversations.len()), "{}", local.conversations.len());
    }

    #[test]
    fn without_the_store_every_waypoint_counts_as_unsaved() {
        let local = LocalCache::default();
        local.add(KEY, waypoint(1), true);
        let recalled = local.get(KEY).unwrap().without_store(Degraded::Timeout);
        assert_eq!((recalled.recorded(digests(&[1])), recalled.degraded), (0, Some(Degraded::Timeout)));
        assert!(recalled.is_unavailable);
    }
}
