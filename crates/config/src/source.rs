use crate::{ConfigError, ConfigErrors};
use std::path::{Path, PathBuf};

/// The text of a configuration file, and its name for error messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    pub(crate) name: String,
    pub(crate) text: String,
    /// The base of relative paths in the file.
    pub(crate) directory: PathBuf,
}

impl Source {
    /// An empty file: the built-in defaults.
    #[must_use]
    pub fn none() -> Source {
        Source::new("proxy.toml", "")
    }

    /// A text that stands for the contents of the file `name`.
    #[must_use]
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Source {
        let name = name.into();
        let directory = Path::new(&name).parent().map(Path::to_path_buf).unwrap_or_default();
        Source { name, text: text.into(), directory }
    }

    /// Reads a file.
    pub fn read(path: impl AsRef<Path>) -> Result<Source, ConfigErrors> {
        let path = path.as_ref();
        let name = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Ok(Source::new(name, text)),
            Err(error) => Err(ConfigError::Unreadable { file: name, reason: error.to_string() }.into()),
        }
    }
}
