//! What requests add up to, by route and model, for whoever looks at this process itself.
//!
//! The instruments beside this are for Prometheus and collectors: their labels are fixed and each figure has only those that an alert needs. A page that
//! can be filtered needs every figure by route and by model, at hand and without a query.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

/// What the requests of one route and model have added up to: since the start of the process, or between two moments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub requests: u64,
    /// As clients sent it, and as it went out.
    pub tokens_before: u64,
    pub tokens_after: u64,
    /// Messages, by what became of them.
    pub masked: u64,
    pub folded: u64,
    pub dropped: u64,
    /// What upstreams reported.
    pub prompt_tokens: u64,
    pub cached_tokens: u64,
    pub completion_tokens: u64,
    /// In billionths of a USD, of the answers whose prices are known, and how many those are and are not.
    pub billed: u64,
    pub unedited: u64,
    pub priced: u64,
    pub unpriced: u64,
    /// Summaries that were made, and what all attempts cost.
    pub folds: u64,
    pub summarizers: u64,
    /// Requests that went without something, by reason, and those that were refused, by code.
    pub degraded: BTreeMap<&'static str, u64>,
    pub refusals: BTreeMap<&'static str, u64>,
    /// How many requests waited for us up to each edge, and beyond the last one.
    pub overhead: Vec<u64>,
}

/// A tally and whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tallied {
    pub route: String,
    pub model: String,
    pub tally: Tally,
}

/// The value for requests that are no chat completion.
pub(crate) const NO_MODEL: &str = "none";

/// From ten microseconds on, each half as much again: the last one is beyond ten seconds.
const EDGES: i32 = 36;
const FIRST_EDGE: f64 = 10.0;
const GROWTH: f64 = 1.5;

const NANO: f64 = 1e9;

impl Tally {
    /// What has come since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Tally) -> Tally {
        self.combined(earlier, u64::saturating_sub)
    }

    /// Both together.
    #[must_use]
    pub fn plus(&self, other: &Tally) -> Tally {
        self.combined(other, u64::saturating_add)
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Tally::default()
    }

    /// The microseconds that a share of the requests waited at most, estimated within a bucket; nothing without requests.
    #[must_use]
    pub fn overhead_us(&self, share: f64) -> Option<f64> {
        let all: u64 = self.overhead.iter().sum();
        if all == 0 {
            return None;
        }
        let wanted = all as f64 * share;
        let mut below = 0.0;
        for (place, count) in self.overhead.iter().map(|count| *count as f64).enumerate() {
            if count > 0.0 && below + count >= wanted {
                let part = ((wanted - below) / count).clamp(0.0, 1.0);
                let exponent = i32::try_from(place).unwrap_or(EDGES) - 1;
                return Some(FIRST_EDGE * GROWTH.powf(f64::from(exponent) + part));
            }
            below += count;
        }
        None
    }

    /// In USD: billed, and what it would have been unedited; nothing where there were answers and none had a known price.
    #[must_use]
    pub fn costs(&self) -> Option<(f64, f64)> {
        let is_known = self.priced > 0 || self.unpriced == 0;
        is_known.then(|| (self.billed as f64 / NANO, self.unedited as f64 / NANO))
    }

    /// In USD.
    #[must_use]
    pub fn summarizer_cost(&self) -> f64 {
        self.summarizers as f64 / NANO
    }

    fn combined(&self, other: &Tally, with: fn(u64, u64) -> u64) -> Tally {
        let maps = |ours: &BTreeMap<&'static str, u64>, theirs: &BTreeMap<&'static str, u64>| {
            let names = ours.keys().chain(theirs.keys()).copied();
            let of = |map: &BTreeMap<_, u64>, name| map.get(name).copied().unwrap_or(0);
            names
                .map(|name| (name, with(of(ours, name), of(theirs, name))))
                .filter(|(_, sum)| *sum > 0)
                .collect()
        };
        let place = |list: &[u64], place| list.get(place).copied().unwrap_or(0);
        let overhead: Vec<u64> = (0..self.overhead.len().max(other.overhead.len()))
            .map(|edge| with(place(&self.overhead, edge), place(&other.overhead, edge)))
            .collect();
        let has_any = overhead.iter().any(|count| *count > 0);
        Tally {
            requests: with(self.requests, other.requests),
            tokens_before: with(self.tokens_before, other.tokens_before),
            tokens_after: with(self.tokens_after, other.tokens_after),
            masked: with(self.masked, other.masked),
            folded: with(self.folded, other.folded),
            dropped: with(self.dropped, other.dropped),
            prompt_tokens: with(self.prompt_tokens, other.prompt_tokens),
            cached_tokens: with(self.cached_tokens, other.cached_tokens),
            completion_tokens: with(self.completion_tokens, other.completion_tokens),
            billed: with(self.billed, other.billed),
            unedited: with(self.unedited, other.unedited),
            priced: with(self.priced, other.priced),
            unpriced: with(self.unpriced, other.unpriced),
            folds: with(self.folds, other.folds),
            summarizers: with(self.summarizers, other.summarizers),
            degraded: maps(&self.degraded, &other.degraded),
            refusals: maps(&self.refusals, &other.refusals),
            // Nothing takes no room: most of what is kept over time is nothing.
            overhead: if has_any { overhead } else { Vec::new() },
        }
    }
}

