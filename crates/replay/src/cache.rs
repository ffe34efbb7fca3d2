//! A model of the provider's prompt cache.
//!
//! A provider finds the longest prefix of a request that it has seen recently, in whole steps of tokens and
//! above a minimum length. That part is read from the cache; the rest, up to the last whole step, is written
//! to it. A provider with explicit breakpoints does so only up to the last one.

use std::collections::VecDeque;
use tidegate_engine::CacheKind;
use tidegate_tokens::Caching;

/// One message of a request, or everything before the messages. Equal content has equal keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    pub key: u128,
    pub tokens: u64,
}

/// The input tokens of one request, by how they are billed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Billed {
    /// Read from the cache.
    pub read: u64,
    /// Written to the cache.
    pub written: u64,
    /// Neither: the request is too short for the cache, or these tokens follow its last whole step.
    pub plain: u64,
    /// Whether the previous request to this model is not a prefix of this one, because an earlier message was edited.
    pub is_moved: bool,
}

impl Billed {
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.read + self.written + self.plain
    }
}

/// The requests of one conversation that the provider may have cached.
#[derive(Debug)]
pub struct ProviderCache {
    rules: Caching,
    /// Newest last.
    entries: VecDeque<CacheEntry>,
}

#[derive(Debug)]
struct CacheEntry {
    at: u64,
    model: String,
    segments: Vec<Segment>,
    /// How many of them the provider caches.
    cached: usize,
}

/// The maximum number of entries: a conversation has few live branches.
const MAX_ENTRIES: usize = 16;

impl ProviderCache {
    #[must_use]
    pub fn new(rules: Caching) -> ProviderCache {
        ProviderCache { rules, entries: VecDeque::new() }
    }

    /// Bills a request at `now`, in milliseconds, and caches it. Models do not share a cache. `breakpoint` is the number of segments
    /// up to the last breakpoint, 0 if there is none; it matters only where breakpoints are explicit.
    pub fn bill(&mut self, model: &str, segments: Vec<Segment>, breakpoint: usize, now: u64) -> Billed {
        let cached = match self.rules.kind {
            CacheKind::Automatic => segments.len(),
            CacheKind::Explicit => breakpoint.min(segments.len()),
            CacheKind::None => 0,
        };
        let life = u64::try_from(self.rules.ttl.as_millis()).unwrap_or(u64::MAX);
        let last = self.entries.iter().rev().find(|entry| entry.model == model);
        let is_moved = last.is_some_and(|last| !segments.starts_with(&last.segments));
        self.entries.retain(|entry| now.saturating_sub(entry.at) <= life);
        let same_model = self.entries.iter().filter(|entry| entry.model == model);
        let longest =
            same_model.map(|entry| shared_prefix(&entry.segments[..entry.cached], &segments[..cached]));
        let longest = longest.max().unwrap_or(0);
        let cacheable = tokens(&segments[..cached]);
        let total = tokens(&segments);
        // Entries that are prefixes of this request are redundant.
        self.entries.retain(|entry| entry.model != model || !segments[..cached].starts_with(&entry.segments));
        if self.entries.len() >= MAX_ENTRIES {
            self.entries.pop_front();
        }
        self.entries.push_back(CacheEntry { at: now, model: model.to_owned(), segments, cached });
        let read = self.cached(longest);
        let end = self.cached(cacheable).max(read);
        Billed { read, written: end - read, plain: total - end, is_moved }
    }

    /// The number of tokens that the cache holds of a prefix with `tokens` tokens.
    fn cached(&self, tokens: u64) -> u64 {
        let whole = tokens - tokens % self.rules.step.0.max(1);
        if tokens < self.rules.minimum.0 { 0 } else { whole }
    }
}

fn tokens(segments: &[Segment]) -> u64 {
    segments.iter().map(|segment| segment.tokens).sum()
}

