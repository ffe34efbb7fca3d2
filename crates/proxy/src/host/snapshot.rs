use crate::host::summarize::key::own_key;
use crate::transport::error::TransportError;
use crate::transport::upstream::Prepared;
use std::collections::BTreeMap;
use std::sync::Arc;
use thiserror::Error;
use tidegate_config::{Settings, Summarizer, Upstream};
use tidegate_context::model_table;
use tidegate_telemetry::Metrics;
use tidegate_tokens::ModelTable;

/// One configuration with everything prepared for it. A request uses the snapshot that it started with.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) settings: Arc<Settings>,
    pub(crate) models: ModelTable,
    upstreams: BTreeMap<String, Arc<Prepared>>,
}

/// Why a valid configuration cannot be applied.
#[derive(Debug, Error)]
pub enum SetupError {
    #[error(transparent)]
    Transport(#[from] TransportError),
    #[error("{0}")]
    SummarizerKey(String),
    #[error("cannot start the threads for heavy work: {0}")]
    Threads(#[from] std::io::Error),
}

impl Snapshot {
    pub(super) fn prepare(settings: Settings, before: Option<&Snapshot>) -> Result<Snapshot, SetupError> {
        let mut upstreams = BTreeMap::new();
        for (name, upstream) in &settings.upstreams {
            let fresh = Prepared::new(upstream)?;
            let kept =
                before.and_then(|before| before.upstreams.get(name)).filter(|kept| kept.same_as(&fresh));
            upstreams.insert(name.clone(), kept.cloned().unwrap_or_else(|| Arc::new(fresh)));
        }
        for summarizer in settings.summarizers.values() {
            if let Summarizer::Llm(llm) = summarizer {
                own_key(llm).map_err(|error| SetupError::SummarizerKey(error.to_string()))?;
            }
        }
        let models = model_table(&settings.models);
        Ok(Snapshot { settings: Arc::new(settings), models, upstreams })
    }

    /// Announces its routes to the metrics.
    pub(super) fn announce(&self, metrics: &Metrics) {
        self.settings.routes.iter().for_each(|route| metrics.announce(&route.name));
    }

    /// The prepared form of `upstream`.
    pub(crate) fn prepared(&self, upstream: &Upstream) -> &Arc<Prepared> {
        // The settings name no upstream that they do not define, and all of those were prepared.
        &self.upstreams[&upstream.name]
    }

    /// The upstream of requests that match no route.
    pub(crate) fn default_upstream(&self) -> &Arc<Prepared> {
        // The settings always define it.
        &self.upstreams["default"]
    }
}
