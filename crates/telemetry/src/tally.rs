use crate::buckets::{quantile_us, unless_empty};
use crate::shard::usd;
use crate::stored_tally;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A snapshot of the counts of one route and model, or the difference between two snapshots.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tally {
    pub requests: u64,
    /// Requests by outcome, and answers of upstreams by the class of their status.
    #[serde(deserialize_with = "stored_tally::names")]
    pub outcomes: BTreeMap<&'static str, u64>,
    #[serde(deserialize_with = "stored_tally::names")]
    pub statuses: BTreeMap<&'static str, u64>,
    pub rate_limited: u64,
    /// Tokens as clients sent them, and as they were forwarded.
    pub tokens_before: u64,
    pub tokens_after: u64,
    /// Messages that were masked, trimmed, folded into a summary, or dropped.
    pub masked: u64,
    pub trimmed: u64,
    pub folded: u64,
    pub dropped: u64,
    /// Messages that were one of these for the first time: the others count a message in every request.
    pub newly_left_out: u64,
    /// Tokens as upstreams reported them.
    pub prompt_tokens: u64,
    pub cached_tokens: u64,
    pub completion_tokens: u64,
    /// In billionths of a USD. Only requests whose cost is known count: `priced` of them, beside `unpriced` others.
    pub billed: u64,
    pub unedited: u64,
    pub priced: u64,
    pub unpriced: u64,
    /// Requests whose plan was only observed, their tokens as sent and as planned, and how many would have been refused.
    pub observed: u64,
    pub observed_before: u64,
    pub observed_after: u64,
    pub observed_refusals: u64,
    /// What they were billed and what they would have been as planned, in billionths of a USD.
    pub observed_billed: u64,
    pub observed_planned: u64,
    /// Summaries made.
    pub folds: u64,
    /// The cost of summarizers in billionths of a USD, including failed attempts.
    pub summarizers: u64,
    /// Degraded requests by reason, and refused ones by code.
    #[serde(deserialize_with = "stored_tally::names")]
    pub degraded: BTreeMap<&'static str, u64>,
    #[serde(deserialize_with = "stored_tally::names")]
    pub refusals: BTreeMap<&'static str, u64>,
    /// The number of requests in each bucket of overhead; empty if there are none.
    pub overhead: Vec<u64>,
    /// The same for the time that upstreams took to begin their answers.
    pub latency: Vec<u64>,
}

/// The tally of one route and model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelTally {
    pub route: String,
    /// `none` for requests that are not chat completions.
    pub model: String,
    pub tally: Tally,
}

impl Tally {
    /// The difference to an earlier snapshot.
    #[must_use]
    pub fn since(&self, earlier: &Tally) -> Tally {
        self.combined(earlier, u64::saturating_sub)
    }

    #[must_use]
    pub fn plus(&self, other: &Tally) -> Tally {
        self.combined(other, u64::saturating_add)
    }

    /// The `number`th of equal parts, whose sum is this.
    #[must_use]
    pub fn part(&self, number: u64, parts: u64) -> Tally {
        let up_to = |count: u64, end: u64| u128::from(count) * u128::from(end) / u128::from(parts.max(1));
        let part =
            |count, _| (up_to(count, number + 1) - up_to(count, number)).try_into().unwrap_or(u64::MAX);
        self.combined(&Tally::default(), part)
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Tally::default()
    }

    /// A quantile of the overhead in microseconds, interpolated within a bucket. Returns `None` if there were no requests.
    #[must_use]
    pub fn overhead_us(&self, quantile: f64) -> Option<f64> {
        quantile_us(&self.overhead, quantile)
    }

    /// A quantile of the time that upstreams took to begin their answers, in microseconds.
    #[must_use]
    pub fn latency_us(&self, quantile: f64) -> Option<f64> {
        quantile_us(&self.latency, quantile)
    }

    /// Billed and unedited costs in USD. Returns `None` if there were answers and the price of none is known.
    #[must_use]
    pub fn costs(&self) -> Option<(f64, f64)> {
        let is_known = self.priced > 0 || self.unpriced == 0;
        is_known.then(|| (usd(self.billed), usd(self.unedited)))
    }