/// The number of tokens in the common prefix of two requests. A message that differs at all is assumed to
/// differ from its first token on.
fn shared_prefix(one: &[Segment], other: &[Segment]) -> u64 {
    let same = one.iter().zip(other).take_while(|(one, other)| one == other);
    same.map(|(one, _)| one.tokens).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tidegate_engine::Tokens;

    const RULES: Caching = Caching {
        kind: CacheKind::Automatic,
        ttl: Duration::from_secs(600),
        minimum: Tokens(1_024),
        step: Tokens(128),
    };

    fn request(keys: &[u128]) -> Vec<Segment> {
        keys.iter().map(|&key| Segment { key, tokens: 1_000 }).collect()
    }

    fn billed(read: u64, written: u64, plain: u64, is_moved: bool) -> Billed {
        Billed { read, written, plain, is_moved }
    }

    #[test]
    fn a_longer_request_reads_what_the_last_one_wrote() {
        let mut cache = ProviderCache::new(RULES);
        // Too short for the cache: the next one finds nothing.
        assert_eq!(cache.bill("m", request(&[1]), 0, 0), billed(0, 0, 1_000, false));
        assert_eq!(cache.bill("m", request(&[1, 2]), 0, 1), billed(0, 1_920, 80, false));
        assert_eq!(cache.bill("m", request(&[1, 2, 3]), 0, 2), billed(1_920, 1_024, 56, false));
        // The same again.
        assert_eq!(cache.bill("m", request(&[1, 2, 3]), 0, 3), billed(2_944, 0, 56, false));
    }

    #[test]
    fn an_edit_causes_one_miss_for_everything_after_it() {
        let mut cache = ProviderCache::new(RULES);
        cache.bill("m", request(&[1, 2, 3, 4]), 0, 0);
        assert_eq!(cache.bill("m", request(&[1, 2, 9, 4, 5]), 0, 1), billed(1_920, 3_072, 8, true));
        assert_eq!(cache.bill("m", request(&[1, 2, 9, 4, 5, 6]), 0, 2), billed(4_992, 896, 112, false));
        // An abandoned branch is still cached.
        assert_eq!(cache.bill("m", request(&[1, 2, 3, 4, 7]), 0, 3).read, 3_968);
    }

    #[test]
    fn unused_entries_expire_and_used_ones_are_renewed() {
        let mut cache = ProviderCache::new(RULES);
        let minutes = |minutes: u64| minutes * 60_000;
        cache.bill("m", request(&[1, 2]), 0, 0);
        assert_eq!(cache.bill("m", request(&[1, 2, 3]), 0, minutes(9)).read, 1_920);
        assert_eq!(cache.bill("m", request(&[1, 2, 3]), 0, minutes(18)).read, 2_944);
        assert_eq!(cache.bill("m", request(&[1, 2, 3]), 0, minutes(29)).read, 0);
    }

    #[test]
    fn models_do_not_share_a_cache() {
        let mut cache = ProviderCache::new(RULES);
        cache.bill("m", request(&[1, 2]), 0, 0);
        assert_eq!(cache.bill("n", request(&[1, 2]), 0, 1).read, 0);
        assert_eq!(cache.bill("m", request(&[1, 2]), 0, 2).read, 1_920);
        assert!(!cache.bill("m", request(&[1, 2, 3]), 0, 3).is_moved);
        assert!(
            !cache.bill("n", request(&[1, 2, 4]), 0, 4).is_moved,
            "the other request was to another model"
        );
    }

    #[test]
    fn explicit_breakpoints_end_what_is_cached() {
        let mut cache = ProviderCache::new(Caching { kind: CacheKind::Explicit, ..RULES });
        assert_eq!(cache.bill("m", request(&[1, 2, 3]), 0, 0), billed(0, 0, 3_000, false));
        assert_eq!(cache.bill("m", request(&[1, 2, 3]), 2, 1), billed(0, 1_920, 1_080, false));
        // Reads what the last one wrote, and writes up to its own breakpoint.
        assert_eq!(cache.bill("m", request(&[1, 2, 3, 4]), 4, 2), billed(1_920, 2_048, 32, false));
        assert_eq!(cache.bill("m", request(&[1, 2, 3, 4, 5]), 0, 3), billed(0, 0, 5_000, false));
        assert_eq!(cache.bill("m", request(&[1, 2, 3, 4, 5, 6]), 6, 4).read, 3_968);
    }

    #[test]
    fn nothing_is_cached_without_a_cache() {
        let mut cache = ProviderCache::new(Caching { kind: CacheKind::None, ..RULES });
        cache.bill("m", request(&[1, 2, 3]), 3, 0);
        assert_eq!(cache.bill("m", request(&[1, 2, 3]), 3, 1), billed(0, 0, 3_000, false));
        assert!(cache.bill("m", request(&[1, 9, 3]), 3, 2).is_moved);
    }
}
