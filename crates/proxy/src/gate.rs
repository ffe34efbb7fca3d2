use crate::assess::model_table;
use crate::identify::Secret;
use crate::summarize::own_key;
use crate::upstream::Prepared;
use arc_swap::ArcSwap;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use thiserror::Error;
use tidegate_archive::Archive;
use tidegate_config::{Settings, Summarizer, Upstream};
use tidegate_engine::Timestamp;
use tidegate_store::{Conversations, wall_clock};
use tidegate_telemetry::{ArchiveCounts, Format, Lines, Metrics, Tallied};
use tidegate_tokens::{Calibration, ModelTable};
use tidegate_wire::Reader;

/// What all workers share: the configuration in force, what has been learnt, and where the log goes.
#[derive(Debug)]
pub struct Gate {
    current: ArcSwap<Snapshot>,
    pub(crate) lines: Lines,
    pub(crate) format: Format,
    pub(crate) reader: Reader,
    pub(crate) calibration: Calibration,
    pub(crate) conversations: Arc<Conversations>,
    pub(crate) archive: Option<Archive>,
    pub(crate) secret: Secret,
    pub(crate) metrics: Arc<Metrics>,
}

/// One configuration with what was made ready for it. A request keeps the one that it began with.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) settings: Arc<Settings>,
    pub(crate) models: ModelTable,
    upstreams: BTreeMap<String, Arc<Prepared>>,
}

/// Why a configuration that is valid in itself cannot be put in force.
#[derive(Debug, Error)]
pub enum SetupError {
    #[error("`upstreams.{upstream}.api_key_env` names `{variable}`, which is not set")]
    MissingKey { upstream: String, variable: String },
    #[error("the key in `{variable}` for `upstreams.{upstream}` has characters that a header cannot carry")]
    UnusableKey { upstream: String, variable: String },
    #[error("cannot read `{path}`: {reason}")]
    Certificate { path: PathBuf, reason: String },
    #[error("`{authority}` of `upstreams.{upstream}` is not a host")]
    Authority { upstream: String, authority: String },
    #[error("{0}")]
    SummarizerKey(String),
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
}

impl Gate {
    pub fn new(
        settings: Settings,
        conversations: Arc<Conversations>,
        secret: Secret,
        lines: Lines,
        format: Format,
    ) -> Result<Gate, SetupError> {
        let snapshot = Snapshot::prepare(settings, None)?;
        let metrics = Arc::<Metrics>::default();
        snapshot.announce(&metrics);
        Ok(Gate {
            current: ArcSwap::from_pointee(snapshot),
            lines,
            format,
            reader: Reader::default(),
            calibration: Calibration::new(),
            conversations,
            archive: None,
            secret,
            metrics,
        })
    }

    /// Counts here instead of by itself.
    #[must_use]
    pub fn with_metrics(self, metrics: Arc<Metrics>) -> Gate {
        self.snapshot().announce(&metrics);
        Gate { metrics, ..self }
    }

    /// Writes everything into an archive too.
    #[must_use]
    pub fn with_archive(self, archive: Option<Archive>) -> Gate {
        if let Some(archive) = archive.clone() {
            self.metrics.watch_archive(move || {
                let stats = archive.stats();
                ArchiveCounts {
                    queued: stats.queued as u64,
                    written: stats.written,
                    dropped: stats.dropped,
                    rejected: stats.rejected,
                    connected: stats.connected,
                }
            });
        }
        Gate { archive, ..self }
    }

    /// Puts another configuration in force. Requests that are under way end under the old one; connections to upstreams
    /// that did not change are kept. The listeners and the workers stay what they were.
    pub fn reload(&self, settings: Settings) -> Result<(), SetupError> {
        let before = self.current.load();
        let snapshot = Snapshot::prepare(settings, Some(&before))?;
        snapshot.announce(&self.metrics);
        self.current.store(Arc::new(snapshot));
        Ok(())
    }

    /// The time that all processes share, because they share what they remember.
    pub(crate) fn now() -> Timestamp {
        Timestamp(wall_clock())
    }

    /// What has been counted since the start, in the text format of Prometheus.
    pub fn metrics_text(&self) -> String {
        self.metrics.text()
    }

    /// The same as numbers, by route and model.
    pub fn tallies(&self) -> Vec<Tallied> {
        self.metrics.tallies()
    }

    /// The configuration in force.
    pub fn settings(&self) -> Arc<Settings> {
        self.current.load().settings.clone()
    }

    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }
}

impl Snapshot {
    fn prepare(settings: Settings, before: Option<&Snapshot>) -> Result<Snapshot, SetupError> {
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

    /// Makes its routes known to whoever counts.
    fn announce(&self, metrics: &Metrics) {
        self.settings.routes.iter().for_each(|route| metrics.announce(&route.name));
    }

    /// Everything that is needed to talk to `upstream`.
    pub(crate) fn prepared(&self, upstream: &Upstream) -> &Arc<Prepared> {
        // The settings name no upstream that they do not define, and all of those were prepared.
        &self.upstreams[&upstream.name]
    }

    /// Where requests go that no route wants.
    pub(crate) fn default_upstream(&self) -> &Arc<Prepared> {
        // The settings always define it.
        &self.upstreams["default"]
    }
}
