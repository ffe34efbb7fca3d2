//! The conversations that this process has in memory, for when the store is unavailable.

use crate::record::StoredFold;
use crate::store::{FOLDS, Generation, WAYPOINTS};
use crate::{ConversationKey, Degraded, Recalled};
use quick_cache::Weighter;
use quick_cache::sync::{Cache, EntryAction, EntryResult};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tidegate_engine::{Digest, Memory, Waypoint};
use tokio::time::Instant;

/// A cache of conversations, bounded in bytes. The least used are evicted first.
#[derive(Debug)]
pub(crate) struct LocalCache {
    conversations: Cache<ConversationKey, Arc<CachedConversation>, Size>,
    /// How long a conversation lives after its last write.
    ttl: Duration,
    /// The number of pins and deletions by this process so far.
    version: AtomicU64,
    /// The version of the last deletion.
    deleted: AtomicU64,
}

/// What the store returned.
#[derive(Clone, Debug, Default)]
pub(crate) struct StoredState {
    pub(crate) generation: Generation,
    pub(crate) waypoints: Vec<Waypoint>,
    pub(crate) folds: Vec<StoredFold>,
    pub(crate) pinned: Option<Arc<str>>,
    /// [`LocalCache::version`] before the store was read.
    pub(crate) version: u64,
}

impl StoredState {
    pub(crate) fn is_empty(&self) -> bool {
        self.waypoints.is_empty() && self.folds.is_empty() && self.pinned.is_none()
    }
}

/// The cached state of one conversation.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CachedConversation {
    generation: Generation,
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
    /// When this process last read or wrote it.
    touched: Option<Instant>,
}

/// Estimates the memory that a conversation takes.
#[derive(Clone, Debug)]
struct Size;

impl Weighter<ConversationKey, Arc<CachedConversation>> for Size {
    fn weight(&self, _: &ConversationKey, cached: &Arc<CachedConversation>) -> u64 {
        let folds = cached.folds.iter().map(|fold| size_of::<StoredFold>() + fold.state.len());
        let waypoints = cached.memory.waypoints().iter().map(waypoint_size).sum::<usize>();
        let pinned = cached.pinned.as_ref().map_or(0, |pinned| pinned.len());
        (size_of::<CachedConversation>() + waypoints + folds.sum::<usize>() + pinned) as u64
    }
}

fn waypoint_size(waypoint: &Waypoint) -> usize {
    let passages = waypoint.excerpts.iter().map(|excerpt| size_of_val(&*excerpt.passages)).sum::<usize>();
    size_of::<Waypoint>() + size_of_val(&*waypoint.excerpts) + passages
}

impl LocalCache {
    pub(crate) fn new(ttl: Duration, bytes: u64) -> LocalCache {
        LocalCache {
            conversations: Cache::with_weighter(16_384, bytes, Size),
            ttl,
            version: AtomicU64::new(0),
            deleted: AtomicU64::new(0),
        }
    }

    /// About how many bytes the conversations take.
    pub(crate) fn bytes(&self) -> u64 {
        self.conversations.weight()
    }

    /// Returns a conversation, unless it has expired.
    pub(crate) fn get(&self, key: ConversationKey) -> Option<Arc<CachedConversation>> {
        let cached = self.conversations.get(&key)?;
        if cached.touched.is_some_and(|touched| touched.elapsed() >= self.ttl) {
            self.conversations.remove(&key);
            return None;
        }
        Some(cached)
    }

    /// Replaces the cached state by what the store returned. Of the entries that the store lacks, only those are kept that this
    /// process has failed to write: anything else has expired or was deleted.
    pub(crate) fn merge(&self, key: ConversationKey, stored: StoredState) -> Arc<CachedConversation> {
        // The store may have been read just before this process deleted the conversation.
        if self.deleted.load(Ordering::Acquire) > stored.version {
            let mut cached = CachedConversation { generation: stored.generation, ..Default::default() };
            cached.merge(stored);
            return Arc::new(cached);
        }
        self.change(key, |cached| {
            if cached.generation != stored.generation {
                *cached = CachedConversation { generation: stored.generation, ..Default::default() };
            }
            cached.merge(stored);
        })
    }