/// The same while it grows, in parts: threads that count at once would else take one line of memory from each other at every request.
#[derive(Debug, Default)]
pub(crate) struct Counts([Shard; SHARDS]);

/// As many as there are workers on most machines. More threads than that share.
const SHARDS: usize = 4;

/// What some of the threads have counted. Each field is added to by itself, so that a snapshot may have a request's tokens and not yet its
/// price. It has lines of memory to itself.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Shard {
    pub(crate) requests: Count,
    pub(crate) tokens_before: Count,
    pub(crate) tokens_after: Count,
    pub(crate) masked: Count,
    pub(crate) folded: Count,
    pub(crate) dropped: Count,
    pub(crate) prompt_tokens: Count,
    pub(crate) cached_tokens: Count,
    pub(crate) completion_tokens: Count,
    billed: Count,
    unedited: Count,
    priced: Count,
    pub(crate) unpriced: Count,
    pub(crate) folds: Count,
    summarizers: Count,
    /// Seldom touched.
    troubles: Mutex<Troubles>,
    overhead: Edges,
}

#[derive(Debug)]
struct Edges([Count; EDGES as usize + 1]);

impl Default for Edges {
    fn default() -> Edges {
        Edges(std::array::from_fn(|_| Count::default()))
    }
}

#[derive(Debug, Default)]
struct Troubles {
    degraded: BTreeMap<&'static str, u64>,
    refusals: BTreeMap<&'static str, u64>,
}

#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, more: u64) {
        // Most requests have no messages dropped and no summary.
        if more > 0 {
            self.0.fetch_add(more, Ordering::Relaxed);
        }
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Counts {
    /// The part of whoever asks.
    pub(crate) fn mine(&self) -> &Shard {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            static MINE: usize = NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS;
        }
        // A thread that is ending has no place of its own any more.
        &self.0[MINE.try_with(|mine| *mine).unwrap_or(0)]
    }

    pub(crate) fn tally(&self) -> Tally {
        self.0.iter().fold(Tally::default(), |sum, shard| sum.plus(&shard.tally()))
    }
}

impl Shard {
    pub(crate) fn cost(&self, billed: f64, unedited: f64) {
        self.priced.add(1);
        self.billed.add(nano(billed));
        self.unedited.add(nano(unedited));
    }

    pub(crate) fn summarizer_cost(&self, usd: f64) {
        self.summarizers.add(nano(usd));
    }

    pub(crate) fn troubled(&self, refusal: Option<&'static str>, degraded: Option<&'static str>) {
        if refusal.is_none() && degraded.is_none() {
            return;
        }
        let mut troubles = self.troubles.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(code) = refusal {
            *troubles.refusals.entry(code).or_default() += 1;
        }
        if let Some(reason) = degraded {
            *troubles.degraded.entry(reason).or_default() += 1;
        }
    }

    pub(crate) fn waited(&self, overhead: Duration) {
        let micros = overhead.as_nanos() as f64 / 1e3;
        let edge = (micros / FIRST_EDGE).max(1.0).log(GROWTH).ceil().clamp(0.0, f64::from(EDGES));
        self.overhead.0[edge as usize].add(1);
    }

