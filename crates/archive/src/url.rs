//! Parses the archive URL.

use crate::ArchiveError;
use std::path::PathBuf;
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

/// A parsed URL.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) config: Config,
    pub(crate) trust: Trust,
    /// Hosts and ports, for logs.
    pub(crate) server: String,
}

/// Which server certificates are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    AnyCertificate,
    /// Those issued by an authority in this file, or by one that the system trusts if there is none.
    Verified(Option<PathBuf>),
}

const APPLICATION_NAME: &str = "tidegate";

/// The accepted options: a subset of what the library knows, `sslmode` with the additional value `verify-full`, and
/// `sslrootcert`.
const OPTIONS: [&str; 9] = [
    "sslmode",
    "sslrootcert",
    "application_name",
    "channel_binding",
    "connect_timeout",
    "keepalives",
    "load_balance_hosts",
    "options",
    "target_session_attrs",
];

/// Error texts never quote the URL: if a password contains an unescaped `/`, `?` or `@`, any part of the URL may belong to it.
pub(crate) fn parse(url: &str, timeout: Duration) -> Result<Target, ArchiveError> {
    let rest = url.strip_prefix("postgres://").or_else(|| url.strip_prefix("postgresql://"));
    let rest = rest.ok_or_else(|| bad("does not begin with `postgres://`"))?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    if query.contains('@') || path.contains('@') || authority.matches('@').count() > 1 {
        return Err(bad("has an unescaped `@` in its password, path or options"));
    }
    let hosts = authority.rsplit('@').next().unwrap_or_default();
    if hosts.is_empty() {
        return Err(bad("names no host"));
    }
    let mut library_options = Vec::new();
    let (mut mode, mut ca) = (None, None);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if !OPTIONS.contains(&name) {
            return Err(bad(&format!("has an unknown option; expected one of `{}`", OPTIONS.join("`, `"))));
        }
        match name {
            "sslmode" => mode = Some(value),
            "sslrootcert" => ca = Some(decode(value)?.into()),
            _ => library_options.push(pair),
        }
    }
    let (mode, trust) = parse_mode(mode, ca)?;
    // The library parses the rest: several hosts, sockets, escapes.
    let remaining = format!("postgres://{rest}?{}", library_options.join("&"));
    let mut config: Config = remaining.parse().map_err(|error| bad(&library_error(&error)))?;
    if config.get_application_name().is_none() {
        config.application_name(APPLICATION_NAME);
    }
    if config.get_connect_timeout().is_none() {
        // Hosts are tried in turn. Divide the time, so that the last one gets its share.
        let hosts = u32::try_from(config.get_hosts().len()).unwrap_or(u32::MAX).max(1);
        config.connect_timeout(timeout / hosts);
    }
    // One of several hosts may be a read-only replica.
    if config.get_hosts().len() > 1
        && !library_options.iter().any(|pair| pair.starts_with("target_session_attrs="))
    {
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    }
    config.ssl_mode(mode);
    let server = hosts_and_ports(&config);
    Ok(Target { config, trust, server })
}

fn parse_mode(mode: Option<&str>, ca: Option<PathBuf>) -> Result<(SslMode, Trust), ArchiveError> {
    if ca.is_some() && mode != Some("verify-full") {
        return Err(bad("has `sslrootcert` without `sslmode=verify-full`"));
    }
    match mode {
        Some("disable") => Ok((SslMode::Disable, Trust::AnyCertificate)),
        Some("prefer") | None => Ok((SslMode::Prefer, Trust::AnyCertificate)),
        Some("require") => Ok((SslMode::Require, Trust::AnyCertificate)),
        Some("verify-full") => Ok((SslMode::Require, Trust::Verified(ca))),
        Some(_) => {
            Err(bad("has an invalid `sslmode`; expected `disable`, `prefer`, `require` or `verify-full`"))
        }
    }
}

/// Describes a parse error without the offending value, which the library's text may quote.
fn library_error(error: &tokio_postgres::Error) -> String {
    let cause = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
    let option = ["port", "host", "connect_timeout", "keepalives", "channel_binding", "load_balance_hosts"]
        .into_iter()
        .chain(["target_session_attrs"])
        .find(|option| cause.ends_with(&format!("`{option}`")));
    match option {
        Some(option) => format!("has an invalid `{option}`"),
        None => "is malformed".to_owned(),
    }
}

fn hosts_and_ports(config: &Config) -> String {
    let ports = config.get_ports();
    // A single port applies to all hosts.
    let port = |index: usize| ports.get(index).or(ports.first()).copied().unwrap_or(5432);
    let host = |(index, host): (usize, &Host)| match host {
        Host::Tcp(name) if name.contains(':') => format!("[{name}]:{}", port(index)),
        Host::Tcp(name) => format!("{name}:{}", port(index)),
        Host::Unix(path) => path.display().to_string(),
    };
    config.get_hosts().iter().enumerate().map(host).collect::<Vec<_>>().join(",")
}

fn decode(text: &str) -> Result<String, ArchiveError> {
    let decoded = percent_encoding::percent_decode_str(text).decode_utf8();
    decoded.map(Into::into).map_err(|_| bad("has an escape that is not UTF-8"))
}

fn bad(problem: &str) -> ArchiveError {
    let hint = "expected `postgres://user:password@host:5432/database?sslmode=verify-full`; escape characters \
                such as `/ ? @ : %` in a password as `%2F` and so on";
    ArchiveError::Url(format!("{problem} (hint: {hint})"))
}

#[cfg(test)]
mod tests;
