//! Metrics about the process itself, its spans and its archive.

use crate::ArchiveCounts;
use crate::WindowFact;
use crate::names::{label, metric};
use crate::span_queue::SpanCounts;
use opentelemetry::KeyValue;
use opentelemetry::metrics::Meter;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) fn register(meter: &Meter, spans: Arc<SpanCounts>) {
    meter
        .u64_observable_counter(metric::SPANS)
        .with_description("Spans by outcome. A span is dropped if the queue is full.")
        .with_callback(move |observer| {
            for (outcome, count) in spans.read() {
                observer.observe(count, &[KeyValue::new(label::OUTCOME, outcome)]);
            }
        })
        .build();
    meter
        .u64_observable_gauge(metric::BUILD)
        .with_description("Always 1; the label is the version of this binary.")
        .with_callback(|observer| {
            observer.observe(1, &[KeyValue::new(label::VERSION, env!("CARGO_PKG_VERSION"))]);
        })
        .build();
    let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    meter
        .f64_observable_gauge(metric::START)
        .with_unit("s")
        .with_description("Start time of the process in seconds since 1970.")
        .with_callback(move |observer| observer.observe(started, &[]))
        .build();
    meter
        .u64_observable_gauge(metric::MEMORY)
        .with_unit("By")
        .with_description("Resident memory of the process.")
        .with_callback(|observer| {
            if let Some(bytes) = resident_bytes() {
                observer.observe(bytes, &[]);
            }
        })
        .build();
}

pub(crate) fn register_windows(meter: &Meter, windows: Arc<dyn Fn() -> Vec<WindowFact> + Send + Sync>) {
    meter
        .u64_observable_gauge(metric::LEARNT_WINDOW)
        .with_description("The context windows that upstreams have named.")
        .with_callback(move |observer| {
            for WindowFact { upstream, model, tokens } in windows() {
                let labels = [KeyValue::new(label::UPSTREAM, upstream), KeyValue::new(label::MODEL, model)];
                observer.observe(tokens, &labels);
            }
        })
        .build();
}

pub(crate) fn register_archive(meter: &Meter, counts: Arc<dyn Fn() -> ArchiveCounts + Send + Sync>) {
    let (queued, connected) = (counts.clone(), counts.clone());
    meter
        .u64_observable_gauge(metric::ARCHIVE_QUEUED)
        .with_description("Records waiting to be written to the archive.")
        .with_callback(move |observer| observer.observe(queued().queued, &[]))
        .build();
    meter
        .u64_observable_gauge(metric::ARCHIVE_CONNECTED)
        .with_description("Whether the archive's database is connected.")
        .with_callback(move |observer| observer.observe(connected().connected.into(), &[]))
        .build();
    meter
        .u64_observable_counter(metric::ARCHIVE_RECORDS)
        .with_description("Records for the archive by outcome.")
        .with_callback(move |observer| {
            let ArchiveCounts { written, dropped, rejected, .. } = counts();
            for (outcome, count) in [("written", written), ("dropped", dropped), ("rejected", rejected)] {
                observer.observe(count, &[KeyValue::new(label::OUTCOME, outcome)]);
            }
        })
        .build();
}

/// Returns `None` where there is no `/proc`.
fn resident_bytes() -> Option<u64> {
    const PAGE: u64 = 4096;
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split(' ').nth(1)?.parse().ok()?;
    Some(pages * PAGE)
}
