use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::reader::MetricReader;
use opentelemetry_sdk::metrics::{InstrumentKind, ManualReader, Pipeline, Temporality};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Reads all instruments whenever somebody asks. The provider has one handle on it and whoever asks another.
#[derive(Clone, Debug)]
pub(crate) struct SharedReader(Arc<ManualReader>);

impl SharedReader {
    /// Since the start of the process, which is all that Prometheus understands.
    pub(crate) fn cumulative() -> SharedReader {
        SharedReader::with(Temporality::Cumulative)
    }

    pub(crate) fn with(temporality: Temporality) -> SharedReader {
        SharedReader(Arc::new(ManualReader::builder().with_temporality(temporality).build()))
    }

    pub(crate) fn collect(&self) -> ResourceMetrics {
        let mut read = ResourceMetrics::default();
        // It fails only after the provider has ended, and then there is nothing to read.
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
