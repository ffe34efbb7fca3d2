use serde::Serialize;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What became of the configuration the last time that it was read. Whoever reads it writes here, and the configuration's page tells it.
#[derive(Debug)]
pub struct Reloads {
    /// The file; none where there is none.
    pub(crate) file: Option<String>,
    last: Mutex<Reload>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reload {
    /// Milliseconds since 1970.
    pub at: u64,
    pub outcome: ReloadOutcome,
    /// What is wrong with it, where it was rejected.
    pub errors: Option<String>,
    /// Whether it changes something that only a restart puts in force.
    pub needs_restart: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReloadOutcome {
    /// It has not been read since the start.
    Started,
    Reloaded,
    /// It is invalid, and the one before it stays in force.
    Rejected,
}

impl Reloads {
    #[must_use]
    pub fn new(file: Option<String>, at: u64) -> Reloads {
        let last = Reload { at, outcome: ReloadOutcome::Started, errors: None, needs_restart: false };
        Reloads { file, last: Mutex::new(last) }
    }

    /// It was read again.
    pub fn note(&self, reload: Reload) {
        *self.state() = reload;
    }

    pub(crate) fn last(&self) -> Reload {
        self.state().clone()
    }

    fn state(&self) -> MutexGuard<'_, Reload> {
        // It is replaced as a whole.
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
