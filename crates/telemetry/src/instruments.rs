use crate::labels::OTHER_MODEL;
use crate::names::{label, metric};
use crate::queue::SpanCounts;
use crate::{ArchiveCounts, OUTCOMES};
use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Histogram, Meter, MeterProvider};
use opentelemetry_sdk::metrics::SdkMeterProvider;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// One field for each metric.
#[derive(Debug)]
pub(crate) struct Instruments {
    meter: Meter,
    pub(crate) requests: Counter<u64>,
    pub(crate) refusals: Counter<u64>,
    pub(crate) degraded: Counter<u64>,
    pub(crate) uncounted: Counter<u64>,
    pub(crate) turns: Counter<u64>,
    pub(crate) tokens_in: Counter<u64>,
    pub(crate) tokens_out: Counter<u64>,
    pub(crate) masked_tokens: Counter<u64>,
    pub(crate) summary_tokens: Counter<u64>,
    pub(crate) edited: Counter<u64>,
    pub(crate) stop_hints: Counter<u64>,
    pub(crate) overflows: Counter<u64>,
    pub(crate) prunes: Counter<u64>,
    pub(crate) summaries: Counter<u64>,
    pub(crate) summary_calls: Counter<u64>,
    pub(crate) summarizer_tokens: Counter<u64>,
    pub(crate) summarizer_cost: Counter<f64>,
    pub(crate) summarizer_failures: Counter<u64>,
    pub(crate) prompt_tokens: Counter<u64>,
    pub(crate) cached_tokens: Counter<u64>,
    pub(crate) estimated_cost: Counter<f64>,
    pub(crate) cost: Counter<f64>,
    pub(crate) unpriced: Counter<u64>,
    pub(crate) overhead: Histogram<f64>,
    pub(crate) token_usage: Histogram<u64>,
    pub(crate) duration: Histogram<f64>,
    pub(crate) first_chunk: Histogram<f64>,
    pub(crate) average: Arc<Average>,
}

/// The tokens of all forwarded requests, and how many those were.
#[derive(Debug, Default)]
pub(crate) struct Average {
    tokens: AtomicU64,
    requests: AtomicU64,
}

impl Average {
    pub(crate) fn add(&self, tokens: u64) {
        self.tokens.fetch_add(tokens, Ordering::Relaxed);
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    fn value(&self) -> f64 {
        let requests = self.requests.load(Ordering::Relaxed).max(1);
        self.tokens.load(Ordering::Relaxed) as f64 / requests as f64
    }
}

/// The refusals that an operator waits for.
const REFUSALS: [&str; 6] = [
    "context_budget_exceeded",
    "max_cost_exceeded",
    "max_turns_exceeded",
    "store_unavailable",
    "upstream_timeout",
    "upstream_unreachable",
];

/// What can become of a message.
pub(crate) const EDITS: [&str; 3] = ["masked", "folded", "dropped"];

/// From ten microseconds, which is a request with nothing to do, to ten seconds, which is one that waited for a summary.
const OVERHEAD_SECONDS: [f64; 13] =
    [1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 1e-1, 1.0, 10.0];

impl Instruments {
    pub(crate) fn new(provider: &SdkMeterProvider, spans: Arc<SpanCounts>) -> Instruments {
        let meter = provider.meter("tidegate");
        let count = |name, help: &'static str| meter.u64_counter(name).with_description(help).build();
        let usd = |name, help: &'static str| meter.f64_counter(name).with_description(help).build();
        // The conventions' own edges: powers of four, and doublings of ten milliseconds.
        let tokens = (0..14).map(|power| 4_f64.powi(power)).collect();
        let seconds = || (0..14).map(|power| 0.01 * 2_f64.powi(power)).collect();
        let time = |name, help: &'static str, edges| {
            meter.f64_histogram(name).with_unit("s").with_description(help).with_boundaries(edges).build()
        };
        let instruments = Instruments {
            requests: count(metric::REQUESTS, "Requests, by how they ended."),
            refusals: count(
                metric::REFUSALS,
                "Requests that were answered with an error of our own, by its code.",
            ),
            degraded: count(
                metric::DEGRADED,
                "Requests that went without something they should have had, by reason.",
            ),
            uncounted: count(
                metric::UNCOUNTED,
                "Turns that could not be written into the counts of their conversation.",
            ),
            turns: count(metric::TURNS, "Requests that were measured and forwarded."),
            tokens_in: count(metric::TOKENS_IN, "Tokens of requests as clients sent them."),
            tokens_out: count(metric::TOKENS_OUT, "Tokens of requests as they were forwarded."),
            masked_tokens: count(metric::MASKED_TOKENS, "Tokens of observations that were masked."),
            summary_tokens: count(metric::SUMMARY_TOKENS, "Tokens of summaries in requests."),
            edited: count(
                metric::EDITED,
                "Messages that were not forwarded as they came, by what became of them.",
            ),
            stop_hints: count(
                metric::STOP_HINTS,
                "Answers that hinted at stopping, because nothing new had come for some turns.",
            ),
            overflows: count(metric::OVERFLOWS, "Requests refused because they do not fit."),
            prunes: count(metric::PRUNES, "Times that pruning was needed."),
            summaries: count(metric::SUMMARIES, "Summaries made."),
            summary_calls: count(metric::SUMMARY_CALLS, "Requests to summarizers."),
            summarizer_tokens: count(metric::SUMMARIZER_TOKENS, "Tokens that summarizers used."),
            summarizer_cost: usd(
                metric::SUMMARIZER_COST,
                "What requests to summarizers have cost in USD, where prices are known.",
            ),
            summarizer_failures: count(
                metric::SUMMARIZER_FAILURES,
                "Summaries that were wanted and could not be made, by reason.",
            ),
            prompt_tokens: count(metric::PROMPT_TOKENS, "Prompt tokens that upstreams reported."),
            cached_tokens: count(
                metric::CACHED_TOKENS,
                "Prompt tokens that came out of the provider's cache, as upstreams reported them.",
            ),
            estimated_cost: usd(
                metric::ESTIMATED_COST,
                "What requests have cost in USD, where prices are known.",
            ),
            cost: usd(
                metric::COST,
                "What requests were billed in USD, and what they would have been as clients sent them.",
            ),
            unpriced: count(metric::UNPRICED, "Requests whose cost is unknown."),
            overhead: time(
                metric::OVERHEAD,
                "What a request waited for us before it went out.",
                OVERHEAD_SECONDS.to_vec(),
            ),
            token_usage: meter
                .u64_histogram(metric::TOKEN_USAGE)
                .with_unit("{token}")
                .with_description("Tokens of a request and of its answer, as the upstream reported them.")
                .with_boundaries(tokens)
                .build(),
            duration: time(metric::OPERATION_DURATION, "How long a chat completion took.", seconds()),
            first_chunk: time(metric::FIRST_CHUNK, "How long its first byte took.", seconds()),
            average: Arc::default(),
            meter: meter.clone(),
        };
        instruments.start();
        instruments.observe(spans);
        instruments
    }

