use opentelemetry::Context;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Span, SpanData, SpanProcessor};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Spans that wait to be sent. There is room for so many; the next ones are dropped and counted, so that a collector that is away
/// or slow costs a bounded amount of memory and no time.
#[derive(Debug)]
pub(crate) struct Queue {
    waiting: Mutex<Vec<SpanData>>,
    room: usize,
    batch: usize,
    /// Told when there is a batch, and not at every span: that would wake the sender's thread for each.
    enough: Notify,
    pub(crate) counts: Arc<SpanCounts>,
}

/// What became of spans.
#[derive(Debug, Default)]
pub(crate) struct SpanCounts {
    exported: AtomicU64,
    dropped: AtomicU64,
    failed: AtomicU64,
}

impl SpanCounts {
    pub(crate) fn read(&self) -> [(&'static str, u64); 3] {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        [
            ("exported", count(&self.exported)),
            ("dropped", count(&self.dropped)),
            ("failed", count(&self.failed)),
        ]
    }

    pub(crate) fn exported(&self, spans: usize) {
        self.exported.fetch_add(spans as u64, Ordering::Relaxed);
    }

    pub(crate) fn failed(&self, spans: usize) {
        self.failed.fetch_add(spans as u64, Ordering::Relaxed);
    }
}

impl Queue {
    pub(crate) fn new(room: usize, batch: usize, counts: Arc<SpanCounts>) -> Queue {
        let batch = batch.clamp(1, room.max(1));
        Queue { waiting: Mutex::default(), room, batch, enough: Notify::new(), counts }
    }

    /// Returns when there is enough for a batch.
    pub(crate) async fn enough(&self) {
        self.enough.notified().await;
    }

    /// The oldest spans, at most one batch of them.
    pub(crate) fn take(&self) -> Vec<SpanData> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let most = waiting.len().min(self.batch);
        waiting.drain(..most).collect()
    }
}

/// The end of the queue that the tracer has.
#[derive(Debug)]
pub(crate) struct Inlet(pub(crate) Arc<Queue>);

impl SpanProcessor for Inlet {
    fn on_start(&self, _span: &mut Span, _cx: &Context) {}

    fn on_end(&self, span: SpanData) {
        if !span.span_context.is_sampled() {
            return;
        }
        let queue = &self.0;
        let mut waiting = queue.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= queue.room {
            queue.counts.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        waiting.push(span);
        if waiting.len() == queue.batch {
            queue.enough.notify_one();
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.0.enough.notify_one();
        Ok(())
    }

    fn shutdown_with_timeout(&self, _timeout: Duration) -> OTelSdkResult {
        self.force_flush()
    }
}
