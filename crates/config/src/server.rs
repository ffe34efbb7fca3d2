use crate::choice::choices;
use crate::fold::nonzero;
use crate::section::Section;
use crate::value;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

/// The listener for clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    pub listen: SocketAddr,
    /// The maximum size of a request body, in bytes, after decompression.
    pub max_body: u64,
    /// The maximum size of a request head, in bytes.
    pub max_header: u64,
    /// How long a client may take to send the head of a request.
    pub header_timeout: Duration,
    /// The longest pause while a body arrives.
    pub body_timeout: Duration,
    /// How long a client may take to send the whole of a body that is read before it is forwarded.
    pub request_timeout: Duration,
    /// The lowest average rate of such a body in bytes per second, once it takes longer than a pause may; 0 for none.
    pub min_body_rate: u64,
    /// How long a client may take nothing of the response it is sent.
    pub write_timeout: Duration,
    /// How long a shutdown waits for requests in flight.
    pub drain_timeout: Duration,
    /// The memory for bodies and answers in flight, in bytes; `None` for a share of the memory there is.
    pub max_memory: Option<u64>,
    /// Open connections; `None` for what the limit of open files allows.
    pub max_connections: Option<NonZeroU32>,
    /// Open connections of one client address; `None` for [`MAX_PUBLIC_CONNECTIONS`] of a public address and any number of a private one.
    pub max_connections_per_address: Option<NonZeroU32>,
    /// Open streams of one HTTP/2 connection.
    pub max_concurrent_streams: NonZeroU32,
    /// Requests in flight.
    pub max_requests: NonZeroU32,
    /// Requests that wait for heavy work: counting the tokens of a large body, decompressing it.
    pub max_queued_work: NonZeroU32,
    /// The number of worker threads; `None` for one per core.
    pub workers: Option<NonZeroUsize>,
    pub tls: Option<ServerTls>,
    /// Host names under which a loopback listener is reached, besides its own, in lowercase.
    pub allowed_hosts: Vec<String>,
}

/// The certificate chain and the private key of the listener, both PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerTls {
    pub cert: PathBuf,
    pub key: PathBuf,
}

/// The listener for health, metrics and the admin API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admin {
    pub listen: SocketAddr,
    /// The environment variable that holds the bearer token.
    pub token_env: String,
}

/// What is logged, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    pub level: LogLevel,
    pub format: LogFormat,
    /// Whether to log one line per request.
    pub access: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Human on a terminal, JSON elsewhere.
    Auto,
    Human,
    Json,
}

choices!(LogLevel {
    "error" => Error,
    "warn" => Warn,
    "info" => Info,
    "debug" => Debug,
    "trace" => Trace,
});

choices!(LogFormat { "auto" => Auto, "human" => Human, "json" => Json });

/// The most connections of one public address, unless the settings say otherwise. Hundreds of agents may share the address of their office.
pub const MAX_PUBLIC_CONNECTIONS: u32 = 2_000;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

impl Server {
    pub(crate) fn read(section: &mut Section<'_>) -> Server {
        Server {
            listen: listen(section, 8080),
            max_body: section.bytes("max_body", 32 * MIB, KIB, 4096 * MIB),
            // hyper requires a head buffer of at least 8 KiB.
            max_header: section.bytes("max_header", 64 * KIB, 8 * KIB, 16 * MIB),
            header_timeout: section.duration("header_timeout", Duration::from_secs(10)),
            body_timeout: section.duration("body_timeout", Duration::from_secs(30)),
            request_timeout: section.duration("request_timeout", Duration::from_secs(600)),
            min_body_rate: section.bytes("min_body_rate", KIB, 0, 1024 * MIB),
            write_timeout: section.duration("write_timeout", Duration::from_secs(60)),
            drain_timeout: section.duration("drain_timeout", Duration::from_secs(30)),
            max_memory: section.optional("max_memory", |node| value::bytes(node, MIB..=1 << 44)),
            max_connections: section.optional("max_connections", value::count),
            max_connections_per_address: section.optional("max_connections_per_address", value::count),
            max_concurrent_streams: section.count("max_concurrent_streams", nonzero(256)),
            max_requests: section.count("max_requests", nonzero(20_000)),
            max_queued_work: section.count("max_queued_work", nonzero(4_096)),
            workers: section.optional("workers", value::workers),
            tls: section.section("tls", ServerTls::read),
            allowed_hosts: section.strings("allowed_hosts", &[], value::host),
        }
    }
}

impl ServerTls {
    fn read(section: &mut Section<'_>) -> Option<ServerTls> {
        let hint = "TLS needs both `cert` and `key`, as PEM files";
        let cert = section.required("cert", hint, section.path());
        let key = section.required("key", hint, section.path());
        Some(ServerTls { cert: cert?, key: key? })
    }
}

impl Admin {
    pub(crate) fn read(section: &mut Section<'_>) -> Admin {
        Admin {
            listen: listen(section, 9090),
            token_env: section.text("token_env", "TIDEGATE_ADMIN_TOKEN", value::variable),
        }
    }
}

impl Log {
    pub(crate) fn read(section: &mut Section<'_>) -> Log {
        Log {
            level: section.choice("level", LogLevel::Info),
            format: section.choice("format", LogFormat::Auto),
            access: section.flag("access", true),
        }
    }
}

fn listen(section: &mut Section<'_>, port: u16) -> SocketAddr {
    let default = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    section.with_default("listen", default, value::listen, |address| format!("\"{address}\""))
}
