use crate::conventions::{BoundConventions, Conventions};
use crate::counts::ModelCounts;
use crate::histograms::Histograms;
use crate::names::label;
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
    pub(crate) overhead: BoundHistogram<f64>,
    pub(crate) upstream_latency: BoundHistogram<f64>,
    pub(crate) conventions: BoundConventions,
}

impl Bound {
    pub(crate) fn new(
        histograms: &Histograms,
        conventions: &Conventions,
        counts: Arc<ModelCounts>,
        provider: &'static str,
    ) -> Bound {
        let route = [KeyValue::new(label::ROUTE, counts.route.clone())];
        Bound {
            provider,
            overhead: histograms.overhead.bind(&route),
            upstream_latency: histograms.upstream_latency.bind(&route),
            conventions: conventions.bind(&counts.model, provider),
            counts,
        }
    }
}
