//! The counters of `/metrics` and OTLP. They hold no values: when metrics are collected, they read [`Counts`] and sum them up by
//! the labels that each metric has.

use crate::OUTCOMES;
use crate::counts::{Counts, ModelCounts, RouteCounts};
use crate::labels::OTHER_MODEL;
use crate::names::{label, metric};
use crate::shard::{ByReason, Count, Shard, usd};
use crate::status_class::STATUS_CLASSES;
use opentelemetry::KeyValue;
use opentelemetry::metrics::{AsyncInstrument, Meter};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The codes of refusals that alerts are built on. Every route has them from the start, so that the first refusal is an increase.
const REFUSALS: [&str; 7] = [
    "context_budget_exceeded",
    "max_cost_exceeded",
    "max_turns_exceeded",
    "overloaded",
    "store_unavailable",
    "upstream_timeout",
    "upstream_unreachable",
];

type Field = fn(&Shard) -> &Count;

/// Messages, by the value of their `edit` label.
const EDITS: [(&str, Field); 5] = [
    ("masked", |shard| &shard.masked),
    ("trimmed", |shard| &shard.trimmed),
    ("folded", |shard| &shard.folded),
    ("dropped", |shard| &shard.dropped),
    ("recalled", |shard| &shard.recalled),
];

pub(crate) fn register(meter: &Meter, counts: &Arc<Counts>) {
    let add = Registry { meter, counts };
    add.count(metric::REQUESTS, "Requests by outcome.", requests);
    add.count(metric::RESPONSES, "Answers of upstreams by the class of their status.", responses);
    add.count(metric::RATE_LIMITED, "Answers of upstreams with status 429.", rate_limited);
    add.count(metric::REFUSALS, "Requests that Tidegate answered with an error, by code.", refusals);
    add.count(
        metric::DEGRADED,
        "Requests served without something they should have had, by reason.",
        degraded,
    );
    add.single(metric::OVERFLOWS, "Requests refused because they exceed the budget.", |all| &all.overflows);
    add.count(metric::RECALL_CALLS, "Calls of the recall tool, by result.", recall_calls);
    add.by_reason(metric::UNCOUNTED, "Turns missing in their conversation's counts, by reason.", |all| {
        &all.uncounted
    });

    add.by_model(metric::TURNS, "Requests that were measured and forwarded.", |shard| &shard.turns);
    add.by_model(metric::TOKENS_IN, "Tokens of requests as clients sent them.", |shard| &shard.tokens_in);
    add.by_model(metric::TOKENS_OUT, "Tokens of requests as they were forwarded.", |shard| &shard.tokens_out);
    add.by_model(metric::MASKED_TOKENS, "Tokens of masked observations.", |shard| &shard.masked_tokens);
    add.by_model(metric::TRIMMED_TOKENS, "Tokens of trimmed observations, as clients sent them.", |shard| {
        &shard.trimmed_tokens
    });
    add.by_model(metric::SUMMARY_TOKENS, "Tokens of forwarded summaries.", |shard| &shard.summary_tokens);
    add.count(metric::EDITED, "Messages that were masked, trimmed, folded, dropped or quoted again.", edited);
    add.total(metric::RECALLED_TOKENS, "Tokens of excerpts that were added to requests.", |shard| {
        &shard.recalled_tokens
    });
    add.single(metric::PRUNES, "Folds that had to prune.", |all| &all.prunes);
    add.total(metric::STOP_HINTS, "Answers with a hint that the agent makes no progress.", |shard| {
        &shard.stop_hints
    });
    add.average(metric::AVERAGE_PROMPT, "Average tokens of a forwarded request.");

    add.total(metric::SUMMARIES, "Summaries made.", |shard| &shard.summaries);
    add.single(metric::FACTS_ADDED, "Facts that models had left out of their summaries.", |all| {
        &all.facts_added
    });
    add.total(metric::SUMMARY_CALLS, "Requests to summarizers.", |shard| &shard.summarizer_calls);
    add.count(metric::SUMMARIZER_TOKENS, "Tokens used by summarizers.", summarizer_tokens);
    add.cost(
        metric::SUMMARIZER_COST,
        "Cost of summarizers in USD, if their prices are known.",
        summarizer_cost,
    );
    add.by_reason(metric::SUMMARIZER_FAILURES, "Summaries that could not be made, by reason.", |all| {
        &all.summarizer_failures
    });

    add.by_model(metric::PROMPT_TOKENS, "Prompt tokens reported by upstreams.", |shard| &shard.prompt_tokens);
    add.by_model(metric::CACHED_TOKENS, "Cached prompt tokens reported by upstreams.", |shard| {
        &shard.cached_tokens
    });
    add.cost(metric::ESTIMATED_COST, "Cost of requests in USD, if their prices are known.", estimated_cost);
    add.cost(metric::COST, "Cost of requests in USD, as billed and as estimated without edits.", cost);
    add.count(
        metric::OBSERVED_TOKENS,
        "Tokens of requests that were only observed, as sent and as planned.",
        observed_tokens,
    );
    add.cost(
        metric::OBSERVED_COST,
        "Cost in USD of requests that were only observed, as billed and as planned.",
        observed_cost,
    );
    add.count(
        metric::OBSERVED_REFUSALS,
        "Requests that were only observed and would have been refused.",
        observed_refusals,
    );
    add.count(metric::UNPRICED, "Requests whose cost is unknown.", unpriced);
}

