use crate::{ConfigError, Origin, Resolved};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What one reading of the configuration has found so far. The cursors share it, so that a mistake in one section does
/// not hide the mistakes in the next.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// What relative paths in the file are relative to.
    pub(crate) directory: PathBuf,
    errors: RefCell<Vec<ConfigError>>,
    resolved: RefCell<Vec<Resolved>>,
    warnings: RefCell<Vec<String>>,
    /// Every key that something asked for, and whether it was there. The reference file is tested against it.
    keys: RefCell<BTreeMap<String, bool>>,
}

impl Report {
    pub(crate) fn new(directory: PathBuf) -> Report {
        Report { directory, ..Report::default() }
    }

    /// `[context]` is read once for each route that inherits it: the same error is one error.
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

    pub(crate) fn asked(&self, key: String, found: bool) {
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
    #[cfg_attr(not(test), expect(dead_code, reason = "the reference file's test reads it"))]
    pub(crate) keys: BTreeMap<String, bool>,
}
