use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::reader::MetricReader;
use opentelemetry_sdk::metrics::{InstrumentKind, ManualReader, Pipeline, Temporality};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Collects metrics on demand: for `/metrics`, and for the OTLP exporter. Both use the same reader, because the SDK records each
/// measurement of a histogram once for each reader, and lets each reader overwrite what another is about to collect from an
/// observable counter.
#[derive(Clone, Debug)]
pub(crate) struct SharedReader(Arc<ManualReader>);

impl SharedReader {
    /// Values count from the start of the process, which is what Prometheus expects.
    pub(crate) fn cumulative() -> SharedReader {
        SharedReader(Arc::new(ManualReader::builder().with_temporality(Temporality::Cumulative).build()))
    }

    pub(crate) fn collect(&self) -> ResourceMetrics {
        let mut read = ResourceMetrics::default();
        // This fails only before the provider is built and after it is dropped. There is nothing to read then.
        let _ = self.0.collect(&mut read);
        read
    }
}

impl MetricReader for SharedReader {
    fn register_pipeline(&self, pipeline: Weak<Pipeline>) {
        self.0.register_pipeline(pipeline);
    }

    fn collect(&self, read: &mut ResourceMetrics) -> OTelSdkResult {
        self.0.collect(read)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.0.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.0.shutdown_with_timeout(timeout)
    }

    fn temporality(&self, kind: InstrumentKind) -> Temporality {
        self.0.temporality(kind)
    }
}
