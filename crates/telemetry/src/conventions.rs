//! The metrics of OpenTelemetry's conventions for generative models, under their old names, their new ones, or both.

use crate::histograms::doublings;
use crate::labels::CHAT;
use crate::names::{attribute, metric};
use crate::{Answered, Semconv};
use opentelemetry::KeyValue;
use opentelemetry::metrics::{BoundCounter, BoundHistogram, Counter, Histogram, Meter};
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct Conventions {
    pub(crate) semconv: Semconv,
    /// One for each generation.
    times: Vec<Times>,
    token_usage: Option<Histogram<u64>>,
    usage: Option<Usage>,
}

#[derive(Debug)]
struct Times {
    duration: Histogram<f64>,
    first_chunk: Histogram<f64>,
}

/// The new metrics of tokens: totals, and the sizes of single requests and answers.
#[derive(Debug)]
struct Usage {
    totals: [Counter<u64>; 5],
    sizes: [Histogram<u64>; 2],
}

/// The new totals, and what they count.
const TOTALS: [(&str, &str); 5] = [
    (metric::INPUT_TOKENS, "Prompt tokens, as upstreams reported them, cached ones included."),
    (metric::OUTPUT_TOKENS, "Tokens of answers, as upstreams reported them."),
    (metric::CACHE_READ_TOKENS, "Prompt tokens that upstreams read from their cache."),
    (metric::CACHE_WRITE_TOKENS, "Prompt tokens that upstreams wrote to their cache."),
    (metric::REASONING_TOKENS, "Tokens of answers that were used for reasoning."),
];

impl Conventions {
    pub(crate) fn new(meter: &Meter, semconv: Semconv) -> Conventions {
        let times = |duration: &'static str, first_chunk: &'static str| {
            let time = |name, help: &'static str| {
                let histogram = meter.f64_histogram(name).with_unit("s").with_description(help);
                histogram.with_boundaries(doublings()).build()
            };
            Times {
                duration: time(duration, "Duration of a chat completion."),
                first_chunk: time(first_chunk, "Time to the first byte of a chat completion's answer."),
            }
        };
        let old = semconv.has_old().then(|| times(metric::OLD_DURATION, metric::OLD_FIRST_CHUNK));
        let new = semconv.has_new().then(|| times(metric::DURATION, metric::FIRST_CHUNK));
        Conventions {
            semconv,
            times: old.into_iter().chain(new).collect(),
            token_usage: semconv.has_old().then(|| {
                let help = "Tokens of a request and of its answer, as the upstream reported them.";
                sizes(meter, metric::OLD_TOKEN_USAGE, help)
            }),
            usage: semconv.has_new().then(|| Usage {
                totals: TOTALS.map(|(name, help)| {
                    meter.u64_counter(name).with_unit("{token}").with_description(help).build()
                }),
                sizes: [
                    sizes(
                        meter,
                        metric::INPUT_SIZE,
                        "Prompt tokens of a request, as the upstream reported them.",
                    ),
                    sizes(meter, metric::OUTPUT_SIZE, "Tokens of an answer, as the upstream reported them."),
                ],
            }),
        }
    }

    pub(crate) fn bind(&self, model: &str, provider: &'static str) -> BoundConventions {
        let labels = [
            KeyValue::new(attribute::OPERATION, CHAT),
            KeyValue::new(attribute::PROVIDER, provider),
            KeyValue::new(attribute::REQUEST_MODEL, model.to_owned()),
        ];
        let bind_times = |times: &Times| BoundTimes {
            duration: times.duration.bind(&labels),
            failed: times.duration.clone(),
            first_chunk: times.first_chunk.bind(&labels),
        };
        let kind = |kind: &'static str| with(&labels, KeyValue::new(attribute::TOKEN_TYPE, kind));
        BoundConventions {
            times: self.times.iter().map(bind_times).collect(),
            token_usage: self
                .token_usage
                .as_ref()
                .map(|usage| ["input", "output"].map(|side| usage.bind(&kind(side)))),
            usage: self.usage.as_ref().map(|Usage { totals, sizes }| BoundUsage {
                totals: totals.each_ref().map(|total| total.bind(&labels)),
                sizes: sizes.each_ref().map(|size| size.bind(&labels)),
            }),
            labels,
        }
    }
}

fn sizes(meter: &Meter, name: &'static str, help: &'static str) -> Histogram<u64> {
    // The boundaries that the conventions ask for.
    let powers_of_four = (0..14).map(|power| 4_f64.powi(power)).collect();
    let histogram = meter.u64_histogram(name).with_unit("{token}").with_description(help);
    histogram.with_boundaries(powers_of_four).build()
}

/// The metrics of one model at one provider.
#[derive(Debug)]
pub(crate) struct BoundConventions {
    /// The labels that the conventions ask for.
    labels: [KeyValue; 3],
    times: Vec<BoundTimes>,
    /// Input and output tokens.
    token_usage: Option<[BoundHistogram<u64>; 2]>,
    usage: Option<BoundUsage>,
}

#[derive(Debug)]
struct BoundTimes {
    duration: BoundHistogram<f64>,
    /// The same without labels, for a request that failed: it has one more.
    failed: Histogram<f64>,
    first_chunk: BoundHistogram<f64>,
}

#[derive(Debug)]
struct BoundUsage {
    totals: [BoundCounter<u64>; 5],
    sizes: [BoundHistogram<u64>; 2],
}

impl BoundConventions {
    pub(crate) fn ended(&self, took: Duration, first: Option<Duration>, error: Option<String>) {
        let seconds = took.as_secs_f64();
        let labels = error.map(|error| with(&self.labels, KeyValue::new(attribute::ERROR_TYPE, error)));
        for times in &self.times {
            match &labels {
                Some(labels) => times.failed.record(seconds, labels),
                None => times.duration.record(seconds),
            }
            if let Some(first) = first {
                times.first_chunk.record(first.as_secs_f64());
            }
        }
    }

    pub(crate) fn answered(&self, answered: &Answered) {
        let sizes = [answered.prompt_tokens, answered.completion_tokens];
        let of_generations = [self.token_usage.as_ref(), self.usage.as_ref().map(|usage| &usage.sizes)];
        for histograms in of_generations.into_iter().flatten() {
            for (histogram, tokens) in histograms.iter().zip(sizes) {
                if let Some(tokens) = tokens {
                    histogram.record(tokens);
                }
            }
        }
        let Some(BoundUsage { totals, .. }) = &self.usage else { return };
        let [input, output] = sizes;
        let Answered { cached_tokens, cache_write_tokens, reasoning_tokens, .. } = *answered;
        for (total, tokens) in
            totals.iter().zip([input, output, cached_tokens, cache_write_tokens, reasoning_tokens])
        {
            if let Some(tokens) = tokens {
                total.add(tokens);
            }
        }
    }
}

fn with(labels: &[KeyValue], more: KeyValue) -> Vec<KeyValue> {
    labels.iter().cloned().chain([more]).collect()
}