    fn tally(&self) -> Tally {
        let troubles = self.troubles.lock().unwrap_or_else(PoisonError::into_inner);
        let (degraded, refusals) = (troubles.degraded.clone(), troubles.refusals.clone());
        drop(troubles);
        Tally {
            requests: self.requests.get(),
            tokens_before: self.tokens_before.get(),
            tokens_after: self.tokens_after.get(),
            masked: self.masked.get(),
            folded: self.folded.get(),
            dropped: self.dropped.get(),
            prompt_tokens: self.prompt_tokens.get(),
            cached_tokens: self.cached_tokens.get(),
            completion_tokens: self.completion_tokens.get(),
            billed: self.billed.get(),
            unedited: self.unedited.get(),
            priced: self.priced.get(),
            unpriced: self.unpriced.get(),
            folds: self.folds.get(),
            summarizers: self.summarizers.get(),
            degraded,
            refusals,
            overhead: self.overhead.0.iter().map(Count::get).collect(),
        }
    }
}

fn nano(usd: f64) -> u64 {
    // A negative or absurd amount is nobody's bill.
    (usd * NANO).round().clamp(0.0, 1e18) as u64
}

/// All counts of the process.
#[derive(Debug, Default)]
pub(crate) struct Tallies(RwLock<BTreeMap<(String, String), Arc<Counts>>>);

impl Tallies {
    pub(crate) fn of(&self, route: &str, model: &str) -> Arc<Counts> {
        let key = (route.to_owned(), model.to_owned());
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(counts) = known.get(&key) {
            return counts.clone();
        }
        drop(known);
        self.0.write().unwrap_or_else(PoisonError::into_inner).entry(key).or_default().clone()
    }

    pub(crate) fn all(&self) -> Vec<Tallied> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let one = |((route, model), counts): (&(String, String), &Arc<Counts>)| Tallied {
            route: route.clone(),
            model: model.clone(),
            tally: counts.tally(),
        };
        known.iter().map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waited(micros: &[u64]) -> Tally {
        let counts = Counts::default();
        micros.iter().for_each(|one| counts.mine().waited(Duration::from_micros(*one)));
        counts.tally()
    }

    #[test]
    fn a_share_of_what_was_waited_is_found_within_a_bucket() {
        assert_eq!(Tally::default().overhead_us(0.5), None);
        for micros in [1, 10, 11, 180, 5_000, 900_000, 100_000_000] {
            let told = waited(&[micros]).overhead_us(0.99).unwrap();
            let (low, high) = (micros as f64 / GROWTH, micros as f64 * GROWTH);
            assert!((low..=high).contains(&told) || micros == 1 || micros > 20_000_000, "{micros}: {told}");
        }
        let mixed =
            waited(&[[100; 90], [100; 90]].concat().into_iter().chain([9_000; 20]).collect::<Vec<_>>());
        let (p50, p99) = (mixed.overhead_us(0.5).unwrap(), mixed.overhead_us(0.99).unwrap());
        assert!((66.0..150.0).contains(&p50) && (6_000.0..13_500.0).contains(&p99), "{p50} {p99}");
    }

    #[test]
    fn threads_count_apart_and_are_told_together() {
        let counts = Counts::default();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..1_000).for_each(|_| counts.mine().requests.add(1)));
            }
        });
        assert_eq!(counts.tally().requests, 8_000);
        assert!(counts.0.iter().filter(|shard| shard.requests.get() > 0).count() > 1);
    }

    #[test]
    fn what_came_between_two_moments_is_their_difference() {
        let tallies = Tallies::default();
        let counts = tallies.of("r", "m");
        counts.mine().requests.add(2);
        counts.mine().cost(0.5, 0.75);
        counts.mine().troubled(Some("a"), Some("b"));
        counts.mine().waited(Duration::from_micros(50));
        let earlier = tallies.all()[0].tally.clone();
        assert!(earlier.since(&earlier).is_empty(), "{earlier:?}");
        counts.mine().requests.add(3);
        counts.mine().troubled(None, Some("c"));
        tallies.of("r", "m").mine().cost(0.25, 0.25);
        let between = tallies.all()[0].tally.since(&earlier);
        assert_eq!((between.requests, between.costs()), (3, Some((0.25, 0.25))));
        assert_eq!(Tally::default().costs(), Some((0.0, 0.0)), "nothing costs nothing");
        assert_eq!(Tally { unpriced: 1, ..Tally::default() }.costs(), None);
        assert_eq!(
            (between.degraded.get("c"), between.degraded.get("b"), between.refusals.len()),
            (Some(&1), None, 0)
        );
        let whole = earlier.plus(&between);
        assert_eq!(whole, tallies.all()[0].tally);
        assert_eq!(tallies.all().len(), 1);
    }
}
