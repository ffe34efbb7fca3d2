use serde::Serialize;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The outcome of the latest configuration reload: written by the reloader, shown on the configuration page.
#[derive(Debug)]
pub struct Reloads {
    /// The configuration file, if there is one.
    pub(crate) file: Option<String>,
    last: Mutex<Reload>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reload {
    /// Milliseconds since 1970.
    pub at: u64,
    pub outcome: ReloadOutcome,
    /// The configuration errors, if it was rejected.
    pub errors: Option<String>,
    /// Whether some changes take effect only after a restart.
    pub needs_restart: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReloadOutcome {
    /// Not reloaded since the start.
    Started,
    Reloaded,
    /// The new configuration is invalid; the previous one stays active.
    Rejected,
}

impl Reloads {
    #[must_use]
    pub fn new(file: Option<String>, at: u64) -> Reloads {
        let last = Reload { at, outcome: ReloadOutcome::Started, errors: None, needs_restart: false };
        Reloads { file, last: Mutex::new(last) }
    }

    /// Records a reload.
    pub fn record(&self, reload: Reload) {
        *self.lock() = reload;
    }

    pub(crate) fn last(&self) -> Reload {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Reload> {
        // The value is only replaced as a whole, so a poisoned lock holds a valid one.
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