    /// Adds a waypoint. `is_saved` says whether it is in the store.
    pub(crate) fn add(
        &self,
        key: ConversationKey,
        generation: Generation,
        waypoint: Waypoint,
        is_saved: bool,
    ) {
        self.change_in(key, generation, |cached| {
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
    pub(crate) fn add_fold(
        &self,
        key: ConversationKey,
        generation: Generation,
        fold: StoredFold,
        is_saved: bool,
    ) {
        self.change_in(key, generation, |cached| {
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
        let version = self.version.fetch_add(1, Ordering::AcqRel) + 1;
        self.change(key, |cached| (cached.pinned, cached.pin_version) = (text, version));
    }

    /// The number of changes so far that a reader of the store may not have seen. Read it before reading the store; see
    /// [`StoredState`].
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Whether this process knows of entries of a generation that were in the store.
    pub(crate) fn has_saved(&self, key: ConversationKey, generation: Generation) -> bool {
        let is_saved = |cached: &Arc<CachedConversation>| {
            cached.generation == generation && cached.memory.waypoints().len() > cached.unsaved.len()
        };
        self.get(key).as_ref().is_some_and(is_saved)
    }

    /// The folds of a generation that are not in the store.
    pub(crate) fn unsaved_folds(&self, key: ConversationKey, generation: Generation) -> Vec<StoredFold> {
        let Some(cached) = self.get(key).filter(|cached| cached.generation == generation) else {
            return Vec::new();
        };
        cached.folds.iter().filter(|fold| cached.unsaved_folds.contains(&fold.covers)).cloned().collect()
    }

    /// Forgets a conversation that was deleted. What was read from the store before is not cached any more.
    pub(crate) fn remove(&self, key: ConversationKey) {
        let version = self.version.fetch_add(1, Ordering::AcqRel) + 1;
        self.deleted.fetch_max(version, Ordering::AcqRel);
        self.conversations.remove(&key);
    }

    /// Changes an entry of this generation. An entry of another one is left alone.
    fn change_in(
        &self,
        key: ConversationKey,
        generation: Generation,
        change: impl FnOnce(&mut CachedConversation),
    ) {
        self.change(key, |cached| {
            if *cached == CachedConversation::default() {
                cached.generation = generation;
            }
            if cached.generation == generation {
                change(cached);
            }
        });
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
                let cached = Arc::make_mut(cached);
                change(cached);
                cached.touched = Some(Instant::now());
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
    pub(crate) fn pinned(&self) -> Option<&str> {
        self.pinned.as_deref()
    }

    pub(crate) fn waypoints(&self) -> &[Waypoint] {
        self.memory.waypoints()
    }

    pub(crate) fn recalled(&self, degraded: Option<Degraded>) -> Recalled {
        let CachedConversation { generation, memory, unsaved, folds, pinned, .. } = self.clone();
        Recalled { generation, memory, folds, pinned, unsaved, degraded, is_unavailable: false }
    }

    /// The state to use while the store is unavailable. All waypoints count as unsaved: the store may have lost them.
    pub(crate) fn without_store(&self, degraded: Degraded) -> Recalled {
        let unsaved = self.memory.waypoints().iter().map(|waypoint| waypoint.end).collect();
        Recalled { unsaved, is_unavailable: true, ..self.recalled(Some(degraded)) }
    }

    fn merge(&mut self, stored: StoredState) {
        self.is_complete = true;
        // The store may have been read just before this process changed the pin. An unshared store is not read again, so
        // accepting the old pin would make it permanent.
        if self.pin_version <= stored.version {
            (self.pinned, self.pin_version) = (stored.pinned, 0);
        }
        self.merge_folds(stored.folds);
        let mut waypoints = stored.waypoints;
        let is_missing = |known: &&Waypoint| {
            self.unsaved.contains(&known.end) && !waypoints.iter().any(|waypoint| waypoint.end == known.end)
        };
        let missing: Vec<Waypoint> = self.memory.waypoints().iter().filter(is_missing).cloned().collect();
        // They are newer than what the store has: nothing was written there since.
        waypoints.extend_from_slice(&missing);
        waypoints.drain(..waypoints.len().saturating_sub(WAYPOINTS));
        self.unsaved = missing.iter().map(|waypoint| waypoint.end).collect();
        self.memory = Memory::of(waypoints);
    }

    /// A stored fold replaces ours for the same prefix, because all other processes use it.
    fn merge_folds(&mut self, mut stored: Vec<StoredFold>) {
        let is_missing = |known: &&StoredFold| {
            self.unsaved_folds.contains(&known.covers)
                && !stored.iter().any(|fold| fold.covers == known.covers)
        };
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
    const FIRST: Generation = Generation(0);

    fn cache() -> LocalCache {
        LocalCache::new(Duration::from_secs(3600), 128 << 20)
    }

    fn stored(waypoints: Vec<Waypoint>, folds: Vec<StoredFold>) -> StoredState {
        StoredState { waypoints, folds, ..StoredState::default() }
    }

    #[test]
    fn a_stale_read_does_not_undo_a_pin() {
        let local = cache();
        let merged = |text: Option<&str>, version| {
            let state = StoredState { pinned: text.map(Arc::from), version, ..StoredState::default() };
            local.merge(KEY, state).recalled(None).pinned
        };
        let before = local.version();
        assert_eq!(merged(Some("old"), before).as_deref(), Some("old"));
        local.pin(KEY, Some("new".into()));
        assert_eq!(merged(Some("old"), before).as_deref(), Some("new"), "read before, merged after");
        assert_eq!(merged(Some("newer"), local.version()).as_deref(), Some("newer"), "by another process");
        let before = local.version();
        local.pin(KEY, None);
        assert_eq!(merged(Some("newer"), before), None);
        assert_eq!(merged(None, local.version()), None);
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
        let local = cache();
        std::thread::scope(|scope| {
            for number in 0..8 {
                let local = &local;
                scope.spawn(move || local.add(KEY, FIRST, waypoint(number), true));
            }
        });
        let mut all = ends(&local.get(KEY).unwrap().memory);
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(local.get(ConversationKey([8; 16])), None);
    }

    #[test]
    fn unsaved_entries_are_kept_until_the_store_has_them() {
        let local = cache();
        local.add(KEY, FIRST, waypoint(1), true);
        local.add(KEY, FIRST, waypoint(2), false);
        let merged = local.merge(KEY, stored(vec![waypoint(1), waypoint(9)], vec![])).recalled(None);
        assert_eq!(ends(&merged.memory), [1, 9, 2]);
        // The second waypoint is only in the cache, so its messages have to be recorded again.
        assert_eq!(merged.recorded(digests(&[1, 2, 3])), 1);
        local.add(KEY, FIRST, waypoint(2), true);
        let merged = local.merge(KEY, stored(vec![waypoint(1), waypoint(2)], vec![])).recalled(None);
        assert_eq!(merged.recorded(digests(&[1, 2, 3])), 2);
        assert_eq!(merged.recorded(digests(&[5, 6])), 0);
        // What was saved and is not in the store any more has expired.
        local.add(KEY, FIRST, waypoint(3), false);
        let merged = local.merge(KEY, stored(vec![], vec![])).recalled(None);
        assert_eq!(ends(&merged.memory), [3]);
        assert_eq!(merged.recorded(digests(&[1, 2, 3])), 0);
        // Of a deleted conversation nothing is left.
        let deleted = StoredState { generation: Generation(1), ..StoredState::default() };
        assert_eq!(ends(&local.merge(KEY, deleted).recalled(None).memory), Vec::<u8>::new());
        local.add(KEY, FIRST, waypoint(4), false);
        assert_eq!(ends(&local.get(KEY).unwrap().memory), Vec::<u8>::new());
    }

    fn fold(number: u8, state: &'static str) -> StoredFold {
        let at = Timestamp(u64::from(number));
        StoredFold { covers: Digest([number; 32]), covered: 1, at, state: state.into() }
    }

    #[test]
    fn stored_folds_replace_ours_and_the_oldest_are_dropped() {
        let local = cache();
        let newest = u8::try_from(FOLDS).unwrap();
        for number in 0..newest {
            local.add_fold(KEY, FIRST, fold(number, "ours"), false);
        }
        // The store has another fold for one prefix, and one more prefix.
        let theirs = vec![fold(3, "theirs"), fold(newest, "theirs")];
        let merged = local.merge(KEY, stored(vec![], theirs));
        let expected: Vec<StoredFold> = (1..=newest)
            .map(|number| fold(number, if number == 3 || number == newest { "theirs" } else { "ours" }))
            .collect();
        assert_eq!(merged.folds, expected);
        assert_eq!(local.unsaved_folds(KEY, FIRST).len(), FOLDS - 2);
        local.add_fold(KEY, FIRST, fold(1, "again"), true);
        assert_eq!(local.get(KEY).unwrap().folds, expected);
        assert_eq!(local.unsaved_folds(KEY, FIRST).len(), FOLDS - 3);
        assert!(!local.unsaved_folds(KEY, FIRST).contains(&fold(0, "ours")));
    }

    #[test]
    fn the_cache_is_bounded_in_bytes() {
        let local = cache();
        for number in 0..1_000u16 {
            let mut key = KEY;
            key.0[..2].copy_from_slice(&number.to_be_bytes());
            let state = vec![0; 400_000].into();
            local.add_fold(key, FIRST, StoredFold { state, ..fold(1, "") }, true);
        }
        assert!(local.conversations.weight() <= 128 << 20);
        assert!((10..1_000).contains(&local.conversations.len()), "{}", local.conversations.len());
    }

    #[test]
    fn without_the_store_every_waypoint_counts_as_unsaved() {
        let local = cache();
        local.add(KEY, FIRST, waypoint(1), true);
        let recalled = local.get(KEY).unwrap().without_store(Degraded::Timeout);
        assert_eq!((recalled.recorded(digests(&[1])), recalled.degraded), (0, Some(Degraded::Timeout)));
        assert!(recalled.is_unavailable);
    }
}
