use crate::turns::dialogue;
use crate::{CacheKey, Digest, Excerpt, Fold, Gap, Horizon, Message, Skipped, Timestamp};
use std::collections::HashMap;
use std::sync::Arc;

/// What was decided for one request, so that the next one can repeat it.
///
/// A waypoint is found by the messages that a request has in common with the one that recorded it, from the first on. Usually
/// these are all of them; but clients also replace their last messages, or edit earlier ones. A waypoint is never changed; a later
/// request records another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Waypoint {
    /// The digest at the last message of the request.
    pub end: Digest,
    /// Digests at messages before the last.
    pub trail: Trail,
    /// The model, and what the prompt begins with.
    pub cache: CacheKey,
    /// The digest at the last message before the mask frontier; `None` while nothing is masked.
    pub frontier: Option<Digest>,
    /// What leaving maskable observations in the prompt has cost since the frontier last moved.
    pub tally: f64,
    /// What moving the frontier has cost and masking has not saved yet.
    pub debt: f64,
    /// The length of the history, and the length at which the client shortens it.
    pub horizon: Horizon,
    /// When the request was made.
    pub at: Timestamp,
    /// What the summary in use covered; `None` if there was no summary.
    pub fold: Option<Digest>,
    /// What not folding has cost since that summary was made.
    pub fold_tally: f64,
    /// The run of messages that the window strategy dropped; `None` if it dropped nothing.
    pub gap: Option<Gap>,
    /// The excerpts in the request, in the order of their messages.
    pub excerpts: Arc<[Excerpt]>,
    /// The digest at the last message before the trim frontier; `None` while nothing is trimmed.
    pub trim: Option<Digest>,
    /// The messages before that frontier that were too expensive to trim.
    pub skipped: Skipped,
    /// What excerpts have cost and not saved yet.
    pub trim_debt: f64,
    /// Whether the conversation is left alone from here on.
    pub is_left_alone: bool,
}

/// Short digests at messages before the end of a request: at each of the last ones, at fewer and fewer before, and at the first.
///
/// They only say how much of a request the provider has read before, which is a matter of cost. What is masked or folded is found by
/// whole digests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trail(pub [u64; TRAIL.len() + 1]);

/// How many messages before the last each digest of a trail is.
const TRAIL: [usize; 20] = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 19, 24, 31, 40, 52, 68, 88, 115, 150];

impl Trail {
    /// The trail of a request.
    #[must_use]
    pub fn of(messages: &[Message]) -> Trail {
        let mut trail = Trail::default();
        if let (Some((_, first)), Some(slot)) = (dialogue(messages).next(), trail.0.last_mut()) {
            *slot = first.digest.short();
        }
        let mut dialogue = dialogue(messages).rev();
        let mut passed = 0;
        for (slot, distance) in trail.0.iter_mut().zip(TRAIL) {
            let Some((_, message)) = dialogue.nth(distance - passed) else { break };
            passed = distance + 1;
            *slot = message.digest.short();
        }
        trail
    }
}

/// A waypoint, and how much of a request it has in common with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recalled<'a> {
    pub waypoint: &'a Waypoint,
    /// The index of the last message that both have.
    pub last: usize,
    /// The number of leading messages that the provider has read after the same head.
    pub seen: usize,
    /// When the provider last read these messages, edited the same way.
    pub at: Timestamp,
    /// Whether the request has all messages of the waypoint's and no others.
    pub is_retry: bool,
}

/// The decisions of a conversation and all its branches: waypoints, the newest last, and summaries.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    /// Shared, because every request of a conversation takes a copy of its memory.
    waypoints: Arc<Vec<Waypoint>>,
    folds: Vec<Fold>,
}

/// The maximum number of waypoints in memory. A branch whose waypoint was evicted is decided anew.
const MAX_WAYPOINTS: usize = 64;

/// In milliseconds. Shorter than any provider's cache life, so that skipping a waypoint never makes a cache look cold.
const RECENT: u64 = 60_000;

impl Memory {
    /// A memory of stored waypoints, the newest last.
    #[must_use]
    pub fn of(waypoints: Vec<Waypoint>) -> Memory {
        Memory { waypoints: Arc::new(waypoints), folds: Vec::new() }
    }

    /// The waypoints, the newest last.
    #[must_use]
    pub fn waypoints(&self) -> &[Waypoint] {
        &self.waypoints
    }

    /// The summaries of the conversation and its branches.
    #[must_use]
    pub fn folds(&self) -> &[Fold] {
        &self.folds
    }

