//! The counts of the process. A request is counted here and nowhere else.
//!
//! `/metrics` and OTLP read these counts through the observable counters of `counters.rs`, and the dashboard reads them through
//! [`Counts::tallies`]. Histograms are not counts: OpenTelemetry keeps them.

use crate::buckets::{BUCKETS, Buckets, unless_empty};
use crate::labels::OTHER_MODEL;
use crate::shard::{ByReason, Count, Shard};
use crate::status_class::STATUS_CLASSES;
use crate::{ModelTally, OUTCOMES, Tally};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// By route, then by model.
    routes: RwLock<BTreeMap<String, BTreeMap<String, Arc<ModelCounts>>>>,
    pub(crate) overflows: Count,
    pub(crate) prunes: Count,
    pub(crate) facts_added: Count,
    pub(crate) summarizer_failures: ByReason,
    pub(crate) uncounted: ByReason,
}

/// The model of requests that are not chat completions.
const NO_MODEL: &str = "none";

impl Counts {
    /// The counts of the chat completions of a route and model.
    pub(crate) fn chat(&self, route: &str, model: &str) -> Arc<ModelCounts> {
        let counts = self.get(route, model);
        counts.has_chat.store(true, Ordering::Relaxed);
        counts
    }

    /// The counts of all other requests of a route.
    pub(crate) fn other(&self, route: &str) -> Arc<ModelCounts> {
        self.get(route, NO_MODEL)
    }

    /// Creates the series that every configured route has from the start.
    pub(crate) fn announce(&self, route: &str) {
        self.chat(route, OTHER_MODEL);
    }

    pub(crate) fn routes(&self) -> Vec<RouteCounts> {
        let routes = self.routes.read().unwrap_or_else(PoisonError::into_inner);
        let all = routes.iter();
        all.map(|(route, models)| RouteCounts {
            route: route.clone(),
            models: models.values().cloned().collect(),
        })
        .collect()
    }

    pub(crate) fn models(&self) -> Vec<Arc<ModelCounts>> {
        self.routes().into_iter().flat_map(|route| route.models).collect()
    }

    pub(crate) fn sum(&self, count: fn(&Shard) -> &Count) -> u64 {
        self.models().iter().map(|model| model.sum(count)).sum()
    }

    pub(crate) fn tallies(&self) -> Vec<ModelTally> {
        let tallied = |counts: Arc<ModelCounts>| ModelTally {
            route: counts.route.clone(),
            model: counts.model.clone(),
            tally: counts.tally(),
        };
        self.models().into_iter().map(tallied).collect()
    }

    fn get(&self, route: &str, model: &str) -> Arc<ModelCounts> {
        let routes = self.routes.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(counts) = routes.get(route).and_then(|models| models.get(model)) {
            return counts.clone();
        }
        drop(routes);
        let mut routes = self.routes.write().unwrap_or_else(PoisonError::into_inner);
        let models = routes.entry(route.to_owned()).or_default();
        models.entry(model.to_owned()).or_insert_with(|| Arc::new(ModelCounts::new(route, model))).clone()
    }
}

/// The counts of all models of a route.
#[derive(Debug)]
pub(crate) struct RouteCounts {
    pub(crate) route: String,
    pub(crate) models: Vec<Arc<ModelCounts>>,
}

impl RouteCounts {
    /// Whether this is a configured route, and not the name for requests that match none.
    pub(crate) fn has_chat(&self) -> bool {
        self.models.iter().any(|model| model.has_chat())
    }

    pub(crate) fn sum(&self, count: impl Fn(&Shard) -> &Count) -> u64 {
        self.models.iter().map(|model| model.sum(&count)).sum()
    }
}

/// The counts of one route and model.
#[derive(Debug)]
pub(crate) struct ModelCounts {
    pub(crate) route: String,
    pub(crate) model: String,
    /// Whether chat completions are counted here. If not, there are no series with this model.
    has_chat: AtomicBool,
    shards: [Shard; SHARDS],
}

/// The number of workers on most machines. If there are more threads, several share a shard.
const SHARDS: usize = 4;

impl ModelCounts {
    fn new(route: &str, model: &str) -> ModelCounts {
        ModelCounts {
            route: route.to_owned(),
            model: model.to_owned(),
            has_chat: AtomicBool::new(false),
            shards: Default::default(),
        }
    }

