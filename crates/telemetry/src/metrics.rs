use crate::exposition::exposition;
use crate::instruments::Instruments;
use crate::labels::{Bound, Labels};
use crate::names::{attribute, label};
use crate::queue::SpanCounts;
use crate::reader::SharedReader;
use crate::tally::{NO_MODEL, Tallied, Tallies};
use crate::{ArchiveCounts, Outcome};
use opentelemetry::KeyValue;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tidegate_context::Cost;

/// What is counted while requests pass: by OpenTelemetry's instruments, which `/metrics` and a collector both read.
#[derive(Debug)]
pub struct Metrics {
    instruments: Instruments,
    /// By route, then by model: both are few.
    known: RwLock<HashMap<String, HashMap<String, Labels>>>,
    tallies: Tallies,
    page: SharedReader,
    /// What the instruments belong to; they end with it.
    _provider: SdkMeterProvider,
}

/// What was done to one request, in tokens and in messages.
#[derive(Clone, Copy, Debug, Default)]
pub struct Planned {
    /// As the client sent it, and as it goes out.
    pub before: u64,
    pub after: u64,
    /// What the masked observations would have cost, and what the summary does.
    pub masked_tokens: u64,
    pub summary_tokens: u64,
    pub masked: u64,
    pub folded: u64,
    pub dropped: u64,
    pub has_stop_hint: bool,
    /// Whether all this was only noted, and the client's own request went out.
    pub is_observed: bool,
}

/// What is known of a request when its answer has ended. What the upstream did not report is not there.
#[derive(Clone, Copy, Debug, Default)]
pub struct Answered {
    pub prompt_tokens: Option<u64>,
    pub completion_tokens: Option<u64>,
    pub cached_tokens: Option<u64>,
    /// What was billed, and what the client's own request would have been; neither where a price is unknown.
    pub cost: Option<Cost>,
}

/// What a summarizer used, whether or not there is a summary in the end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Summarized {
    pub calls: u32,
    pub input: u64,
    pub output: u64,
    /// In USD; nothing where a price is unknown.
    pub cost: Option<f64>,
    pub is_made: bool,
}

impl Metrics {
    /// `pushed` is read by whoever sends the same figures elsewhere, and `spans` counts what becomes of spans.
    pub(crate) fn new(resource: Resource, pushed: Option<SharedReader>, spans: Arc<SpanCounts>) -> Metrics {
        let page = SharedReader::cumulative();
        let builder = SdkMeterProvider::builder().with_resource(resource).with_reader(page.clone());
        let provider = match pushed {
            Some(pushed) => builder.with_reader(pushed).build(),
            None => builder.build(),
        };
        let instruments = Instruments::new(&provider, spans);
        Metrics {
            instruments,
            known: RwLock::default(),
            tallies: Tallies::default(),
            page,
            _provider: provider,
        }
    }

    /// There is a route of this name.
    pub fn announce(&self, route: &str) {
        self.instruments.announce(route);
    }

    /// What requests of this route and model are counted under. `model` must be a name out of the model table, or
    /// [`OTHER_MODEL`](crate::OTHER_MODEL).
    #[must_use]
    pub fn labels(&self, route: &str, model: &str, provider: &'static str) -> Labels {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let found = known.get(route).and_then(|models| models.get(model));
        // A reload can put another provider behind a route.
        if let Some(labels) = found.filter(|labels| labels.0.provider == provider) {
            return labels.clone();
        }
        drop(known);
        let counts = self.tallies.of(route, model);
        let labels = Labels(Arc::new(Bound::new(&self.instruments, counts, route, model, provider)));
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.entry(route.to_owned()).or_default().insert(model.to_owned(), labels.clone());
        labels
    }

    /// A chat completion is over. `degraded` says what it went without, `refusal` why it was not sent.
    pub fn completed(
        &self,
        labels: &Labels,
        outcome: Outcome,
        refusal: Option<&'static str>,
        degraded: Option<&'static str>,
    ) {
        labels.0.requests(outcome).add(1);
        let counts = labels.0.counts.mine();
        counts.requests.add(1);
        counts.troubled(refusal, degraded);
        self.troubled(labels.0.route(), refusal, degraded);
    }

    /// Any other request is over.
    pub fn request(
        &self,
        route: &str,
        outcome: Outcome,
        refusal: Option<&'static str>,
        degraded: Option<&'static str>,
    ) {
        let counts = self.tallies.of(route, NO_MODEL);
        counts.mine().requests.add(1);
        counts.mine().troubled(refusal, degraded);
        let route = KeyValue::new(label::ROUTE, route.to_owned());
        self.instruments.requests.add(1, &[route.clone(), KeyValue::new(label::OUTCOME, outcome.name())]);
        self.troubled(&route, refusal, degraded);
    }

    fn troubled(&self, route: &KeyValue, refusal: Option<&'static str>, degraded: Option<&'static str>) {
        if let Some(code) = refusal {
            self.instruments.refusals.add(1, &[route.clone(), KeyValue::new(label::CODE, code)]);
        }
        if let Some(reason) = degraded {
            self.instruments.degraded.add(1, &[KeyValue::new(label::REASON, reason)]);
        }
    }