    /// Adds a summary, unless there is one of the same prefix. The first one is immutable: replacing it would change what is
    /// forwarded.
    pub fn add_fold(&mut self, fold: Fold) {
        if !self.folds.iter().any(|known| known.covers == fold.covers) {
            self.folds.push(fold);
        }
    }

    /// Adds a waypoint, and evicts the oldest if there are too many.
    pub fn add(&mut self, waypoint: Waypoint) {
        // A retry records the same waypoint again. It must not evict another branch.
        let waypoints = Arc::make_mut(&mut self.waypoints);
        waypoints.retain(|known| known.end != waypoint.end || !known.cache.is_of(waypoint.cache.model));
        if waypoints.len() >= MAX_WAYPOINTS {
            waypoints.remove(0);
        }
        waypoints.push(waypoint);
    }

    /// Both, with the other's waypoints as the newest.
    #[must_use]
    pub fn with(mut self, other: &Memory) -> Memory {
        other.waypoints.iter().for_each(|waypoint| self.add(waypoint.clone()));
        other.folds.iter().for_each(|fold| self.add_fold(fold.clone()));
        self
    }

    /// Whether the same decision was recorded a moment ago, so that a retry has nothing to add.
    #[must_use]
    pub fn has_recent(&self, waypoint: &Waypoint) -> bool {
        let is_same = |known: &Waypoint| {
            known.end == waypoint.end
                && known.cache.is_of(waypoint.cache.model)
                && (known.frontier, known.trim, known.fold)
                    == (waypoint.frontier, waypoint.trim, waypoint.fold)
                && known.excerpts == waypoint.excerpts
                && known.is_left_alone == waypoint.is_left_alone
                && waypoint.at.0.saturating_sub(known.at.0) <= RECENT
        };
        self.waypoints.iter().any(is_same)
    }

    /// Returns the waypoint that has the most messages in common with these. Of several, one that ended there goes first, because
    /// this request continues it; then the newest.
    ///
    /// Each model has a cache and an economy of its own: a request to a model that has read the conversation before continues from what was
    /// decided for that model. One to another model begins where the last one is.
    #[must_use]
    pub fn recall(&self, messages: &[Message], cache: CacheKey) -> Option<Recalled<'_>> {
        let own = self.longest(messages, &|waypoint| waypoint.cache.is_of(cache.model));
        let recalled = own.or_else(|| self.longest(messages, &|_| true))?;
        if recalled.waypoint.cache.serves(cache) {
            return Some(recalled);
        }
        // Decisions survive another model or head. Of the provider's cache, only what follows the same head and was edited the same way
        // does.
        let edits = recalled.waypoint.edits();
        let read =
            self.longest(messages, &|waypoint| waypoint.cache.serves(cache) && waypoint.edits() == edits);
        let seen = read.map_or(0, |read| read.seen);
        Some(Recalled { seen, at: read.map_or(recalled.at, |read| read.at), ..recalled })
    }

    /// Whether an earlier request of this branch was left alone, and those after it are.
    #[must_use]
    pub fn leaves_alone(&self, messages: &[Message], cache: CacheKey) -> bool {
        self.waypoints.iter().any(|waypoint| waypoint.is_left_alone)
            && self.recall(messages, cache).is_some_and(|recalled| recalled.waypoint.is_left_alone)
    }

    /// What was last decided for each of the other models that have read the conversation, the oldest first. There are few: the models that
    /// a client goes back and forth between.
    #[must_use]
    pub fn of_other_models(&self, cache: CacheKey) -> Vec<Waypoint> {
        const MOST: usize = 3;
        let mut others: Vec<Waypoint> = Vec::new();
        for waypoint in self.waypoints.iter().rev().filter(|waypoint| !waypoint.cache.is_of(cache.model)) {
            if others.len() < MOST && !others.iter().any(|known| known.cache.is_of(waypoint.cache.model)) {
                others.push(waypoint.clone());
            }
        }
        others.reverse();
        others
    }

    /// The newest waypoint of this model with this head.
    pub(crate) fn newest(&self, cache: CacheKey) -> Option<&Waypoint> {
        self.waypoints.iter().rev().find(|waypoint| waypoint.cache.serves(cache))
    }

    /// Returns the longest match among the waypoints that satisfy `fits`.
    fn longest(&self, messages: &[Message], fits: &dyn Fn(&Waypoint) -> bool) -> Option<Recalled<'_>> {
        let mut index = None;
        for (steps, (last, message)) in dialogue(messages).rev().enumerate() {
            let short = message.digest.short();
            let found = if steps < SCANNED {
                let passing = || {
                    self.waypoints.iter().rev().filter(|waypoint| waypoint.passes(short) && fits(waypoint))
                };
                passing().find(|waypoint| waypoint.end == message.digest).or_else(|| passing().next())
            } else {
                let index = index.get_or_insert_with(|| self.index(fits));
                index.get(&short).map(|&at| &self.waypoints[at])
            };
            if let Some(waypoint) = found {
                // Instructions are not part of the digest, so trailing ones do not make it a new request.
                let is_retry = waypoint.end == message.digest
                    && messages[last + 1..].iter().all(|message| message.role.is_instruction());
                let at = self.last_read(waypoint, short);
                return Some(Recalled { waypoint, last, seen: last + 1, at, is_retry });
            }
        }
        None
    }

    /// The newest waypoint that passes each message, of those that satisfy `fits`.
    fn index(&self, fits: &dyn Fn(&Waypoint) -> bool) -> HashMap<u64, usize> {
        let passed =
            |(at, waypoint): (usize, &Waypoint)| waypoint.trail.0.into_iter().map(move |short| (short, at));
        let fitting = self.waypoints.iter().enumerate().filter(|(_, waypoint)| fits(waypoint));
        let ended = fitting.clone().map(|(at, waypoint)| (waypoint.end.short(), at));
        // Later ones replace earlier ones.
        fitting.flat_map(passed).chain(ended).collect()
    }

    /// When a request last passed this message with the same edits as this waypoint's.
    fn last_read(&self, waypoint: &Waypoint, short: u64) -> Timestamp {
        let is_same = |other: &&Waypoint| {
            other.cache == waypoint.cache && other.edits() == waypoint.edits() && other.passes(short)
        };
        self.waypoints.iter().filter(is_same).map(|other| other.at).max().unwrap_or(waypoint.at)
    }
}