    /// The calling thread's shard.
    pub(crate) fn shard(&self) -> &Shard {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            static MINE: usize = NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS;
        }
        // A thread that is being torn down can no longer read its thread-local.
        &self.shards[MINE.try_with(|mine| *mine).unwrap_or(0)]
    }

    pub(crate) fn has_chat(&self) -> bool {
        self.has_chat.load(Ordering::Relaxed)
    }

    pub(crate) fn sum(&self, count: impl Fn(&Shard) -> &Count) -> u64 {
        self.shards.iter().map(|shard| count(shard).get()).sum()
    }

    pub(crate) fn add_reasons(&self, by: fn(&Shard) -> &ByReason, sums: &mut BTreeMap<&'static str, u64>) {
        self.shards.iter().for_each(|shard| by(shard).add_to(sums));
    }

    fn tally(&self) -> Tally {
        let (mut degraded, mut refusals) = (BTreeMap::new(), BTreeMap::new());
        self.add_reasons(|shard| &shard.degraded, &mut degraded);
        self.add_reasons(|shard| &shard.refusals, &mut refusals);
        let buckets = |of: fn(&Shard) -> &Buckets| {
            unless_empty((0..BUCKETS).map(|bucket| self.sum(|shard| of(shard).count(bucket))).collect())
        };
        let outcomes =
            OUTCOMES.map(|outcome| (outcome.name(), self.sum(|shard| &shard.requests[outcome as usize])));
        let statuses =
            STATUS_CLASSES.map(|class| (class.name(), self.sum(|shard| &shard.responses[class as usize])));
        let some = |(_, count): &(_, u64)| *count > 0;
        Tally {
            requests: outcomes.iter().map(|(_, requests)| requests).sum(),
            outcomes: outcomes.into_iter().filter(some).collect(),
            statuses: statuses.into_iter().filter(some).collect(),
            rate_limited: self.sum(|shard| &shard.rate_limited),
            tokens_before: self.sum(|shard| &shard.tokens_in),
            tokens_after: self.sum(|shard| &shard.tokens_out),
            masked: self.sum(|shard| &shard.masked),
            trimmed: self.sum(|shard| &shard.trimmed),
            folded: self.sum(|shard| &shard.folded),
            dropped: self.sum(|shard| &shard.dropped),
            newly_left_out: self.sum(|shard| &shard.newly_left_out),
            prompt_tokens: self.sum(|shard| &shard.prompt_tokens),
            cached_tokens: self.sum(|shard| &shard.cached_tokens),
            completion_tokens: self.sum(|shard| &shard.completion_tokens),
            billed: self.sum(|shard| &shard.billed),
            unedited: self.sum(|shard| &shard.unedited),
            priced: self.sum(|shard| &shard.priced),
            unpriced: self.sum(|shard| &shard.unpriced),
            observed: self.sum(|shard| &shard.observed_turns),
            observed_before: self.sum(|shard| &shard.observed_in),
            observed_after: self.sum(|shard| &shard.observed_out),
            observed_refusals: self.sum(|shard| &shard.observed_refusals),
            observed_billed: self.sum(|shard| &shard.observed_billed),
            observed_planned: self.sum(|shard| &shard.observed_planned),
            folds: self.sum(|shard| &shard.summaries),
            summarizers: self.sum(|shard| &shard.summarizer_cost),
            degraded,
            refusals,
            overhead: buckets(|shard| &shard.overhead),
            latency: buckets(|shard| &shard.latency),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Completion, Outcome};
    use std::time::Duration;
    use tidegate_context::Cost;

    #[test]
    fn threads_use_several_shards_and_are_summed() {
        let counts = ModelCounts::new("r", "m");
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..1_000).for_each(|_| counts.shard().completed(Completion::default())));
            }
        });
        assert_eq!(counts.tally().requests, 8_000);
        assert!(counts.shards.iter().filter(|shard| shard.requests[0].get() > 0).count() > 1);
    }

    #[test]
    fn the_difference_of_two_tallies_is_what_was_counted_between_them() {
        let counts = Counts::default();
        let tally = || counts.tallies()[0].tally.clone();
        let shard = counts.chat("r", "m");
        shard.shard().completed(Completion {
            refusal: Some("a"),
            degraded: Some("b"),
            ..Completion::default()
        });
        shard.shard().priced(Cost { billed: 0.5, unedited: 0.75, planned: None });
        shard.shard().overhead.record(Duration::from_micros(50));
        let earlier = tally();
        assert!(earlier.since(&earlier).is_empty(), "{earlier:?}");
        shard.shard().completed(Completion { degraded: Some("c"), ..Completion::default() });
        shard.shard().completed(Completion {
            outcome: Outcome::UpstreamError,
            upstream: Some(Some(429)),
            ..Completion::default()
        });
        counts.chat("r", "m").shard().priced(Cost { billed: 0.25, unedited: 0.25, planned: None });
        let between = tally().since(&earlier);
        assert_eq!((between.requests, between.costs()), (2, Some((0.25, 0.25))));
        assert_eq!(between.outcomes, [("answered", 1), ("upstream_error", 1)].into());
        assert_eq!((&between.statuses, between.rate_limited), (&[("4xx", 1)].into(), 1));
        assert_eq!((between.degraded, between.refusals.len()), ([("c", 1)].into(), 0));
        assert_eq!(earlier.plus(&tally().since(&earlier)), tally());
        assert_eq!(counts.tallies().len(), 1);
    }
}
