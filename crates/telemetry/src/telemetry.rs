use crate::export::Exporter;
use crate::otlp::{ExportSettings, Otlp};
use crate::reader::SharedReader;
use crate::span_queue::{QueueProcessor, SpanCounts, SpanQueue};
use crate::{Metrics, spans};
use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use std::sync::Arc;
use tracing_subscriber::Layer;
use tracing_subscriber::registry::Registry;

/// The process's metrics and spans, and their exporter.
#[derive(Debug)]
pub struct Telemetry {
    pub metrics: Arc<Metrics>,
    tracing: Option<SdkTracerProvider>,
    exporter: Option<Exporter>,
    /// Settings that could not be applied. Telemetry never prevents the process from starting.
    pub warnings: Vec<String>,
}

/// A `tracing` layer for the process's spans.
pub type SpanLayer = Box<dyn Layer<Registry> + Send + Sync>;

impl Telemetry {
    /// Starts the exporter if there is something to export. `env` looks up the standard `OTEL_*` variables.
    #[must_use]
    pub fn start(otlp: &Otlp, env: &dyn Fn(&str) -> Option<String>) -> Telemetry {
        let mut settings = otlp.resolve(env);
        let resource = resource(&settings);
        let counts = Arc::<SpanCounts>::default();
        let queue = settings
            .traces
            .is_some()
            .then(|| Arc::new(SpanQueue::new(settings.queue_size, settings.batch_size, counts.clone())));
        let reader = SharedReader::cumulative();
        let is_enabled = queue.is_some() || settings.metrics.is_some();
        let exporter =
            is_enabled.then(|| Exporter::start(&settings, queue.clone(), reader.clone(), &resource));
        let mut warnings = std::mem::take(&mut settings.warnings);
        let exporter = match exporter {
            Some(Ok(exporter)) => Some(exporter),
            Some(Err(error)) => {
                warnings.push(format!("telemetry is not exported: {error}"));
                None
            }
            None => None,
        };
        let queue = queue.filter(|_| exporter.is_some());
        let tracing = queue.map(|queue| {
            let builder = SdkTracerProvider::builder().with_resource(resource.clone());
            let builder = match settings.sample_ratio {
                Some(ratio) => {
                    let root = Sampler::TraceIdRatioBased(ratio);
                    builder.with_sampler(Sampler::ParentBased(Box::new(root)))
                }
                // The SDK reads its sampler from the variables.
                None => builder,
            };
            builder.with_span_processor(QueueProcessor(queue)).build()
        });
        Telemetry {
            metrics: Arc::new(Metrics::new(resource, reader, counts, otlp.semconv)),
            tracing,
            exporter,
            warnings,
        }
    }

    /// The layer that exports spans. Returns `None` if spans are not exported; they are disabled then.
    #[must_use]
    pub fn layer(&self) -> Option<SpanLayer> {
        self.tracing.as_ref().map(|tracing| spans::layer(tracing.tracer("tidegate")))
    }

    /// Exports what is left, for a few seconds at most.
    pub fn shut_down(self) {
        if let Some(exporter) = self.exporter {
            exporter.shut_down();
        }
    }
}

fn resource(settings: &ExportSettings) -> Resource {
    let builder =
        Resource::builder().with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
    match &settings.service_name {
        Some(name) => builder.with_service_name(name.clone()).build(),
        None => builder.build(),
    }
}
