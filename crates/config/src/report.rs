use crate::{ConfigError, Origin, Resolved};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Collects the results of reading a configuration: errors, resolved values and warnings. All sections share one report, so that
/// a mistake in one section does not hide those in the next.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// The base of relative paths in the file.
    pub(crate) directory: PathBuf,
    errors: RefCell<Vec<ConfigError>>,
    resolved: RefCell<Vec<Resolved>>,
    warnings: RefCell<Vec<String>>,
    /// Every key that was read, and whether it was set. A test compares the reference file with it.
    keys: RefCell<BTreeMap<String, bool>>,
}

impl Report {
    pub(crate) fn new(directory: PathBuf) -> Report {
        Report { directory, ..Report::default() }
    }

    /// Adds an error. `[context]` is read once per route, so equal errors are reported once.
    pub(crate) fn error(&self, error: ConfigError) {
        let mut errors = self.errors.borrow_mut();
        if !errors.contains(&error) {
            errors.push(error);
        }
    }

    pub(crate) fn warning(&self, warning: String) {
        self.warnings.borrow_mut().push(warning);
    }

    pub(crate) fn resolved(&self, path: String, value: String, origin: Origin) {
        self.resolved.borrow_mut().push(Resolved { path, value, origin });
    }

    pub(crate) fn record_key(&self, key: String, found: bool) {
        *self.keys.borrow_mut().entry(key).or_default() |= found;
    }

    pub(crate) fn into_findings(self) -> Findings {
        Findings {
            errors: self.errors.into_inner(),
            resolved: self.resolved.into_inner(),
            warnings: self.warnings.into_inner(),
            keys: self.keys.into_inner(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Findings {
    pub(crate) errors: Vec<ConfigError>,
    pub(crate) resolved: Vec<Resolved>,
    pub(crate) warnings: Vec<String>,
    #[cfg_attr(not(test), expect(dead_code, reason = "read by the test of the reference file"))]
    pub(crate) keys: BTreeMap<String, bool>,
}
