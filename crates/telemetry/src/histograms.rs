use crate::names::metric;
use opentelemetry::metrics::{Histogram, Meter};

#[derive(Debug)]
pub(crate) struct Histograms {
    pub(crate) overhead: Histogram<f64>,
    pub(crate) upstream_latency: Histogram<f64>,
}

/// From ten microseconds, for a request that is passed through, to ten seconds, for one that waited for a summary.
const OVERHEAD_SECONDS: [f64; 13] =
    [1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 1e-1, 1.0, 10.0];

/// The boundaries that OpenTelemetry's conventions ask for: doublings of ten milliseconds.
pub(crate) fn doublings() -> Vec<f64> {
    (0..14).map(|power| 0.01 * 2_f64.powi(power)).collect()
}

impl Histograms {
    pub(crate) fn new(meter: &Meter) -> Histograms {
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
                doublings(),
            ),
        }
    }
}
