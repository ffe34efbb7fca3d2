use crate::host::cache_sizes::CacheSizes;
use crate::host::calibrations::Calibrations;
use crate::host::heavy::HeavyPool;
use crate::host::identity::Secret;
use crate::host::snapshot::{SetupError, Snapshot};
use crate::host::summary_limits::SummaryLimits;
use crate::host::windows::LearntWindows;
use crate::observe::request::Sinks;
use crate::observe::spans::provider_of;
use crate::transport::overload::Overload;
use crate::transport::tls;
use arc_swap::ArcSwap;
use std::sync::Arc;
use tidegate_archive::Archive;
use tidegate_config::{Route, Settings};
use tidegate_engine::Timestamp;
use tidegate_store::{Conversations, wall_clock};
use tidegate_telemetry::{
    ArchiveCounts, Format, Labels, Load, LogSink, Metrics, ModelTally, OTHER_MODEL, WindowFact,
};
use tidegate_wire::{Dialect, Reader};

/// What all workers share: the configuration in force, what has been learnt, and where requests are reported.
#[derive(Debug)]
pub struct Gateway {
    current: ArcSwap<Snapshot>,
    pub(crate) sinks: Arc<Sinks>,
    pub(crate) reader: Reader,
    pub(crate) calibrations: Calibrations,
    pub(crate) windows: LearntWindows,
    pub(crate) conversations: Arc<Conversations>,
    pub(crate) archive: Option<Archive>,
    pub(crate) secret: Secret,
    pub(crate) overload: Arc<Overload>,
    pub(crate) heavy: HeavyPool,
    pub(crate) summaries: SummaryLimits,
}

impl Gateway {
    pub fn new(
        settings: Settings,
        conversations: Arc<Conversations>,
        secret: Secret,
        lines: LogSink,
        format: Format,
    ) -> Result<Gateway, SetupError> {
        let snapshot = Snapshot::prepare(settings, None)?;
        let overload = Overload::new(&snapshot.settings.server);
        let heavy = HeavyPool::start()?;
        let metrics = Arc::<Metrics>::default();
        snapshot.announce(&metrics);
        let sinks = Sinks { metrics, lines, format };
        Ok(Gateway {
            current: ArcSwap::from_pointee(snapshot),
            sinks: Arc::new(sinks),
            reader: Reader::with_cache(CacheSizes::of_system().messages),
            calibrations: Calibrations::default(),
            windows: LearntWindows::default(),
            conversations,
            archive: None,
            secret,
            overload,
            heavy,
            summaries: SummaryLimits::default(),
        })
    }

    /// Checks that a configuration could be applied: that keys are set and certificates can be read.
    pub fn check(settings: &Settings) -> Result<(), SetupError> {
        settings.server.tls.as_ref().map(tls::server).transpose()?;
        Snapshot::prepare(settings.clone(), None).map(drop)
    }

    /// Counts requests in `metrics`.
    #[must_use]
    pub fn with_metrics(self, metrics: Arc<Metrics>) -> Gateway {
        self.snapshot().announce(&metrics);
        let Sinks { lines, format, .. } = &*self.sinks;
        let sinks = Sinks { metrics, lines: lines.clone(), format: *format };
        Gateway { sinks: Arc::new(sinks), ..self }
    }

    /// Also writes everything to an archive.
    #[must_use]
    pub fn with_archive(self, archive: Option<Archive>) -> Gateway {
        if let Some(archive) = archive.clone() {
            self.metrics().watch_archive(move || {
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
        Gateway { archive, ..self }
    }

    /// Applies another configuration. Requests in progress finish under the old one; connections to unchanged upstreams are kept.
    /// Listeners and workers do not change.
    pub fn reload(&self, settings: Settings) -> Result<(), SetupError> {
        let before = self.current.load();
        let snapshot = Snapshot::prepare(settings, Some(&before))?;
        snapshot.announce(self.metrics());
        self.overload.reload(&snapshot.settings.server);
        self.current.store(Arc::new(snapshot));
        Ok(())
    }

    /// Wall-clock time: processes that share a store must agree on it.
    pub(crate) fn now() -> Timestamp {
        Timestamp(wall_clock())
    }

    /// The windows that upstreams have named, by upstream and model.
    pub fn learnt_windows(&self) -> Vec<WindowFact> {
        self.windows.all()
    }

    /// Adds those windows to the metrics.
    pub fn watch_windows(self: &Arc<Self>) {
        let gateway = Arc::downgrade(self);
        self.metrics()
            .watch_windows(move || gateway.upgrade().map(|one| one.learnt_windows()).unwrap_or_default());
    }

    /// Adds what is in use of the limits to the metrics.
    pub fn watch_load(self: &Arc<Self>) {
        let gateway = Arc::downgrade(self);
        self.metrics().watch_load(move || gateway.upgrade().map(|one| one.load()).unwrap_or_default());
    }

    fn load(&self) -> Load {
        let Overload { memory, connections, .. } = &*self.overload;
        let mut kinds = vec![
            ("requests", memory.used()),
            ("messages", self.reader.cache_bytes()),
            ("connections", self.overload.connection_bytes()),
        ];
        kinds.extend(self.conversations.cache_bytes());
        Load {
            memory: kinds,
            memory_limit: memory.limit(),
            requests: self.requests_in_flight(),
            connections: connections.open() as u64,
            queued: self.heavy.queued() as u64,
            refused: self.overload.refusals().collect(),
            store: self.conversations.store_size().map(|size| (size.bytes, size.evicted)),
        }
    }

    /// How many requests of clients are under way.
    pub fn requests_in_flight(&self) -> u64 {
        self.overload.requests() as u64
    }

    /// Whether requests are refused because a limit of the process is reached, or nearly so.
    pub fn is_overloaded(&self) -> bool {
        self.overload.is_overloaded()
    }

    /// The metrics since the start of the process, in the text format of Prometheus.
    pub fn metrics_text(&self) -> String {
        self.metrics().text()
    }

    /// The same as numbers, by route and model.
    pub fn tallies(&self) -> Vec<ModelTally> {
        self.metrics().tallies()
    }

    /// The configuration in force.
    pub fn settings(&self) -> Arc<Settings> {
        self.current.load().settings.clone()
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.sinks.metrics
    }

    /// What requests for this model on this route are counted under.
    pub(crate) fn labels(
        &self,
        snapshot: &Snapshot,
        route: &Route,
        requested_model: &str,
        dialect: Dialect,
    ) -> Labels {
        let model = snapshot.models.lookup(requested_model);
        let name = if model.is_known { model.name.as_str() } else { OTHER_MODEL };
        self.metrics().labels(&route.name, name, provider_of(dialect, &route.upstream.url.authority))
    }

    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }
}
