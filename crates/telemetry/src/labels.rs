use crate::counts::ModelCounts;
use crate::histograms::Histograms;
use crate::names::{attribute, label};
use opentelemetry::KeyValue;
use opentelemetry::metrics::BoundHistogram;
use std::sync::Arc;

/// The route and model that a request is counted under. Their number is limited, whatever conversations, models and paths clients
/// use. The counts and histograms of a route and model are looked up once, not for each request.
#[derive(Clone, Debug)]
pub struct Labels(pub(crate) Arc<Bound>);

/// The label of every model that is not in the model table.
pub const OTHER_MODEL: &str = "other";

/// The only operation that is intercepted.
pub(crate) const CHAT: &str = "chat";

/// The counts and histograms of one route and model.
#[derive(Debug)]
pub(crate) struct Bound {
    pub(crate) provider: &'static str,
    pub(crate) counts: Arc<ModelCounts>,
    /// The labels that OpenTelemetry's conventions for generative models ask for.
    conventional: [KeyValue; 3],
    pub(crate) overhead: BoundHistogram<f64>,
    pub(crate) upstream_latency: BoundHistogram<f64>,
    /// Input and output tokens.
    pub(crate) token_usage: [BoundHistogram<u64>; 2],
    pub(crate) duration: BoundHistogram<f64>,
    pub(crate) first_chunk: BoundHistogram<f64>,
}

impl Bound {
    pub(crate) fn new(histograms: &Histograms, counts: Arc<ModelCounts>, provider: &'static str) -> Bound {
        let conventional = [
            KeyValue::new(attribute::OPERATION, CHAT),
            KeyValue::new(attribute::PROVIDER, provider),
            KeyValue::new(attribute::REQUEST_MODEL, counts.model.clone()),
        ];
        let token_usage = ["input", "output"].map(|kind| {
            let kind = KeyValue::new(attribute::TOKEN_TYPE, kind);
            histograms.token_usage.bind(&with(&conventional, kind))
        });
        let route = [KeyValue::new(label::ROUTE, counts.route.clone())];
        Bound {
            provider,
            overhead: histograms.overhead.bind(&route),
            upstream_latency: histograms.upstream_latency.bind(&route),
            token_usage,
            duration: histograms.duration.bind(&conventional),
            first_chunk: histograms.first_chunk.bind(&conventional),
            counts,
            conventional,
        }
    }

    /// The conventional labels and one more.
    pub(crate) fn with(&self, more: KeyValue) -> Vec<KeyValue> {
        with(&self.conventional, more)
    }
}

fn with(labels: &[KeyValue], more: KeyValue) -> Vec<KeyValue> {
    labels.iter().cloned().chain([more]).collect()
}
