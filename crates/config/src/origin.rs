use std::fmt;
use std::sync::Arc;

/// The source of a value.
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

/// A resolved value, for example `routes[0].context.mask.keep`, `{ turns = 10 }`, `proxy.toml:12`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    pub path: String,
    /// As TOML. A `${…}` is shown as written and not expanded.
    pub value: String,
    pub origin: Origin,
}
