//! Parses store URLs for Redis.

use crate::StoreError;
use std::fmt;
use std::path::PathBuf;

/// A parsed URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) layout: Layout,
    pub(super) login: Login,
    pub(super) db: u32,
    /// `None` if TLS is off.
    pub(super) tls: Option<TlsFiles>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    Single(Address),
    Sentinel { sentinels: Vec<Address>, login: Login, master: String },
    Cluster { seeds: Vec<Address> },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Address {
    pub(super) host: String,
    pub(super) port: u16,
}

#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Login {
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TlsFiles {
    /// The certificate authorities to trust; `None` for those of the system.
    pub(super) ca: Option<PathBuf>,
    /// The client certificate, for servers that require one.
    pub(super) cert: Option<PathBuf>,
    /// Its private key.
    pub(super) key: Option<PathBuf>,
}

#[derive(Debug, Default)]
struct Options {
    tls: Option<bool>,
    files: TlsFiles,
    sentinel: Login,
}

const PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26_379;

/// Error texts never quote the URL: if a password contains an unescaped `/`, `?` or `@`, any part of the URL may belong to it.
pub(super) fn parse(url: &str) -> Result<Target, StoreError> {
    let (scheme, rest) = url.split_once("://").ok_or_else(|| bad("has no `://`"))?;
    let (rest, query) = rest.split_once('?').map_or((rest, ""), |(rest, query)| (rest, query));
    let (authority, path) = rest.split_once('/').map_or((rest, ""), |(authority, path)| (authority, path));
    let (login, hosts) = authority.rsplit_once('@').map_or(("", authority), |(login, hosts)| (login, hosts));
    let options = parse_options(query)?;
    let login = parse_login(login)?;
    let (layout, db) = match scheme {
        "redis" | "rediss" => (Layout::Single(parse_address(hosts, PORT)?), path),
        "redis+sentinel" => {
            let (master, db) = path.split_once('/').map_or((path, ""), |(master, db)| (master, db));
            if master.is_empty() {
                return Err(bad("names no master; expected `redis+sentinel://a,b,c/mymaster`"));
            }
            let sentinels = parse_addresses(hosts, SENTINEL_PORT)?;
            (Layout::Sentinel { sentinels, login: options.sentinel.clone(), master: decode(master)? }, db)
        }
        "redis+cluster" => (Layout::Cluster { seeds: parse_addresses(hosts, PORT)? }, path),
        _ => {
            return Err(bad(
                "does not begin with `redis://`, `rediss://`, `redis+sentinel://` or `redis+cluster://`",
            ));
        }
    };
    let db = match db.trim_end_matches('/') {
        "" => 0,
        db => db.parse().map_err(|_| bad("has an invalid database number"))?,
    };
    if db != 0 && matches!(layout, Layout::Cluster { .. }) {
        return Err(bad("names a database, but a cluster has only database 0"));
    }
    let is_sentinel = matches!(layout, Layout::Sentinel { .. });
    if !is_sentinel && options.sentinel != Login::default() {
        return Err(bad("has sentinel credentials, but does not begin with `redis+sentinel://`"));
    }
    let tls = match (scheme, options.tls) {
        ("rediss", Some(false)) => return Err(bad("begins with `rediss://` but has `tls=false`")),
        ("redis", Some(true)) => return Err(bad("has `tls=true`; use `rediss://` instead")),
        (scheme, tls) => scheme == "rediss" || tls == Some(true),
    };
    if !tls && options.files != TlsFiles::default() {
        return Err(bad("names certificates, but does not enable TLS"));
    }
    if options.files.cert.is_some() != options.files.key.is_some() {
        return Err(bad("has only one of `cert` and `key`"));
    }
    Ok(Target { layout, login, db, tls: tls.then_some(options.files) })
}

fn parse_options(query: &str) -> Result<Options, StoreError> {
    let mut options = Options::default();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = decode(value)?;
        match name {
            "tls" => match value.as_str() {
                "true" => options.tls = Some(true),
                "false" => options.tls = Some(false),
                _ => return Err(bad("has an invalid `tls`; expected `true` or `false`")),
            },
            "ca" => options.files.ca = Some(value.into()),
            "cert" => options.files.cert = Some(value.into()),
            "key" => options.files.key = Some(value.into()),
            "sentinel_user" => options.sentinel.user = Some(value),
            "sentinel_password" => options.sentinel.password = Some(value),
            _ => {
                return Err(bad(
                    "has an unknown option; expected one of `tls`, `ca`, `cert`, `key`, `sentinel_user`, \
                     `sentinel_password`",
                ));
            }
        }
    }
    Ok(options)
}

/// Parses `user:password`, or `:password` for the default user.
fn parse_login(text: &str) -> Result<Login, StoreError> {
    if text.is_empty() {
        return Ok(Login::default());
    }
    let (user, password) = text
        .split_once(':')
        .ok_or_else(|| bad("has no `:` before the password; expected `user:password@`"))?;
    let some = |text: &str| decode(text).map(|text| Some(text).filter(|text| !text.is_empty()));
    Ok(Login { user: some(user)?, password: some(password)? })
}

fn parse_addresses(text: &str, port: u16) -> Result<Vec<Address>, StoreError> {
    text.split(',').map(|address| parse_address(address, port)).collect()
}

fn parse_address(text: &str, default: u16) -> Result<Address, StoreError> {
    // An IPv6 address is in brackets, because it contains colons.
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']').ok_or_else(|| bad("has an IPv6 address without a `]`"))?,
        None => text.find(':').map_or((text, ""), |colon| text.split_at(colon)),
    };
    if host.is_empty() {
        return Err(bad("names no host"));
    }
    let port = match port.strip_prefix(':') {
        None if port.is_empty() => default,
        Some(port) => port.parse().ok().filter(|port| *port != 0).ok_or_else(bad_port)?,
        None => return Err(bad_port()),
    };
    Ok(Address { host: host.to_owned(), port })
}

fn bad_port() -> StoreError {
    bad("has an invalid port; expected 1 to 65535")
}

/// Decodes percent escapes: `%2F` becomes `/`.
fn decode(text: &str) -> Result<String, StoreError> {
    let malformed = || bad("has a `%` that is not followed by two hexadecimal digits");
    let mut bytes = Vec::with_capacity(text.len());
    let mut parts = text.split('%');
    bytes.extend_from_slice(parts.next().unwrap_or_default().as_bytes());
    for part in parts {
        let digits = part.get(..2).ok_or_else(malformed)?;
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| malformed())?);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).map_err(|_| bad("has an escape that is not UTF-8"))
}

fn bad(problem: &str) -> StoreError {
    let hint = "escape characters such as `/ ? @ : %` in a password as `%2F` and so on";
    StoreError::Failed(format!("the URL {problem} (hint: {hint})"))
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Address { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

/// Omits the password.
impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
