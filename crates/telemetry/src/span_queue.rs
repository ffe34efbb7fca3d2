use opentelemetry::Context;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Span, SpanData, SpanProcessor};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// A bounded queue of spans that wait to be exported. While it is full, spans are dropped and counted, so that a collector that is
/// slow or unreachable costs a limited amount of memory and no time.
#[derive(Debug)]
pub(crate) struct SpanQueue {
    waiting: Mutex<Vec<SpanData>>,
    capacity: usize,
    batch_size: usize,
    /// Notified once a batch is complete. Notifying at every span would wake the exporter's thread each time.
    has_batch: Notify,
    pub(crate) counts: Arc<SpanCounts>,
}

/// Spans by outcome.
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

impl SpanQueue {
    pub(crate) fn new(capacity: usize, batch_size: usize, counts: Arc<SpanCounts>) -> SpanQueue {
        let batch_size = batch_size.clamp(1, capacity.max(1));
        SpanQueue { waiting: Mutex::default(), capacity, batch_size, has_batch: Notify::new(), counts }
    }

    /// Waits until a batch is complete.
    pub(crate) async fn has_batch(&self) {
        self.has_batch.notified().await;
    }

    /// Takes the oldest spans, at most one batch.
    pub(crate) fn take(&self) -> Vec<SpanData> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let batch = waiting.len().min(self.batch_size);
        waiting.drain(..batch).collect()
    }
}

/// Adds spans to the queue as they end.
#[derive(Debug)]
pub(crate) struct QueueProcessor(pub(crate) Arc<SpanQueue>);

impl SpanProcessor for QueueProcessor {
    fn on_start(&self, _span: &mut Span, _cx: &Context) {}

    fn on_end(&self, span: SpanData) {
        if !span.span_context.is_sampled() {
            return;
        }
        let queue = &self.0;
        let mut waiting = queue.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= queue.capacity {
            queue.counts.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        waiting.push(span);
        if waiting.len() == queue.batch_size {
            queue.has_batch.notify_one();
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.0.has_batch.notify_one();
        Ok(())
    }

    fn shutdown_with_timeout(&self, _timeout: Duration) -> OTelSdkResult {
        self.force_flush()
    }
}
