use crate::export::Sender;
use crate::otlp::{Otlp, Plan};
use crate::queue::{Inlet, Queue, SpanCounts};
use crate::reader::SharedReader;
use crate::{Metrics, journey};
use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use std::sync::Arc;
use tracing_subscriber::Layer;
use tracing_subscriber::registry::Registry;

/// Spans, metrics, and whoever sends them.
#[derive(Debug)]
pub struct Telemetry {
    pub metrics: Arc<Metrics>,
    tracing: Option<SdkTracerProvider>,
    sender: Option<Sender>,
    /// What was asked for and is not done. Telemetry never keeps anything from starting.
    pub warnings: Vec<String>,
}

/// A listener for the process's spans.
pub type SpanLayer = Box<dyn Layer<Registry> + Send + Sync>;

impl Telemetry {
    /// Begins to count, and to send what is asked for. `env` has the standard `OTEL_*` variables.
    #[must_use]
    pub fn start(otlp: &Otlp, env: &dyn Fn(&str) -> Option<String>) -> Telemetry {
        let mut plan = otlp.plan(env);
        let resource = resource(&plan);
        let counts = Arc::<SpanCounts>::default();
        let queue =
            plan.traces.is_some().then(|| Arc::new(Queue::new(plan.room, plan.batch, counts.clone())));
        let reader = SharedReader::cumulative();
        let is_on = queue.is_some() || plan.metrics.is_some();
        let sender = is_on.then(|| Sender::start(&plan, queue.clone(), reader.clone(), &resource));
        let mut warnings = std::mem::take(&mut plan.warnings);
        let sender = match sender {
            Some(Ok(sender)) => Some(sender),
            Some(Err(error)) => {
                warnings.push(format!("no telemetry is sent: {error}"));
                None
            }
            None => None,
        };
        let queue = queue.filter(|_| sender.is_some());
        let tracing = queue.map(|queue| {
            let builder = SdkTracerProvider::builder().with_resource(resource.clone());
            let builder = match plan.sample_ratio {
                Some(ratio) => {
                    let root = Sampler::TraceIdRatioBased(ratio);
                    builder.with_sampler(Sampler::ParentBased(Box::new(root)))
                }
                // The variables of the SDK say how.
                None => builder,
            };
            builder.with_span_processor(Inlet(queue)).build()
        });
        Telemetry { metrics: Arc::new(Metrics::new(resource, reader, counts)), tracing, sender, warnings }
    }

    /// What hears of spans; nothing where none are sent, and then they cost nothing.
    #[must_use]
    pub fn layer(&self) -> Option<SpanLayer> {
        self.tracing.as_ref().map(|tracing| journey::layer(tracing.tracer("tidegate")))
    }

    /// Sends what is left, for a few seconds at most.
    pub fn shut_down(self) {
        if let Some(sender) = self.sender {
            sender.shut_down();
        }
    }
}

fn resource(plan: &Plan) -> Resource {
    let builder =
        Resource::builder().with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
    match &plan.service_name {
        Some(name) => builder.with_service_name(name.clone()).build(),
        None => builder.build(),
    }
}