struct Registry<'a> {
    meter: &'a Meter,
    counts: &'a Arc<Counts>,
}

impl Registry<'_> {
    fn by_model(&self, name: &'static str, help: &'static str, field: Field) {
        self.count(name, help, move |counts, observer| {
            for model in counts.models().iter().filter(|model| model.has_chat()) {
                observer.observe(model.sum(field), &model_labels(model));
            }
        });
    }

    fn by_reason(&self, name: &'static str, help: &'static str, reasons: fn(&Counts) -> &ByReason) {
        self.count(name, help, move |counts, observer| {
            let mut sums = BTreeMap::new();
            reasons(counts).add_to(&mut sums);
            observe_reasons(sums, observer);
        });
    }

    /// The sum over all routes and models.
    fn total(&self, name: &'static str, help: &'static str, field: Field) {
        self.count(name, help, move |counts, observer| observer.observe(counts.sum(field), &[]));
    }

    /// A count that is not kept by route and model.
    fn single(&self, name: &'static str, help: &'static str, field: fn(&Counts) -> &Count) {
        self.count(name, help, move |counts, observer| observer.observe(field(counts).get(), &[]));
    }

    fn count(
        &self,
        name: &'static str,
        help: &'static str,
        observe: impl Fn(&Counts, &dyn AsyncInstrument<u64>) + Send + Sync + 'static,
    ) {
        let counts = self.counts.clone();
        let counter = self.meter.u64_observable_counter(name).with_description(help);
        counter.with_callback(move |observer| observe(&counts, observer)).build();
    }

    fn cost(
        &self,
        name: &'static str,
        help: &'static str,
        observe: impl Fn(&Counts, &dyn AsyncInstrument<f64>) + Send + Sync + 'static,
    ) {
        let counts = self.counts.clone();
        let counter = self.meter.f64_observable_counter(name).with_description(help);
        counter.with_callback(move |observer| observe(&counts, observer)).build();
    }

    fn average(&self, name: &'static str, help: &'static str) {
        let counts = self.counts.clone();
        let average = move || {
            let turns = counts.sum(|shard| &shard.turns).max(1);
            counts.sum(|shard| &shard.tokens_out) as f64 / turns as f64
        };
        let gauge = self.meter.f64_observable_gauge(name).with_description(help);
        gauge.with_callback(move |observer| observer.observe(average(), &[])).build();
    }
}

fn requests(counts: &Counts, observer: &dyn AsyncInstrument<u64>) {
    for route in &counts.routes() {
        for outcome in OUTCOMES {
            let requests = route.sum(|shard| &shard.requests[outcome as usize]);
            if requests > 0 || route.has_chat() {
                let outcome = KeyValue::new(label::OUTCOME, outcome.name());
                observer.observe(requests, &[route_label(route), outcome]);
            }
        }
    }
}

fn responses(counts: &Counts, observer: &dyn AsyncInstrument<u64>) {
    for route in &counts.routes() {
        for class in STATUS_CLASSES {
            let responses = route.sum(|shard| &shard.responses[class as usize]);
            if responses > 0 || route.has_chat() {
                observer
                    .observe(responses, &[route_label(route), KeyValue::new(label::STATUS, class.name())]);
            }
        }
    }
}

fn rate_limited(counts: &Counts, observer: &dyn AsyncInstrument<u64>) {
    for route in counts.routes().iter().filter(|route| route.has_chat()) {
        observer.observe(route.sum(|shard| &shard.rate_limited), &[route_label(route)]);
    }
}

fn refusals(counts: &Counts, observer: &dyn AsyncInstrument<u64>) {
    for route in &counts.routes() {
        let mut codes = BTreeMap::new();
        if route.has_chat() {
            codes.extend(REFUSALS.map(|code| (code, 0)));
        }
        route.models.iter().for_each(|model| model.add_reasons(|shard| &shard.refusals, &mut codes));
        for (code, refusals) in codes {
            observer.observe(refusals, &[route_label(route), KeyValue::new(label::CODE, code)]);
        }
    }
}

fn degraded(counts: &Counts, observer: &dyn AsyncInstrument<u64>) {
    let mut reasons = BTreeMap::new();
    counts.models().iter().for_each(|model| model.add_reasons(|shard| &shard.degraded, &mut reasons));
    observe_reasons(reasons, observer);
}

