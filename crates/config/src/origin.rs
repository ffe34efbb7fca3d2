use std::fmt;
use std::sync::Arc;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    Default,
    Profile(String),
    File { name: Arc<str>, line: usize },
    Environment(String),
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::Profile(name) => write!(f, "profile {name}"),
            Origin::File { name, line } => write!(f, "{name}:{line}"),
            Origin::Environment(name) | Origin::Flag(name) => f.write_str(name),
        }
    }
}

/// One value of the settings: `routes[0].context.mask.keep`, `{ turns = 10 }`, `proxy.toml:12`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    pub path: String,
    /// As TOML. Where the file has `${…}`, that text and never what it expands to.
    pub value: String,
    pub origin: Origin,
}
