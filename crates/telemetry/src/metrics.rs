use crate::conventions::Conventions;
use crate::counts::Counts;
use crate::exposition::exposition;
use crate::histograms::Histograms;
use crate::labels::{Bound, Labels};
use crate::reader::SharedReader;
use crate::span_queue::SpanCounts;
use crate::{ArchiveCounts, Load, ModelTally, Outcome, Semconv, WindowFact, counters, load, process};
use opentelemetry::metrics::{Meter, MeterProvider};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tidegate_context::{Cost, Figures, RecallResult};

/// Everything that is counted and measured about requests. `/metrics`, OTLP and the dashboard all read it from here.
#[derive(Debug)]
pub struct Metrics {
    counts: Arc<Counts>,
    histograms: Histograms,
    conventions: Conventions,
    /// By route, then by model.
    known: RwLock<HashMap<String, HashMap<String, Labels>>>,
    reader: SharedReader,
    meter: Meter,
    /// Instruments stop working when their provider is dropped.
    _provider: SdkMeterProvider,
}

/// What is known about a request once its answer has ended. A field is `None` if the upstream did not report it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Answered {
    pub prompt_tokens: Option<u64>,
    pub completion_tokens: Option<u64>,
    pub cached_tokens: Option<u64>,
    pub cache_write_tokens: Option<u64>,
    pub reasoning_tokens: Option<u64>,
    /// `None` if a price is unknown.
    pub cost: Option<Cost>,
}

/// A request that has ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Completion {
    pub outcome: Outcome,
    /// The status of the upstream's answer; `Some(None)` if it gave none, `None` if it was not called.
    pub upstream: Option<Option<u16>>,
    /// The code of the error that Tidegate answered with.
    pub refusal: Option<&'static str>,
    /// Why the request was served without something it should have had.
    pub degraded: Option<&'static str>,
}

/// What a run of a summarizer used, whether or not it made a summary.
#[derive(Clone, Copy, Debug, Default)]
pub struct Summarized {
    pub calls: u32,
    pub input: u64,
    pub output: u64,
    /// In USD; `None` if a price is unknown.
    pub cost: Option<f64>,
    pub is_made: bool,
}

impl Metrics {
    /// `reader` is what [`Metrics::text`] and the OTLP exporter collect from.
    pub(crate) fn new(
        resource: Resource,
        reader: SharedReader,
        spans: Arc<SpanCounts>,
        semconv: Semconv,
    ) -> Metrics {
        let provider =
            SdkMeterProvider::builder().with_resource(resource).with_reader(reader.clone()).build();
        let meter = provider.meter("tidegate");
        let counts = Arc::<Counts>::default();
        counters::register(&meter, &counts);
        process::register(&meter, spans);
        let (histograms, conventions) = (Histograms::new(&meter), Conventions::new(&meter, semconv));
        Metrics {
            counts,
            histograms,
            conventions,
            known: RwLock::default(),
            reader,
            meter,
            _provider: provider,
        }
    }

    /// Starts the series of a configured route at zero, so that its first request is an increase.
    pub fn announce(&self, route: &str) {
        self.counts.announce(route);
    }

    /// The labels of a route's chat completions. `model` must be a name from the model table, or
    /// [`OTHER_MODEL`](crate::OTHER_MODEL).
    #[must_use]
    pub fn labels(&self, route: &str, model: &str, provider: &'static str) -> Labels {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let found = known.get(route).and_then(|models| models.get(model));
        // A reload can change the provider behind a route.
        if let Some(labels) = found.filter(|labels| labels.0.provider == provider) {
            return labels.clone();
        }
        drop(known);
        let counts = self.counts.chat(route, model);
        let labels = Labels(Arc::new(Bound::new(&self.histograms, &self.conventions, counts, provider)));
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.entry(route.to_owned()).or_default().insert(model.to_owned(), labels.clone());
        labels
    }

    /// Counts a chat completion that has ended.
    pub fn completed(&self, labels: &Labels, completion: Completion) {
        labels.0.counts.shard().completed(completion);
    }

