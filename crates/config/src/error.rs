use crate::Origin;
use std::fmt;

/// One mistake in the configuration.
///
/// Messages show values as written and never what `${…}` expands to, because that may be a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    #[error("{file}: cannot be read: {reason}")]
    Unreadable { file: String, reason: String },
    #[error("{at}: not valid TOML at column {column}: {message}")]
    Syntax { at: Origin, column: usize, message: String },
    #[error("{at}: unknown key `{path}`")]
    UnknownKey { at: Origin, path: String, hint: String },
    #[error("{at}: `{path}` is missing")]
    Missing { at: Origin, path: String, hint: String },
    #[error("{at}: `{path}` is `{written}` but {must}")]
    Invalid { at: Origin, path: String, written: String, must: String, hint: String },
}

impl ConfigError {
    /// How to fix the mistake.
    #[must_use]
    pub fn hint(&self) -> &str {
        match self {
            ConfigError::Unreadable { .. } => {
                "check the path and its permissions; without a file the defaults apply"
            }
            ConfigError::Syntax { message, .. } if message.contains("duplicate") => "remove one of the two",
            ConfigError::Syntax { .. } => {
                "strings need quotes, and every line is `key = value` or `[section]`"
            }
            ConfigError::UnknownKey { hint, .. }
            | ConfigError::Missing { hint, .. }
            | ConfigError::Invalid { hint, .. } => hint,
        }
    }

    /// The sort key of an error: its line, or the end for errors outside the file.
    fn position(&self) -> usize {
        let at = match self {
            ConfigError::Unreadable { .. } => return 0,
            ConfigError::Syntax { at, .. }
            | ConfigError::UnknownKey { at, .. }
            | ConfigError::Missing { at, .. }
            | ConfigError::Invalid { at, .. } => at,
        };
        match at {
            Origin::File { line, .. } => *line,
            Origin::Default | Origin::Profile(_) | Origin::Environment(_) | Origin::Flag(_) => usize::MAX,
        }
    }
}

/// All mistakes in the configuration, in the order of the file. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors(Vec<ConfigError>);

impl ConfigErrors {
    pub(crate) fn sorted(mut errors: Vec<ConfigError>) -> ConfigErrors {
        errors.sort_by_key(ConfigError::position);
        ConfigErrors(errors)
    }

    pub fn iter(&self) -> impl Iterator<Item = &ConfigError> {
        self.0.iter()
    }
}

impl From<ConfigError> for ConfigErrors {
    fn from(error: ConfigError) -> ConfigErrors {
        ConfigErrors(vec![error])
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{error}\n  hint: {}", error.hint())?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}
