use crate::choice::choices;
use crate::section::Section;
use crate::value;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
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
    /// How long a client may take nothing of the response it is sent.
    pub write_timeout: Duration,
    /// How long a shutdown waits for requests in flight.
    pub drain_timeout: Duration,
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
            write_timeout: section.duration("write_timeout", Duration::from_secs(60)),
            drain_timeout: section.duration("drain_timeout", Duration::from_secs(30)),
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
