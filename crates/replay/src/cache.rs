//! What a provider's prompt cache would have held, request by request.
//!
//! A provider finds the longest beginning of a request that it has seen a moment ago, in whole steps of tokens and not
//! below a minimum. That part is read from the cache; the rest, up to the last whole step, is written to it.

use std::collections::VecDeque;
use tidegate_tokens::Caching;

/// One message of a request, or what stands before the messages: equal ones have equal keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    pub key: u128,
    pub tokens: u64,
}

/// The input of one request by how it is billed, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Billed {
    /// Found in the cache.
    pub read: u64,
    /// Put into it.
    pub written: u64,
    /// Neither: the request is too short for the cache, or this is what is left behind its last whole step.
    pub plain: u64,
    /// Whether the beginning of the request before it is no longer there: something earlier was edited.
    pub is_moved: bool,
}

impl Billed {
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.read + self.written + self.plain
    }
}

/// The requests of one conversation that a provider may still have.
#[derive(Debug)]
pub struct ProviderCache {
    rules: Caching,
    /// The newest last.
    seen: VecDeque<Seen>,
}

#[derive(Debug)]
struct Seen {
    at: u64,
    model: String,
    segments: Vec<Segment>,
}

/// More branches of one conversation than this are not alive at once.
const MOST: usize = 16;

impl ProviderCache {
    #[must_use]
    pub fn new(rules: Caching) -> ProviderCache {
        ProviderCache { rules, seen: VecDeque::new() }
    }

    /// Bills a request at `now`, in milliseconds, and remembers it. Models do not share what they remember.
    pub fn bill(&mut self, model: &str, segments: Vec<Segment>, now: u64) -> Billed {
        let life = u64::try_from(self.rules.ttl.as_millis()).unwrap_or(u64::MAX);
        let is_moved = self.seen.back().is_some_and(|last| !segments.starts_with(&last.segments));
        self.seen.retain(|seen| now.saturating_sub(seen.at) <= life);
        let same = self.seen.iter().filter(|seen| seen.model == model);
        let longest = same.map(|seen| shared(&seen.segments, &segments)).max().unwrap_or(0);
        let total: u64 = segments.iter().map(|segment| segment.tokens).sum();
        // What is a part of this request needs no place of its own.
        self.seen.retain(|seen| seen.model != model || !segments.starts_with(&seen.segments));
        if self.seen.len() >= MOST {
            self.seen.pop_front();
        }
        self.seen.push_back(Seen { at: now, model: model.to_owned(), segments });
        let read = self.cached(longest);
        let end = self.cached(total).max(read);
        Billed { read, written: end - read, plain: total - end, is_moved }
    }

    /// How many of the first `tokens` a cache holds.
    fn cached(&self, tokens: u64) -> u64 {
        let whole = tokens - tokens % self.rules.step.0.max(1);
        if tokens < self.rules.minimum.0 { 0 } else { whole }
    }
}

/// The tokens that two requests begin with alike. A message that differs at all is taken to differ from its first token on.
fn shared(one: &[Segment], other: &[Segment]) -> u64 {
    let same = one.iter().zip(other).take_while(|(one, other)| one == other);
    same.map(|(one, _)| one.tokens).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tidegate_engine::Tokens;

    const RULES: Caching =
        Caching { ttl: Duration::from_secs(600), minimum: Tokens(1_024), step: Tokens(128) };

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
        assert_eq!(cache.bill("m", request(&[1]), 0), billed(0, 0, 1_000, false));
        assert_eq!(cache.bill("m", request(&[1, 2]), 1), billed(0, 1_920, 80, false));
        assert_eq!(cache.bill("m", request(&[1, 2, 3]), 2), billed(1_920, 1_024, 56, false));
        // The same again.
        assert_eq!(cache.bill("m", request(&[1, 2, 3]), 3), billed(2_944, 0, 56, false));
    }

    #[test]
    fn an_edit_makes_everything_behind_it_a_miss_once() {
        let mut cache = ProviderCache::new(RULES);
        cache.bill("m", request(&[1, 2, 3, 4]), 0);
        assert_eq!(cache.bill("m", request(&[1, 2, 9, 4, 5]), 1), billed(1_920, 3_072, 8, true));
        assert_eq!(cache.bill("m", request(&[1, 2, 9, 4, 5, 6]), 2), billed(4_992, 896, 112, false));
        // A branch that was left is still there.
        assert_eq!(cache.bill("m", request(&[1, 2, 3, 4, 7]), 3).read, 3_968);
    }

    #[test]
    fn what_nobody_asks_for_is_forgotten_and_what_is_asked_for_lives_on() {
        let mut cache = ProviderCache::new(RULES);
        let minutes = |minutes: u64| minutes * 60_000;
        cache.bill("m", request(&[1, 2]), 0);
        assert_eq!(cache.bill("m", request(&[1, 2, 3]), minutes(9)).read, 1_920);
        assert_eq!(cache.bill("m", request(&[1, 2, 3]), minutes(18)).read, 2_944);
        assert_eq!(cache.bill("m", request(&[1, 2, 3]), minutes(29)).read, 0);
    }

    #[test]
    fn models_do_not_share() {
        let mut cache = ProviderCache::new(RULES);
        cache.bill("m", request(&[1, 2]), 0);
        assert_eq!(cache.bill("n", request(&[1, 2]), 1).read, 0);
        assert_eq!(cache.bill("m", request(&[1, 2]), 2).read, 1_920);
    }
}
