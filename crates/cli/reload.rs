//! A changed configuration takes effect without a restart.

use crate::args::ConfigArgs;
use crate::settings;
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tidegate_admin::{Reload, ReloadOutcome, Reloads};
use tidegate_config::Settings;
use tidegate_proxy::Gate;
use tidegate_store::wall_clock;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::time::timeout;
use tracing::{error, info, warn};

/// An editor writes a file in several steps; they count as one change.
const SETTLE: Duration = Duration::from_millis(100);

pub(crate) struct Reloader {
    args: ConfigArgs,
    gate: Arc<Gate>,
    /// What was in force at the start, and is until the process ends.
    fixed: Fixed,
    /// Where it is told what became of it.
    told: Arc<Reloads>,
    /// What the file said when it was last read, so that a change that changes nothing is not reported.
    seen: Option<Vec<u8>>,
}

/// Why the file is read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    Changed,
    Asked,
}

impl Reloader {
    pub(crate) fn new(args: ConfigArgs, gate: Arc<Gate>, started: &Settings, told: Arc<Reloads>) -> Reloader {
        let (seen, fixed) = (bytes(&args), fixed(started));
        Reloader { args, gate, fixed, told, seen }
    }

    pub(crate) fn reload(&mut self, cause: Cause) {
        let bytes = bytes(&self.args);
        if cause == Cause::Changed && (bytes == self.seen || bytes.is_none()) {
            return;
        }
        self.seen = bytes;
        let read = settings::read(&self.args).map_err(|errors| errors.to_string()).and_then(|fresh| {
            self.gate.reload(fresh.clone()).map_err(|error| error.to_string())?;
            Ok(fresh)
        });
        match read {
            Ok(fresh) => {
                let needs_restart = fixed(&fresh) != self.fixed;
                if needs_restart {
                    warn!(
                        "changes of `[server]` listeners, workers and TLS, of `[admin]` and of `[store]`, need a restart"
                    );
                }
                for warning in &fresh.warnings {
                    warn!("{warning}");
                }
                info!(routes = fresh.routes.len(), "configuration reloaded");
                self.tell(ReloadOutcome::Reloaded, None, needs_restart);
            }
            Err(errors) => {
                error!("the changed configuration is invalid, the running one stays:\n{errors}");
                self.tell(ReloadOutcome::Rejected, Some(errors), false);
            }
        }
    }

    fn tell(&self, outcome: ReloadOutcome, errors: Option<String>, needs_restart: bool) {
        self.told.record(Reload { at: wall_clock(), outcome, errors, needs_restart });
    }
}

type Fixed = (tidegate_config::Server, tidegate_config::Admin, tidegate_config::Store);

/// What a reload does not change.
fn fixed(settings: &Settings) -> Fixed {
    (settings.server.clone(), settings.admin.clone(), settings.store.clone())
}

fn bytes(args: &ConfigArgs) -> Option<Vec<u8>> {
    settings::path(args).and_then(|path| std::fs::read(path).ok())
}

/// Says when something changed where the configuration file is. Keep the watcher: it stops when it is dropped.
///
/// Directories are watched, not the file: editors replace it, and Kubernetes swaps a symbolic link beside it.
pub(crate) fn watch(args: &ConfigArgs) -> (Option<RecommendedWatcher>, Receiver<()>) {
    let (changed, changes) = channel(1);
    let Some(path) = settings::path(args) else { return (None, changes) };
    let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        // Our own reading is an event too; without this the file would be read for ever.
        if event.is_ok_and(|event| event.kind.is_access()) {
            return;
        }
        // A full channel has a change waiting already.
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
            warn!(%error, "the configuration file cannot be watched: reload it with SIGHUP");
            (None, changes)
        }
    }
}

/// Waits for a change and until nothing has changed for a moment. Never ends where nothing is watched.
pub(crate) async fn settled(changes: &mut Receiver<()>) {
    if changes.recv().await.is_none() {
        std::future::pending::<()>().await;
    }
    while matches!(timeout(SETTLE, changes.recv()).await, Ok(Some(()))) {}
}

/// Where the file is, and where it really is if it is a link.
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