    /// What a client had to wait for us before its request went out.
    pub fn overhead(&self, labels: &Labels, waited: Duration) {
        labels.0.overhead.record(waited.as_secs_f64());
        labels.0.counts.mine().waited(waited);
    }

    /// A turn that could not be written into the counts of its conversation.
    pub fn uncounted(&self, reason: &'static str) {
        self.instruments.uncounted.add(1, &[KeyValue::new(label::REASON, reason)]);
    }

    /// A summarizer is done, for a request that is counted under `labels`.
    pub fn summarized(&self, labels: &Labels, summarized: &Summarized) {
        let Summarized { calls, input, output, cost, is_made } = *summarized;
        let counts = labels.0.counts.mine();
        counts.folds.add(u64::from(is_made));
        counts.summarizer_cost(cost.unwrap_or(0.0));
        let instruments = &self.instruments;
        instruments.summaries.add(u64::from(is_made), &[]);
        instruments.summary_calls.add(calls.into(), &[]);
        instruments.summarizer_tokens.add(input, &[KeyValue::new(label::TYPE, "input")]);
        instruments.summarizer_tokens.add(output, &[KeyValue::new(label::TYPE, "output")]);
        instruments.summarizer_cost.add(cost.unwrap_or(0.0), &[]);
    }

    /// A request was measured and edited, and goes out.
    pub fn planned(&self, labels: &Labels, planned: &Planned) {
        let Planned { before, after, masked_tokens, summary_tokens, masked, folded, dropped, .. } = *planned;
        let bound = &labels.0;
        let counts = bound.counts.mine();
        counts.tokens_before.add(before);
        if planned.is_observed {
            counts.tokens_after.add(before);
        } else {
            counts.tokens_after.add(after);
            counts.masked.add(masked);
            counts.folded.add(folded);
            counts.dropped.add(dropped);
        }
        bound.turns.add(1);
        bound.tokens_in.add(before);
        bound.tokens_out.add(after);
        bound.masked_tokens.add(masked_tokens);
        bound.summary_tokens.add(summary_tokens);
        for (edited, messages) in bound.edited.iter().zip([masked, folded, dropped]) {
            edited.add(messages);
        }
        if planned.has_stop_hint {
            self.instruments.stop_hints.add(1, &[]);
        }
        self.instruments.average.add(after);
    }

    /// A chat completion has ended, well or with an error. `first` is when its first byte came.
    pub fn operated(&self, labels: &Labels, took: Duration, first: Option<Duration>, error: Option<String>) {
        let (bound, seconds) = (&labels.0, took.as_secs_f64());
        match error {
            Some(error) => {
                let labels = bound.with(KeyValue::new(attribute::ERROR_TYPE, error));
                self.instruments.duration.record(seconds, &labels);
            }
            None => bound.duration.record(seconds),
        }
        if let Some(first) = first {
            bound.first_chunk.record(first.as_secs_f64());
        }
    }

    /// What its answer said.
    pub fn answered(&self, labels: &Labels, answered: &Answered) {
        let Answered { prompt_tokens, completion_tokens, cached_tokens, cost } = *answered;
        let bound = &labels.0;
        let counts = bound.counts.mine();
        counts.prompt_tokens.add(prompt_tokens.unwrap_or(0));
        counts.cached_tokens.add(cached_tokens.unwrap_or(0));
        counts.completion_tokens.add(completion_tokens.unwrap_or(0));
        for (usage, tokens) in bound.usage.iter().zip([prompt_tokens, completion_tokens]) {
            if let Some(tokens) = tokens {
                usage.record(tokens);
            }
        }
        bound.prompt_tokens.add(prompt_tokens.unwrap_or(0));
        bound.cached_tokens.add(cached_tokens.unwrap_or(0));
        match cost {
            Some(Cost { billed, unedited }) => {
                let costs = bound.costs(&self.instruments);
                costs.estimated.add(billed);
                costs.billed.add(billed);
                costs.unedited.add(unedited);
                counts.cost(billed, unedited);
            }
            None => {
                bound.unpriced.add(1);
                counts.unpriced.add(1);
            }
        }
    }

    /// A request was refused because it does not fit.
    pub fn overflowed(&self) {
        self.instruments.overflows.add(1, &[]);
    }

    /// More than usual went for a summary, because the request hardly fitted.
    pub fn pruned(&self) {
        self.instruments.prunes.add(1, &[]);
    }

    /// A summary that was wanted and is not there.
    pub fn unsummarized(&self, reason: &'static str) {
        self.instruments.summarizer_failures.add(1, &[KeyValue::new(label::REASON, reason)]);
    }

    /// Tells how far the archive is, from now on.
    pub fn watch_archive(&self, counts: impl Fn() -> ArchiveCounts + Send + Sync + 'static) {
        self.instruments.watch_archive(Arc::new(counts));
    }

    /// What requests have added up to, by route and model.
    #[must_use]
    pub fn tallies(&self) -> Vec<Tallied> {
        self.tallies.all()
    }

    /// All of it, in the text format of Prometheus.
    #[must_use]
    pub fn text(&self) -> String {
        exposition(&self.page.collect())
    }
}

impl Default for Metrics {
    /// For `/metrics` alone.
    fn default() -> Metrics {
        Metrics::new(Resource::builder_empty().build(), None, Arc::default())
    }
}