impl Waypoint {
    /// What was done to the messages of the request.
    fn edits(&self) -> (Option<Digest>, Option<Digest>, Option<Gap>, Option<Digest>, &Skipped) {
        (self.frontier, self.fold, self.gap, self.trim, &self.skipped)
    }

    /// Whether it says the same as the waypoint of a later request, as far as matters for a request that has little in common with
    /// either: the same decisions, of a moment before, with at most this many messages less.
    #[must_use]
    pub fn stands_for(&self, later: &Waypoint, messages: u32) -> bool {
        let grown = later.horizon.length.saturating_sub(self.horizon.length);
        self.cache == later.cache
            && self.edits() == later.edits()
            && self.excerpts == later.excerpts
            && later.at.0.saturating_sub(self.at.0) <= RECENT
            && grown <= messages
    }

    /// Whether the request that recorded it had the message with this digest.
    fn passes(&self, short: u64) -> bool {
        self.end.short() == short || self.trail.0.contains(&short)
    }
}

/// How many messages are looked up one by one, which is faster than an index for the few that clients usually add.
const SCANNED: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, Role, Tokens};

    /// One message per number; equal numbers at the same place after equal messages have equal digests.
    fn messages(numbers: &[u64]) -> Vec<Message> {
        let mut chain = 0u64;
        let message = |&number: &u64| {
            chain = (chain ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17) | 1;
            let mut digest = Digest::default();
            digest.0[..8].copy_from_slice(&chain.to_le_bytes());
            digest.0[8..16].copy_from_slice(&number.to_le_bytes());
            let tokens = Tokens(10);
            Message {
                role: Role::User,
                kind: Kind::Speech,
                digest,
                tokens,
                size: tokens,
                masked: None,
                trimmed: None,
                joined: false,
            }
        };
        numbers.iter().map(message).collect()
    }

    fn waypoint(numbers: &[u64], at: u64) -> Waypoint {
        let messages = messages(numbers);
        let end = messages.last().map(|message| message.digest).unwrap_or_default();
        Waypoint { end, trail: Trail::of(&messages), at: Timestamp(at), ..Waypoint::default() }
    }

    /// The time of the recalled waypoint, the number of common messages, and whether it is a retry.
    fn recall(memory: &Memory, numbers: &[u64]) -> Option<(u64, usize, bool)> {
        let recalled = memory.recall(&messages(numbers), CacheKey::default())?;
        Some((recalled.waypoint.at.0, recalled.last + 1, recalled.is_retry))
    }

    #[test]
    fn a_request_is_recalled_by_what_it_has_in_common() {
        let memory = Memory::of(vec![waypoint(&[1, 2, 3], 1), waypoint(&[1, 2, 3, 4, 5, 99], 2)]);
        assert_eq!(recall(&memory, &[1, 2, 3, 4, 5, 99]), Some((2, 6, true)));
        assert_eq!(recall(&memory, &[1, 2, 3, 4, 5, 99, 6]), Some((2, 6, false)));
        assert_eq!(recall(&memory, &[1, 2, 3, 4, 5, 6, 7, 98]), Some((2, 5, false)), "the tail is new");
        assert_eq!(recall(&memory, &[1, 2, 3, 4, 5]), Some((2, 5, false)), "shorter is no retry");
        assert_eq!(recall(&memory, &[1, 2, 3]), Some((1, 3, true)), "a retry");
        assert_eq!(recall(&memory, &[1, 2, 3, 9]), Some((1, 3, false)), "it continues the first");
        assert_eq!(
            memory.recall(&messages(&[1, 2, 3, 9]), CacheKey::default()).unwrap().at,
            Timestamp(2),
            "the second read it, too"
        );
        assert_eq!(recall(&memory, &[1, 9, 3, 4, 5, 99]), Some((2, 1, false)), "an edit in the middle");
        assert_eq!(recall(&memory, &[9, 2, 3, 4, 5, 99]), None);
    }

    #[test]
    fn a_long_way_back_less_of_it_is_known() {
        let old: Vec<u64> = (1..=300).collect();
        let memory = Memory::of(vec![waypoint(&old, 1)]);
        for common in [299, 292, 290, 270, 200, 150] {
            let mut edited = old[..common].to_vec();
            edited.extend(1000..1100);
            let (_, known, _) = recall(&memory, &edited).unwrap();
            let distance = old.len() - common;
            assert!(known <= common && common - known <= distance / 2, "{common}: {known}");
        }
        let short = [&old[..100], &[1000]].concat();
        assert_eq!(recall(&memory, &short), Some((1, 1, false)), "the first message is always known");
        assert_eq!(recall(&memory, &[&[1000], &old[1..]].concat()), None);
    }

    #[test]
    fn the_head_of_the_prompt_decides_what_the_provider_has_read() {
        let with_head = |numbers: &[u64], at, head| Waypoint {
            cache: CacheKey { model: 1, head },
            ..waypoint(numbers, at)
        };
        let memory = Memory::of(vec![with_head(&[1, 2, 3], 1, 7), with_head(&[1, 2, 3, 4, 5], 2, 8)]);
        let request = messages(&[1, 2, 3, 4, 5, 6]);
        let seen = |head| {
            memory
                .recall(&request, CacheKey { model: 1, head })
                .map(|found| (found.waypoint.at.0, found.last, found.seen, found.at.0))
        };
        assert_eq!(seen(8), Some((2, 4, 5, 2)));
        assert_eq!(seen(7), Some((2, 4, 3, 1)), "the first request had this head");
        assert_eq!(seen(9), Some((2, 4, 0, 2)), "decisions survive another head, the cache does not");
    }
    #[test]
    fn each_model_continues_from_what_was_decided_for_it() {
        let of = |numbers: &[u64], at, model| {
            let cache = CacheKey { model, head: 7 };
            Waypoint { cache, tally: at as f64, ..waypoint(numbers, at) }
        };
        let mut memory = Memory::of(vec![of(&[1], 1, 0), of(&[1, 2, 3], 2, 8), of(&[1, 2, 3, 4, 5], 3, 9)]);
        let request = messages(&[1, 2, 3, 4, 5, 6]);
        let recall = |memory: &Memory, model| {
            let found = memory.recall(&request, CacheKey { model, head: 7 }).unwrap();
            (found.waypoint.at.0, found.last, found.seen)
        };
        assert_eq!(recall(&memory, 8), (2, 2, 3), "the other model has read more, and decided otherwise");
        assert_eq!(recall(&memory, 9), (3, 4, 5));
        assert_eq!(recall(&memory, 10), (1, 0, 1), "stored without a model, so it may be any");
        memory = Memory::of(memory.waypoints()[1..].to_vec());
        assert_eq!(recall(&memory, 10), (3, 4, 0), "a new model begins where the conversation is, uncached");
        // The same messages to two models are two decisions.
        let (one, other) = (of(&[1, 2], 4, 8), of(&[1, 2], 4, 9));
        memory.add(one.clone());
        assert!(memory.has_recent(&one) && !memory.has_recent(&other));
        memory.add(other.clone());
        assert!(memory.has_recent(&one) && memory.has_recent(&other));
        memory.add(one.clone());
        assert_eq!(memory.waypoints().len(), 4);
    }
}