    /// What observed requests were billed, and what they would have been as planned, in USD.
    #[must_use]
    pub fn observed_costs(&self) -> (f64, f64) {
        (usd(self.observed_billed), usd(self.observed_planned))
    }

    /// In USD.
    #[must_use]
    pub fn summarizer_cost(&self) -> f64 {
        usd(self.summarizers)
    }

    fn combined(&self, other: &Tally, with: impl Fn(u64, u64) -> u64) -> Tally {
        let maps = |ours: &BTreeMap<&'static str, u64>, theirs: &BTreeMap<&'static str, u64>| {
            let names = ours.keys().chain(theirs.keys()).copied();
            let of = |map: &BTreeMap<_, u64>, name| map.get(name).copied().unwrap_or(0);
            names
                .map(|name| (name, with(of(ours, name), of(theirs, name))))
                .filter(|(_, sum)| *sum > 0)
                .collect()
        };
        let at = |buckets: &[u64], bucket| buckets.get(bucket).copied().unwrap_or(0);
        let buckets = |ours: &[u64], theirs: &[u64]| {
            let buckets = 0..ours.len().max(theirs.len());
            unless_empty(buckets.map(|bucket| with(at(ours, bucket), at(theirs, bucket))).collect())
        };
        Tally {
            requests: with(self.requests, other.requests),
            outcomes: maps(&self.outcomes, &other.outcomes),
            statuses: maps(&self.statuses, &other.statuses),
            rate_limited: with(self.rate_limited, other.rate_limited),
            tokens_before: with(self.tokens_before, other.tokens_before),
            tokens_after: with(self.tokens_after, other.tokens_after),
            masked: with(self.masked, other.masked),
            trimmed: with(self.trimmed, other.trimmed),
            folded: with(self.folded, other.folded),
            dropped: with(self.dropped, other.dropped),
            newly_left_out: with(self.newly_left_out, other.newly_left_out),
            prompt_tokens: with(self.prompt_tokens, other.prompt_tokens),
            cached_tokens: with(self.cached_tokens, other.cached_tokens),
            completion_tokens: with(self.completion_tokens, other.completion_tokens),
            billed: with(self.billed, other.billed),
            unedited: with(self.unedited, other.unedited),
            priced: with(self.priced, other.priced),
            unpriced: with(self.unpriced, other.unpriced),
            observed: with(self.observed, other.observed),
            observed_before: with(self.observed_before, other.observed_before),
            observed_after: with(self.observed_after, other.observed_after),
            observed_refusals: with(self.observed_refusals, other.observed_refusals),
            observed_billed: with(self.observed_billed, other.observed_billed),
            observed_planned: with(self.observed_planned, other.observed_planned),
            folds: with(self.folds, other.folds),
            summarizers: with(self.summarizers, other.summarizers),
            degraded: maps(&self.degraded, &other.degraded),
            refusals: maps(&self.refusals, &other.refusals),
            overhead: buckets(&self.overhead, &other.overhead),
            latency: buckets(&self.latency, &other.latency),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_unknown_only_if_no_answer_has_a_price() {
        assert_eq!(Tally::default().costs(), Some((0.0, 0.0)));
        assert_eq!(Tally { unpriced: 1, ..Tally::default() }.costs(), None);
        let mixed = Tally { priced: 1, unpriced: 1, billed: 500_000_000, ..Tally::default() };
        assert_eq!(mixed.costs(), Some((0.5, 0.0)));
    }

    #[test]
    fn parts_add_up() {
        let tally = Tally {
            requests: 7,
            tokens_before: u64::MAX,
            outcomes: [("answered", 1)].into(),
            overhead: vec![0, 5],
            ..Tally::default()
        };
        let parts = (0..30).map(|number| tally.part(number, 30));
        assert_eq!(parts.fold(Tally::default(), |sum, part| sum.plus(&part)), tally);
    }

    #[test]
    fn the_difference_of_equal_tallies_is_empty() {
        let tally = Tally { refusals: [("code", 1)].into(), overhead: vec![0, 2], ..Tally::default() };
        assert!(!tally.is_empty());
        assert!(tally.since(&tally).is_empty());
    }
}
