use crate::names::metric;
use opentelemetry::metrics::{Histogram, Meter};

#[derive(Debug)]
pub(crate) struct Histograms {
    pub(crate) overhead: Histogram<f64>,
    pub(crate) upstream_latency: Histogram<f64>,
    pub(crate) token_usage: Histogram<u64>,
    pub(crate) duration: Histogram<f64>,
    pub(crate) first_chunk: Histogram<f64>,
}

/// From ten microseconds, for a request that is passed through, to ten seconds, for one that waited for a summary.
const OVERHEAD_SECONDS: [f64; 13] =
    [1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 1e-1, 1.0, 10.0];

impl Histograms {
    pub(crate) fn new(meter: &Meter) -> Histograms {
        // The boundaries that OpenTelemetry's conventions ask for: powers of four, and doublings of ten milliseconds.
        let tokens = (0..14).map(|power| 4_f64.powi(power)).collect();
        let seconds = || (0..14).map(|power| 0.01 * 2_f64.powi(power)).collect();
        let time = |name, help: &'static str, bounds| {
            meter.f64_histogram(name).with_unit("s").with_description(help).with_boundaries(bounds).build()
        };
        Histograms {
            overhead: time(
                metric::OVERHEAD,
                "Time that Tidegate took before it forwarded a request.",
                OVERHEAD_SECONDS.to_vec(),
            ),
            upstream_latency: time(
                metric::UPSTREAM_LATENCY,
                "Time between forwarding a chat completion and the head of its answer.",
                seconds(),
            ),
            token_usage: meter
                .u64_histogram(metric::TOKEN_USAGE)
                .with_unit("{token}")
                .with_description("Tokens of a request and of its answer, as the upstream reported them.")
                .with_boundaries(tokens)
                .build(),
            duration: time(metric::OPERATION_DURATION, "Duration of a chat completion.", seconds()),
            first_chunk: time(
                metric::FIRST_CHUNK,
                "Time to the first byte of a chat completion's answer.",
                seconds(),
            ),
        }
    }
}
