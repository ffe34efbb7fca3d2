//! What this process remembers of conversations itself.

use crate::record::StoredFold;
use crate::store::{FOLDS, WAYPOINTS};
use crate::{ConversationKey, Recalled};
use quick_cache::Weighter;
use quick_cache::sync::{Cache, EntryAction, EntryResult};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tidegate_engine::{Digest, Memory, Waypoint};

/// The memories of this process, the least used forgotten first.
#[derive(Debug)]
pub(crate) struct Local {
    memories: Cache<ConversationKey, Arc<Mine>, Size>,
    /// How often something was pinned or taken away.
    pins: AtomicU64,
}

/// Something that is pinned, or its absence, with the number of pins that there were when the store was asked.
#[derive(Clone, Debug)]
pub(crate) struct AskedPin {
    pub(crate) text: Option<Arc<str>>,
    pub(crate) since: u64,
}

/// What is known here of one conversation.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Mine {
    memory: Memory,
    /// The ends of waypoints that the store does not have, because writing them failed.
    unsaved: Vec<Digest>,
    folds: Vec<StoredFold>,
    /// What the folds cover that the store does not have.
    unsaved_folds: Vec<Digest>,
    pinned: Option<Arc<str>>,
    /// The number of the pin that this is; zero if the store said it.
    pin: u64,
    /// Whether the store was ever asked. Before that, this is only what came since.
    pub(crate) is_whole: bool,
}

/// So many bytes: some ten thousand conversations without a summary, some thousand with all that there can be.
const CAPACITY: u64 = 128 << 20;

/// How large a conversation is, roughly.
#[derive(Clone, Debug)]
struct Size;

impl Weighter<ConversationKey, Arc<Mine>> for Size {
    fn weight(&self, _: &ConversationKey, mine: &Arc<Mine>) -> u64 {
        let folds = mine.folds.iter().map(|fold| size_of::<StoredFold>() + fold.state.len());
        let waypoints = size_of_val(mine.memory.waypoints());
        let pinned = mine.pinned.as_ref().map_or(0, |pinned| pinned.len());
        (size_of::<Mine>() + waypoints + folds.sum::<usize>() + pinned) as u64
    }
}

impl Default for Local {
    fn default() -> Local {
        Local { memories: Cache::with_weighter(16_384, CAPACITY, Size), pins: AtomicU64::new(0) }
    }
}

impl Local {
    pub(crate) fn get(&self, key: ConversationKey) -> Option<Arc<Mine>> {
        self.memories.get(&key)
    }