    /// Counts any other request that has ended.
    pub fn request(&self, route: &str, completion: Completion) {
        self.counts.other(route).shard().completed(completion);
    }

    /// Records how long the upstream of a chat completion took to begin its answer.
    pub fn upstream_latency(&self, labels: &Labels, latency: Duration) {
        labels.0.upstream_latency.record(latency.as_secs_f64());
        labels.0.counts.shard().latency.record(latency);
    }

    /// Records the time that Tidegate took before it forwarded a request.
    pub fn overhead(&self, labels: &Labels, overhead: Duration) {
        labels.0.overhead.record(overhead.as_secs_f64());
        labels.0.counts.shard().overhead.record(overhead);
    }

    /// Counts a turn that could not be added to its conversation's counts.
    pub fn turn_uncounted(&self, reason: &'static str) {
        self.counts.uncounted.add(reason);
    }

    /// Counts a call of the recall tool.
    pub fn recall_called(&self, labels: &Labels, result: RecallResult) {
        labels.0.counts.shard().recall_calls.add(result.name());
    }

    /// Counts a run of a summarizer, for a request with these labels.
    pub fn summarized(&self, labels: &Labels, summarized: &Summarized) {
        labels.0.counts.shard().summarized(summarized);
    }

    /// Counts a request that was measured and is forwarded.
    pub fn planned(&self, labels: &Labels, figures: &Figures) {
        labels.0.counts.shard().planned(figures);
    }

    /// Records how long a chat completion took, and how long until its first byte. `error` is its `error.type` if it failed.
    pub fn record_duration(
        &self,
        labels: &Labels,
        took: Duration,
        first: Option<Duration>,
        error: Option<String>,
    ) {
        labels.0.conventions.ended(took, first, error);
    }

    /// Counts what is known about a request once its answer has ended.
    pub fn answered(&self, labels: &Labels, answered: &Answered) {
        labels.0.counts.shard().answered(answered);
        labels.0.conventions.answered(answered);
    }

    /// Counts a request that was refused because it exceeds the budget.
    pub fn over_budget(&self) {
        self.counts.overflows.add(1);
    }

    /// Counts a fold that had to prune.
    pub fn pruned(&self) {
        self.counts.prunes.add(1);
    }

    /// Counts the facts that a model had left out of a summary.
    pub fn facts_added(&self, facts: usize) {
        self.counts.facts_added.add(facts as u64);
    }

    /// Counts a summary that could not be made.
    pub fn summary_failed(&self, reason: &'static str) {
        self.counts.summarizer_failures.add(reason);
    }

    /// Adds the archive's metrics. `counts` is called whenever metrics are collected.
    pub fn watch_archive(&self, counts: impl Fn() -> ArchiveCounts + Send + Sync + 'static) {
        process::register_archive(&self.meter, Arc::new(counts));
    }

    /// Adds the windows that upstreams have named. `windows` is called whenever metrics are collected.
    pub fn watch_windows(&self, windows: impl Fn() -> Vec<WindowFact> + Send + Sync + 'static) {
        process::register_windows(&self.meter, Arc::new(windows));
    }

    /// Whose names metrics and spans use.
    #[must_use]
    pub fn semconv(&self) -> Semconv {
        self.conventions.semconv
    }

    /// Adds what is in use of the limits of the process. `load` is called whenever metrics are collected.
    pub fn watch_load(&self, load: impl Fn() -> Load + Send + Sync + 'static) {
        let load: Arc<dyn Fn() -> Load + Send + Sync> = Arc::new(load);
        load::register(&self.meter, &load);
    }

    /// A snapshot of the counts, by route and model.
    #[must_use]
    pub fn tallies(&self) -> Vec<ModelTally> {
        self.counts.tallies()
    }

    /// All metrics, in the text format of Prometheus.
    #[must_use]
    pub fn text(&self) -> String {
        exposition(&self.reader.collect())
    }
}

impl Default for Metrics {
    /// Metrics that are not exported.
    fn default() -> Metrics {
        let resource = Resource::builder_empty().build();
        Metrics::new(resource, SharedReader::cumulative(), Arc::default(), Semconv::default())
    }
}