    /// Begins at zero what a route can be told apart by, so that the first time is a change that can be seen.
    pub(crate) fn announce(&self, route: &str) {
        let route = KeyValue::new(label::ROUTE, route.to_owned());
        for outcome in OUTCOMES {
            self.requests.add(0, &[route.clone(), KeyValue::new(label::OUTCOME, outcome.name())]);
        }
        let other = [route.clone(), KeyValue::new(label::MODEL, OTHER_MODEL)];
        let by_model = [
            &self.turns,
            &self.tokens_in,
            &self.tokens_out,
            &self.masked_tokens,
            &self.summary_tokens,
            &self.prompt_tokens,
            &self.cached_tokens,
        ];
        by_model.iter().for_each(|counter| counter.add(0, &other));
        self.estimated_cost.add(0.0, &other);
        self.unpriced.add(0, std::slice::from_ref(&route));
        for code in REFUSALS {
            self.refusals.add(0, &[route.clone(), KeyValue::new(label::CODE, code)]);
        }
        for edit in EDITS {
            self.edited.add(0, &[route.clone(), KeyValue::new(label::EDIT, edit)]);
        }
    }

    fn start(&self) {
        let singles = [&self.stop_hints, &self.overflows, &self.prunes, &self.summaries, &self.summary_calls];
        singles.iter().for_each(|counter| counter.add(0, &[]));
        self.summarizer_cost.add(0.0, &[]);
    }

    /// What is not counted but looked at.
    fn observe(&self, spans: Arc<SpanCounts>) {
        let average = self.average.clone();
        self.meter
            .f64_observable_gauge(metric::AVERAGE_PROMPT)
            .with_description("Tokens of a forwarded request, on average.")
            .with_callback(move |observer| observer.observe(average.value(), &[]))
            .build();
        self.meter
            .u64_observable_counter(metric::SPANS)
            .with_description(
                "Spans, by what became of them. Those that were dropped had no room to wait in.",
            )
            .with_callback(move |observer| {
                for (outcome, count) in spans.read() {
                    observer.observe(count, &[KeyValue::new(label::OUTCOME, outcome)]);
                }
            })
            .build();
        self.meter
            .u64_observable_gauge(metric::BUILD)
            .with_description("Which version runs.")
            .with_callback(|observer| {
                observer.observe(1, &[KeyValue::new(label::VERSION, env!("CARGO_PKG_VERSION"))]);
            })
            .build();
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        self.meter
            .f64_observable_gauge(metric::START)
            .with_unit("s")
            .with_description("When the process started, in seconds since 1970.")
            .with_callback(move |observer| observer.observe(started, &[]))
            .build();
        self.meter
            .u64_observable_gauge(metric::MEMORY)
            .with_unit("By")
            .with_description("The memory that the process has.")
            .with_callback(|observer| {
                if let Some(bytes) = resident() {
                    observer.observe(bytes, &[]);
                }
            })
            .build();
    }

    pub(crate) fn watch_archive(&self, counts: Arc<dyn Fn() -> ArchiveCounts + Send + Sync>) {
        let (queued, connected) = (counts.clone(), counts.clone());
        self.meter
            .u64_observable_gauge(metric::ARCHIVE_QUEUED)
            .with_description("Records that wait for the archive's database.")
            .with_callback(move |observer| observer.observe(queued().queued, &[]))
            .build();
        self.meter
            .u64_observable_gauge(metric::ARCHIVE_CONNECTED)
            .with_description("Whether the archive's database is connected.")
            .with_callback(move |observer| observer.observe(connected().connected.into(), &[]))
            .build();
        self.meter
            .u64_observable_counter(metric::ARCHIVE_RECORDS)
            .with_description("Records handed to the archive, by what became of them.")
            .with_callback(move |observer| {
                let ArchiveCounts { written, dropped, rejected, .. } = counts();
                for (outcome, count) in [("written", written), ("dropped", dropped), ("rejected", rejected)] {
                    observer.observe(count, &[KeyValue::new(label::OUTCOME, outcome)]);
                }
            })
            .build();
    }
}

/// Where the system tells.
fn resident() -> Option<u64> {
    const PAGE: u64 = 4096;
    let told = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = told.split(' ').nth(1)?.parse().ok()?;
    Some(pages * PAGE)
}
