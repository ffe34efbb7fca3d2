use crate::choice::choices;
use crate::section::Section;
use crate::tree::{Node, without_password};
use crate::value::{self, InvalidValue};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Where conversations are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    pub url: StoreUrl,
    /// How long a conversation is stored after its last request.
    pub ttl: Duration,
    /// The most bytes that conversations take; `None` if the store has its own limit, as Redis does.
    pub max_size: Option<u64>,
    /// The timeout of one round trip.
    pub timeout: Duration,
    pub on_failure: OnFailure,
    /// Whether the raw messages are stored, too.
    pub raw: bool,
    /// The environment variable that holds the keys to encrypt messages with. If it is not set, messages are not encrypted.
    pub key_env: String,
}

/// The address of a store. `Display` and `Debug` hide the user name and password.
#[derive(Clone, PartialEq, Eq)]
pub enum StoreUrl {
    Memory,
    Embedded(PathBuf),
    Redis(String),
    Sentinel(String),
    Cluster(String),
}

/// What to do with a request while the store is unavailable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    /// Forward it with what this process remembers, and say so in a header.
    Forward,
    /// Refuse it with 503.
    Refuse,
}

choices!(OnFailure { "forward" => Forward, "refuse" => Refuse });

/// The limits of `max_size`, and its defaults for disk and memory.
const SMALLEST: u64 = 16 << 20;
const LARGEST: u64 = 1 << 44;
const DISK: u64 = 10 << 30;
const MEMORY: u64 = 256 << 20;

impl Store {
    pub(crate) fn read(section: &mut Section<'_>) -> Store {
        let day = Duration::from_secs(86_400);
        let url =
            section.with_default("url", StoreUrl::default(), StoreUrl::parse, |url| format!("\"{url}\""));
        let sizes = SMALLEST..=LARGEST;
        let max_size = match &url {
            StoreUrl::Memory => Some(section.bytes("max_size", MEMORY, SMALLEST, LARGEST)),
            StoreUrl::Embedded(_) => Some(section.bytes("max_size", DISK, SMALLEST, LARGEST)),
            StoreUrl::Redis(_) | StoreUrl::Sentinel(_) | StoreUrl::Cluster(_) => {
                section.optional("max_size", |node| value::bytes(node, sizes))
            }
        };
        Store {
            url,
            ttl: section.duration("ttl", 7 * day),
            max_size,
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
    fn parse(node: &Node) -> Result<StoreUrl, InvalidValue> {
        let hint = "use `memory:`, `embedded:DIR`, `redis://…`, `rediss://…`, `redis+sentinel://h1,h2/master` or \
                    `redis+cluster://h1,h2`";
        let text = value::text(node)?;
        let invalid = || InvalidValue::new("must be a store URL", hint);
        let (scheme, rest) = text.split_once(':').ok_or_else(invalid)?;
        let hosts = rest.strip_prefix("//").filter(|hosts| !hosts.is_empty() && !hosts.starts_with('/'));
        match (scheme, hosts) {
            ("memory", _) if rest.is_empty() => Ok(StoreUrl::Memory),
            ("embedded", None) if !rest.is_empty() => Ok(StoreUrl::Embedded(PathBuf::from(rest))),
            ("redis" | "rediss", Some(_)) => Ok(StoreUrl::Redis(text)),
            ("redis+sentinel", Some(hosts)) => match hosts.rsplit_once('/') {
                Some((_, master)) if !master.is_empty() => Ok(StoreUrl::Sentinel(text)),
                Some(_) | None => Err(InvalidValue::new(
                    "must end with the name of the master",
                    "write `redis+sentinel://h1,h2,h3/master`",
                )),
            },
            ("redis+cluster", Some(_)) => Ok(StoreUrl::Cluster(text)),
            _ => Err(invalid()),
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