fn edited(counts: &Counts, observer: &dyn AsyncInstrument<u64>) {
    for route in counts.routes().iter().filter(|route| route.has_chat()) {
        for (edit, field) in EDITS {
            let edit = KeyValue::new(label::EDIT, edit);
            observer.observe(route.sum(field), &[route_label(route), edit]);
        }
    }
}

fn recall_calls(counts: &Counts, observer: &dyn AsyncInstrument<u64>) {
    for route in &counts.routes() {
        let mut results = BTreeMap::new();
        route.models.iter().for_each(|model| model.add_reasons(|shard| &shard.recall_calls, &mut results));
        for (result, calls) in results {
            observer.observe(calls, &[route_label(route), KeyValue::new(label::RESULT, result)]);
        }
    }
}

fn summarizer_tokens(counts: &Counts, observer: &dyn AsyncInstrument<u64>) {
    if counts.sum(|shard| &shard.summarizer_runs) == 0 {
        return;
    }
    let observe = |kind, field: Field| {
        observer.observe(counts.sum(field), &[KeyValue::new(label::TYPE, kind)]);
    };
    observe("input", |shard| &shard.summarizer_input);
    observe("output", |shard| &shard.summarizer_output);
}

fn summarizer_cost(counts: &Counts, observer: &dyn AsyncInstrument<f64>) {
    observer.observe(usd(counts.sum(|shard| &shard.summarizer_cost)), &[]);
}

fn estimated_cost(counts: &Counts, observer: &dyn AsyncInstrument<f64>) {
    for model in counts.models() {
        // Every configured route has this model from the start.
        let is_other = model.has_chat() && model.model == OTHER_MODEL;
        if is_other || is_priced(&model) {
            observer.observe(usd(model.sum(|shard| &shard.billed)), &model_labels(&model));
        }
    }
}

fn cost(counts: &Counts, observer: &dyn AsyncInstrument<f64>) {
    for model in counts.models().iter().filter(|model| is_priced(model)) {
        let [route, name] = model_labels(model);
        let observe = |kind, field: Field| {
            let labels = [route.clone(), name.clone(), KeyValue::new(label::KIND, kind)];
            observer.observe(usd(model.sum(field)), &labels);
        };
        observe("billed", |shard| &shard.billed);
        observe("unedited", |shard| &shard.unedited);
    }
}

/// The models of routes that observe.
fn observing(counts: &Counts) -> impl Iterator<Item = Arc<ModelCounts>> {
    counts.models().into_iter().filter(|model| model.sum(|shard| &shard.observed_turns) > 0)
}

fn observed_tokens(counts: &Counts, observer: &dyn AsyncInstrument<u64>) {
    for model in observing(counts) {
        let [route, name] = model_labels(&model);
        let observe = |kind, field: Field| {
            observer
                .observe(model.sum(field), &[route.clone(), name.clone(), KeyValue::new(label::KIND, kind)]);
        };
        observe("sent", |shard| &shard.observed_in);
        observe("planned", |shard| &shard.observed_out);
    }
}

fn observed_cost(counts: &Counts, observer: &dyn AsyncInstrument<f64>) {
    for model in observing(counts).filter(|model| is_priced(model)) {
        let [route, name] = model_labels(&model);
        let observe = |kind, field: Field| {
            let labels = [route.clone(), name.clone(), KeyValue::new(label::KIND, kind)];
            observer.observe(usd(model.sum(field)), &labels);
        };
        observe("billed", |shard| &shard.observed_billed);
        observe("planned", |shard| &shard.observed_planned);
    }
}

fn observed_refusals(counts: &Counts, observer: &dyn AsyncInstrument<u64>) {
    for model in observing(counts) {
        observer.observe(model.sum(|shard| &shard.observed_refusals), &model_labels(&model));
    }
}

fn unpriced(counts: &Counts, observer: &dyn AsyncInstrument<u64>) {
    for route in counts.routes().iter().filter(|route| route.has_chat()) {
        observer.observe(route.sum(|shard| &shard.unpriced), &[route_label(route)]);
    }
}

fn observe_reasons(reasons: BTreeMap<&'static str, u64>, observer: &dyn AsyncInstrument<u64>) {
    for (reason, count) in reasons {
        observer.observe(count, &[KeyValue::new(label::REASON, reason)]);
    }
}

/// An unknown cost is not a cost of zero, so models without a price have no series.
fn is_priced(model: &ModelCounts) -> bool {
    model.sum(|shard| &shard.priced) > 0
}

fn route_label(route: &RouteCounts) -> KeyValue {
    KeyValue::new(label::ROUTE, route.route.clone())
}

fn model_labels(model: &ModelCounts) -> [KeyValue; 2] {
    [KeyValue::new(label::ROUTE, model.route.clone()), KeyValue::new(label::MODEL, model.model.clone())]
}