    /// Takes over what the store has, and keeps what it does not have: because it could not be written, or because the store
    /// has lost it, as one that was restarted or failed over may.
    pub(crate) fn merge(
        &self,
        key: ConversationKey,
        mut stored: Vec<Waypoint>,
        folds: Vec<StoredFold>,
        pinned: AskedPin,
    ) -> Arc<Mine> {
        self.change(key, |mine| {
            mine.is_whole = true;
            // The store may have been asked just before something was pinned, and a store of this process alone is not asked
            // again: what it said then would stand for good.
            if mine.pin <= pinned.since {
                (mine.pinned, mine.pin) = (pinned.text, 0);
            }
            mine.merge_folds(folds);
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

    /// Keeps a fold. One that is here already stays, as it does in the store.
    pub(crate) fn add_fold(&self, key: ConversationKey, fold: StoredFold, is_saved: bool) {
        self.change(key, |mine| {
            mine.unsaved_folds.retain(|covers| *covers != fold.covers);
            if !is_saved {
                mine.unsaved_folds.push(fold.covers);
            }
            if !mine.folds.iter().any(|known| known.covers == fold.covers) {
                mine.folds.push(fold);
            }
            mine.forget_oldest_folds();
        });
    }

    /// Keeps what is pinned in the store by now.
    pub(crate) fn pin(&self, key: ConversationKey, text: Option<Arc<str>>) {
        let pin = self.pins.fetch_add(1, Ordering::AcqRel) + 1;
        self.change(key, |mine| (mine.pinned, mine.pin) = (text, pin));
    }

    /// How often something was pinned so far, to be asked before the store is.
    pub(crate) fn pins(&self) -> u64 {
        self.pins.load(Ordering::Acquire)
    }

    /// The folds that the store does not have, as far as is known.
    pub(crate) fn unsaved_folds(&self, key: ConversationKey) -> Vec<StoredFold> {
        let Some(mine) = self.get(key) else { return Vec::new() };
        mine.folds.iter().filter(|fold| mine.unsaved_folds.contains(&fold.covers)).cloned().collect()
    }

    pub(crate) fn forget(&self, key: ConversationKey) {
        self.memories.remove(&key);
    }

    /// Two requests at once both add theirs; neither overwrites the other's.
    fn change(&self, key: ConversationKey, change: impl FnOnce(&mut Mine)) -> Arc<Mine> {
        let mut change = Some(change);
        let mut changed = |mine: &mut Arc<Mine>| {
            if let Some(change) = change.take() {
                change(Arc::make_mut(mine));
            }
            Arc::clone(mine)
        };
        match self.memories.entry(&key, None, |_, mine| EntryAction::Retain(changed(mine))) {
            EntryResult::Retained(mine) => mine,
            EntryResult::Vacant(place) => {
                let mine = changed(&mut Arc::default());
                // It fails only if the conversation is forgotten at this moment, which is as good as right after it.
                let _ = place.insert(Arc::clone(&mine));
                mine
            }
            // Asked for by actions that are not used, and by a deadline that is not given.
            EntryResult::Removed(..) | EntryResult::Replaced(..) | EntryResult::Timeout => {
                changed(&mut Arc::default())
            }
        }
    }
}

impl Mine {
    pub(crate) fn recalled(&self, degraded: Option<&'static str>) -> Recalled {
        let Mine { memory, unsaved, folds, pinned, .. } = self.clone();
        Recalled { memory, folds, pinned, unsaved, degraded, is_unavailable: false }
    }

    /// What is known without the store: it may have less than this process believes.
    pub(crate) fn without_store(&self, reason: &'static str) -> Recalled {
        let unsaved = self.memory.waypoints().iter().map(|waypoint| waypoint.end).collect();
        Recalled { unsaved, is_unavailable: true, ..self.recalled(Some(reason)) }
    }

    /// What the store has under the same prefix is what everybody else uses, so it takes the place of ours.
    fn merge_folds(&mut self, mut stored: Vec<StoredFold>) {
        let is_missing = |one: &StoredFold| !stored.iter().any(|fold| fold.covers == one.covers);
        let missing: Vec<StoredFold> = self.folds.iter().filter(|one| is_missing(one)).cloned().collect();
        self.unsaved_folds = missing.iter().map(|fold| fold.covers).collect();
        if !missing.is_empty() {
            stored.extend(missing);
            stored.sort_by_key(|fold| fold.at.0);
        }
        self.folds = stored;
        self.forget_oldest_folds();
    }

    fn forget_oldest_folds(&mut self) {
        self.folds.drain(..self.folds.len().saturating_sub(FOLDS));
        // What the store has forgotten as too old is not to be brought back.
        let folds = &self.folds;
        self.unsaved_folds.retain(|covers| folds.iter().any(|fold| fold.covers == *covers));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_engine::Timestamp;

    const KEY: ConversationKey = ConversationKey([7; 16]);
    const NOTHING: AskedPin = AskedPin { text: None, since: 0 };

    #[test]
    fn a_store_that_was_asked_before_does_not_take_a_pin_away() {
        let local = Local::default();
        let said = |text: Option<&str>, since| {
            let pinned = AskedPin { text: text.map(Arc::from), since };
            local.merge(KEY, vec![], vec![], pinned).recalled(None).pinned
        };
        let before = local.pins();
        assert_eq!(said(Some("old"), before).as_deref(), Some("old"));
        local.pin(KEY, Some("new".into()));
        assert_eq!(said(Some("old"), before).as_deref(), Some("new"), "asked before, answered after");
        assert_eq!(said(Some("newer"), local.pins()).as_deref(), Some("newer"), "by another process");
        let before = local.pins();
        local.pin(KEY, None);
        assert_eq!(said(Some("newer"), before), None);
        assert_eq!(said(None, local.pins()), None);
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
        let merged = local.merge(KEY, vec![waypoint(1), waypoint(9)], vec![], NOTHING).recalled(None);
        assert_eq!(ends(&merged.memory), [1, 9, 2]);
        // The second message was only ever remembered here, so it has to be recorded again.
        assert_eq!(merged.recorded(digests(&[1, 2, 3])), 1);
        local.add(KEY, waypoint(2), true);
        let merged = local.merge(KEY, vec![waypoint(1), waypoint(2)], vec![], NOTHING).recalled(None);
        assert_eq!(merged.recorded(digests(&[1, 2, 3])), 2);
        assert_eq!(merged.recorded(digests(&[5, 6])), 0);
        // A store that has lost everything is told everything again, also what another process had told it.
        let merged = local.merge(KEY, vec![], vec![], NOTHING).recalled(None);
        assert_eq!(ends(&merged.memory), [1, 2, 9]);
        assert_eq!(merged.recorded(digests(&[1, 2, 3])), 0);
    }

    fn fold(number: u8, state: &'static str) -> StoredFold {
        let at = Timestamp(u64::from(number));
        StoredFold { covers: Digest([number; 32]), covered: 1, at, state: state.into() }
    }

    #[test]
    fn the_folds_of_the_store_come_first_and_what_it_forgot_as_too_old_stays_forgotten() {
        let local = Local::default();
        let newest = u8::try_from(FOLDS).unwrap();
        for number in 0..newest {
            local.add_fold(KEY, fold(number, "mine"), false);
        }
        // The store has another for one of them, and one more than we know.
        let stored = vec![fold(3, "theirs"), fold(newest, "theirs")];
        let merged = local.merge(KEY, vec![], stored, NOTHING);
        let expected: Vec<StoredFold> = (1..=newest)
            .map(|number| fold(number, if number == 3 || number == newest { "theirs" } else { "mine" }))
            .collect();
        assert_eq!(merged.folds, expected);
        assert_eq!(local.unsaved_folds(KEY).len(), FOLDS - 2);
        local.add_fold(KEY, fold(1, "again"), true);
        assert_eq!(local.get(KEY).unwrap().folds, expected);
        assert_eq!(local.unsaved_folds(KEY).len(), FOLDS - 3);
        assert!(!local.unsaved_folds(KEY).contains(&fold(0, "mine")));
    }

    #[test]
    fn long_summaries_take_the_place_of_many_conversations() {
        let local = Local::default();
        for number in 0..1_000u16 {
            let mut key = KEY;
            key.0[..2].copy_from_slice(&number.to_be_bytes());
            let state = vec![0; 400_000].into();
            local.add_fold(key, StoredFold { state, ..fold(1, "") }, true);
        }
        assert!(local.memories.weight() <= CAPACITY);
        assert!((10..1_000).contains(&local.memories.len()), "{}", local.memories.len());
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
