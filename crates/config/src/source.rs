use crate::{ConfigError, ConfigErrors};
use std::path::{Path, PathBuf};

/// The text of a configuration file, and what to call it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    pub(crate) name: String,
    pub(crate) text: String,
    /// What relative paths in the file are relative to.
    pub(crate) directory: PathBuf,
}

impl Source {
    /// No file: the built-in defaults.
    #[must_use]
    pub fn none() -> Source {
        Source::new("proxy.toml", "")
    }

    /// A text as if it had been read from the file `name`.
    #[must_use]
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Source {
        let name = name.into();
        let directory = Path::new(&name).parent().map(Path::to_path_buf).unwrap_or_default();
        Source { name, text: text.into(), directory }
    }

    pub fn read(path: impl AsRef<Path>) -> Result<Source, ConfigErrors> {
        let path = path.as_ref();
        let name = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Ok(Source::new(name, text)),
            Err(error) => Err(ConfigError::Unreadable { file: name, reason: error.to_string() }.into()),
        }
    }
}
