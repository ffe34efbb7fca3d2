//! Durations in buckets, for the dashboard's quantiles.
//!
//! The histograms of `/metrics` are recorded beside them, by the same calls of [`Metrics`](crate::Metrics). Neither can be derived
//! from the other: the metrics have no model label and coarser buckets, and the SDK cannot export a histogram whose buckets are
//! kept elsewhere.

use crate::shard::Count;
use std::time::Duration;

/// Bucket `n` ends at `FIRST_BOUND_US * GROWTH^n`; the last one has no end. The last bound is beyond two minutes.
pub(crate) const BUCKETS: usize = 42;
const FIRST_BOUND_US: f64 = 10.0;
const GROWTH: f64 = 1.5;

#[derive(Debug)]
pub(crate) struct Buckets([Count; BUCKETS]);

impl Default for Buckets {
    fn default() -> Buckets {
        Buckets(std::array::from_fn(|_| Count::default()))
    }
}

impl Buckets {
    pub(crate) fn record(&self, duration: Duration) {
        let micros = duration.as_nanos() as f64 / 1e3;
        let bucket = (micros / FIRST_BOUND_US).max(1.0).log(GROWTH).ceil();
        // Casting saturates, and the logarithm of one or more is not negative.
        self.0[(bucket as usize).min(BUCKETS - 1)].add(1);
    }

    pub(crate) fn count(&self, bucket: usize) -> &Count {
        &self.0[bucket]
    }
}

/// Returns an empty list if all buckets are empty: the dashboard keeps many tallies over time, and most have no requests.
pub(crate) fn unless_empty(buckets: Vec<u64>) -> Vec<u64> {
    if buckets.iter().all(|count| *count == 0) { Vec::new() } else { buckets }
}

/// The quantile in microseconds, interpolated within its bucket. Returns `None` if all buckets are empty.
pub(crate) fn quantile_us(buckets: &[u64], quantile: f64) -> Option<f64> {
    let all: u64 = buckets.iter().sum();
    let rank = all as f64 * quantile;
    let mut below = 0.0;
    for (bucket, count) in buckets.iter().map(|count| *count as f64).enumerate() {
        if count > 0.0 && below + count >= rank {
            let part = ((rank - below) / count).clamp(0.0, 1.0);
            return Some(FIRST_BOUND_US * GROWTH.powf(bucket as f64 - 1.0 + part));
        }
        below += count;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(micros: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let buckets = Buckets::default();
        micros.into_iter().for_each(|one| buckets.record(Duration::from_micros(one)));
        (0..BUCKETS).map(|bucket| buckets.count(bucket).get()).collect()
    }

    #[test]
    fn a_quantile_is_off_by_at_most_one_bucket() {
        for micros in [10, 11, 180, 5_000, 900_000, 12_000_000] {
            let quantile = quantile_us(&recorded([micros]), 0.99).unwrap();
            let (low, high) = (micros as f64 / GROWTH, micros as f64 * GROWTH);
            assert!((low..=high).contains(&quantile), "{micros}: {quantile}");
        }
        let mixed = recorded([100; 180].into_iter().chain([9_000; 20]));
        let (p50, p99) = (quantile_us(&mixed, 0.5).unwrap(), quantile_us(&mixed, 0.99).unwrap());
        assert!((66.0..150.0).contains(&p50) && (6_000.0..13_500.0).contains(&p99), "{p50} {p99}");
    }

    #[test]
    fn the_outer_buckets_have_no_bounds() {
        assert_eq!(recorded([0, 1])[0], 2);
        assert_eq!(recorded([1_000_000_000])[BUCKETS - 1], 1);
    }

    #[test]
    fn empty_buckets_have_no_quantile() {
        assert_eq!(quantile_us(&[], 0.5), None);
        assert_eq!(quantile_us(&recorded([]), 0.5), None);
    }
}
