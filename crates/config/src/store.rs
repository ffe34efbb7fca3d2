use crate::choice::choices;
use crate::section::Section;
use crate::tree::{Node, without_password};
use crate::value::{self, Wrong};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Where the memory of conversations lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    pub url: StoreUrl,
    /// How long a conversation is remembered after its last request.
    pub ttl: Duration,
    /// The deadline of one round trip.
    pub timeout: Duration,
    pub on_failure: OnFailure,
    /// Whether the raw messages are recorded too.
    pub raw: bool,
    /// The environment variable that holds the keys under which they are encrypted; they are not if it is not set.
    pub key_env: String,
}

/// Shown without the user and the password, by `Display` and by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub enum StoreUrl {
    Memory,
    Embedded(PathBuf),
    Redis(String),
    Sentinel(String),
    Cluster(String),
}

/// What happens to a request while the store does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    /// It goes out without memory and says so.
    Forward,
    /// It gets a 503.
    Refuse,
}

choices!(OnFailure { "forward" => Forward, "refuse" => Refuse });

impl Store {
    pub(crate) fn read(section: &mut Section<'_>) -> Store {
        let day = Duration::from_secs(86_400);
        Store {
            url: section.or("url", StoreUrl::default(), StoreUrl::parse, |url| format!("\"{url}\"")),
            ttl: section.duration("ttl", 7 * day),
            timeout: section.duration("timeout", Duration::from_millis(250)),
            on_failure: section.choice("on_failure", OnFailure::Forward),
            raw: section.flag("raw", true),
            key_env: section.text("key_env", "TIDEGATE_STORE_KEY", value::variable),
        }
    }
}

impl Default for StoreUrl {
    fn default() -> StoreUrl {
        StoreUrl::Embedded(PathBuf::from("tidegate-data"))
    }
}

impl StoreUrl {
    fn parse(node: &Node) -> Result<StoreUrl, Wrong> {
        let hint = "use `memory:`, `embedded:DIR`, `redis://…`, `rediss://…`, `redis+sentinel://h1,h2/master` or \
                    `redis+cluster://h1,h2`";
        let text = value::text(node)?;
        let wrong = || Wrong::new("must be the URL of a store", hint);
        let (scheme, rest) = text.split_once(':').ok_or_else(wrong)?;
        let hosts = rest.strip_prefix("//").filter(|hosts| !hosts.is_empty() && !hosts.starts_with('/'));
        match (scheme, hosts) {
            ("memory", _) if rest.is_empty() => Ok(StoreUrl::Memory),
            ("embedded", None) if !rest.is_empty() => Ok(StoreUrl::Embedded(PathBuf::from(rest))),
            ("redis" | "rediss", Some(_)) => Ok(StoreUrl::Redis(text)),
            ("redis+sentinel", Some(hosts)) => match hosts.rsplit_once('/') {
                Some((_, master)) if !master.is_empty() => Ok(StoreUrl::Sentinel(text)),
                Some(_) | None => {
                    Err(Wrong::new("must name the master", "write `redis+sentinel://h1,h2,h3/master`"))
                }
            },
            ("redis+cluster", Some(_)) => Ok(StoreUrl::Cluster(text)),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreUrl::Memory => f.write_str("memory:"),
            StoreUrl::Embedded(path) => write!(f, "embedded:{}", path.display()),
            StoreUrl::Redis(url) | StoreUrl::Sentinel(url) | StoreUrl::Cluster(url) => {
                f.write_str(&without_password(url))
            }
        }
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreUrl({self})")
    }
}
