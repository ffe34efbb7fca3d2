//! Reloads the configuration without a restart.

use crate::args::ConfigArgs;
use crate::settings;
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tidegate_admin::{Reload, ReloadOutcome, Reloads};
use tidegate_config::Settings;
use tidegate_proxy::Gateway;
use tidegate_store::wall_clock;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::time::timeout;
use tracing::{error, info, warn};

/// Editors write a file in several steps, which count as one change.
const SETTLE_TIME: Duration = Duration::from_millis(100);

pub(crate) struct Reloader {
    args: ConfigArgs,
    gateway: Arc<Gateway>,
    /// The settings at the start that only a restart changes.
    restart_settings: RestartSettings,
    /// Receives the outcome of each reload.
    outcomes: Arc<Reloads>,
    /// The content of the file at the last reload, to ignore events that change nothing.
    last_content: Option<Vec<u8>>,
}

/// Why the configuration is reloaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReloadCause {
    FileChanged,
    Signal,
}

impl Reloader {
    pub(crate) fn new(
        args: ConfigArgs,
        gateway: Arc<Gateway>,
        started: &Settings,
        outcomes: Arc<Reloads>,
    ) -> Reloader {
        let (last_content, restart_settings) = (read_file(&args), restart_settings(started));
        Reloader { args, gateway, restart_settings, outcomes, last_content }
    }

    pub(crate) fn reload(&mut self, cause: ReloadCause) {
        let content = read_file(&self.args);
        if cause == ReloadCause::FileChanged && (content == self.last_content || content.is_none()) {
            return;
        }
        self.last_content = content;
        let read = settings::read(&self.args).map_err(|errors| errors.to_string()).and_then(|fresh| {
            self.gateway.reload(fresh.clone()).map_err(|error| error.to_string())?;
            Ok(fresh)
        });
        match read {
            Ok(fresh) => {
                let needs_restart = restart_settings(&fresh) != self.restart_settings;
                if needs_restart {
                    warn!(
                        "changes to `[server]` listeners, workers and TLS, to `[admin]` and to `[store]` need a restart"
                    );
                }
                for warning in &fresh.warnings {
                    warn!("{warning}");
                }
                info!(routes = fresh.routes.len(), "configuration reloaded");
                self.record(ReloadOutcome::Reloaded, None, needs_restart);
            }
            Err(errors) => {
                error!("the changed configuration is invalid; the running one stays active:\n{errors}");
                self.record(ReloadOutcome::Rejected, Some(errors), false);
            }
        }
    }

    fn record(&self, outcome: ReloadOutcome, errors: Option<String>, needs_restart: bool) {
        self.outcomes.record(Reload { at: wall_clock(), outcome, errors, needs_restart });
    }
}

type RestartSettings = (tidegate_config::Server, tidegate_config::Admin, tidegate_config::Store);

/// The settings that a reload does not apply.
fn restart_settings(settings: &Settings) -> RestartSettings {
    (settings.server.clone(), settings.admin.clone(), settings.store.clone())
}

fn read_file(args: &ConfigArgs) -> Option<Vec<u8>> {
    settings::path(args).and_then(|path| std::fs::read(path).ok())
}

/// Watches the directories of the configuration file and sends a message when something in them changes. The
/// watcher stops when it is dropped.
///
/// Directories are watched rather than the file, because editors replace the file and Kubernetes swaps a
/// symbolic link beside it.
pub(crate) fn watch(args: &ConfigArgs) -> (Option<RecommendedWatcher>, Receiver<()>) {
    let (changed, changes) = channel(1);
    let Some(path) = settings::path(args) else { return (None, changes) };
    let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        // Reading the file is an event too, which would make us read it forever.
        if event.is_ok_and(|event| event.kind.is_access()) {
            return;
        }
        // If the channel is full, a change is already pending.
        let _ = changed.try_send(());
    });
    let watcher = watcher.and_then(|mut watcher| {
        for directory in directories(&path) {
            watcher.watch(&directory, RecursiveMode::NonRecursive)?;
        }
        Ok(watcher)
    });
    match watcher {
        Ok(watcher) => (Some(watcher), changes),
        Err(error) => {
            warn!(%error, "cannot watch the configuration file; send SIGHUP to reload it");
            (None, changes)
        }
    }
}

/// Waits for a change, and then until changes have stopped for [`SETTLE_TIME`]. Never returns if nothing is
/// watched.
pub(crate) async fn settled(changes: &mut Receiver<()>) {
    if changes.recv().await.is_none() {
        std::future::pending::<()>().await;
    }
    while matches!(timeout(SETTLE_TIME, changes.recv()).await, Ok(Some(()))) {}
}

/// The directory of the file, and of its target if it is a symbolic link.
fn directories(path: &Path) -> Vec<PathBuf> {
    let parent = |path: &Path| match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    let mut directories = vec![parent(path)];
    if let Ok(real) = path.canonicalize() {
        directories.push(parent(&real));
    }
    directories.dedup();
    directories
}
