//! The measurements of a run, as text or JSON.

use std::time::Duration;

use hdrhistogram::Histogram;

#[derive(Debug)]
pub(crate) struct Report {
    /// In nanoseconds.
    latencies: Histogram<u64>,
    errors: u64,
    events: u64,
    seconds: f64,
}

impl Report {
    pub(crate) fn new() -> Self {
        // Three digits are precise to 0.1 %, and this histogram has no upper bound.
        let latencies = Histogram::new(3).unwrap_or_else(|error| panic!("three digits are valid: {error}"));
        Report { latencies, errors: 0, events: 0, seconds: 0.0 }
    }

    /// A status other than 200 is an error: a proxy that refuses quickly must not look fast.
    pub(crate) fn answer(&mut self, status: u16, events: usize, latency: Duration) {
        if status == 200 {
            self.events += events as u64;
            self.latencies += u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        } else {
            self.errors += 1;
        }
    }

    pub(crate) fn error(&mut self) {
        self.errors += 1;
    }

    pub(crate) fn merge(&mut self, other: &Report) {
        self.latencies += &other.latencies;
        self.errors += other.errors;
        self.events += other.events;
        self.seconds = self.seconds.max(other.seconds);
    }

    pub(crate) fn finished_after(&mut self, time: Duration) {
        self.seconds = time.as_secs_f64();
    }

    pub(crate) fn json(&self) -> String {
        serde_json::json!({
            "requests": self.latencies.len(), "errors": self.errors, "events": self.events,
            "seconds": self.seconds, "requests_per_second": self.rate(),
            "p50_us": self.micros(0.50), "p90_us": self.micros(0.90), "p99_us": self.micros(0.99),
        })
        .to_string()
    }

    pub(crate) fn text(&self) -> String {
        format!(
            "{} requests in {:.1} s, {} errors, {} events: {:.0} requests/s, p50 {:.0} µs, p90 {:.0} µs, p99 {:.0} µs",
            self.latencies.len(),
            self.seconds,
            self.errors,
            self.events,
            self.rate(),
            self.micros(0.50),
            self.micros(0.90),
            self.micros(0.99),
        )
    }

    fn rate(&self) -> f64 {
        self.latencies.len() as f64 / self.seconds
    }

    fn micros(&self, quantile: f64) -> f64 {
        self.latencies.value_at_quantile(quantile) as f64 / 1000.0
    }
}
