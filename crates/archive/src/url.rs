//! Where the database is and how to log in, as written in one URL.

use crate::ArchiveError;
use std::path::PathBuf;
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

/// What a URL says.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) config: Config,
    pub(crate) trust: Trust,
    /// Its host and port, for logs.
    pub(crate) place: String,
}

/// Who may be at the other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    Anybody,
    /// For whom this file's authorities vouch, or, without one, those whom the system trusts.
    Verified(Option<PathBuf>),
}

const NAME: &str = "tidegate";

/// Those of the library that are of use here, and two of our own: `sslmode`, which knows one more value, and `sslrootcert`.
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

/// No text of an error repeats what stands in the URL: where a password holds an unescaped `/`, `?` or `@`, any part may be a
/// piece of it.
pub(crate) fn parse(url: &str, timeout: Duration) -> Result<Target, ArchiveError> {
    let rest = url.strip_prefix("postgres://").or_else(|| url.strip_prefix("postgresql://"));
    let rest = rest.ok_or_else(|| bad("does not begin with `postgres://`"))?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    if query.contains('@') || path.contains('@') || authority.matches('@').count() > 1 {
        return Err(bad("has an `@` where none can be"));
    }
    let hosts = authority.rsplit('@').next().unwrap_or_default();
    if hosts.is_empty() {
        return Err(bad("names no host"));
    }
    let mut others = Vec::new();
    let (mut mode, mut ca) = (None, None);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if !OPTIONS.contains(&name) {
            return Err(bad(&format!("has an option that is not one of `{}`", OPTIONS.join("`, `"))));
        }
        match name {
            "sslmode" => mode = Some(value),
            "sslrootcert" => ca = Some(decode(value)?.into()),
            _ => others.push(pair),
        }
    }
    let (mode, trust) = read_mode(mode, ca)?;
    // The library reads what is left: several hosts, sockets, escapes.
    let plain = format!("postgres://{rest}?{}", others.join("&"));
    let mut config: Config = plain.parse().map_err(|error| bad(&unreadable(&error)))?;
    if config.get_application_name().is_none() {
        config.application_name(NAME);
    }
    if config.get_connect_timeout().is_none() {
        // So that there is time for the last one of them.
        let hosts = u32::try_from(config.get_hosts().len()).unwrap_or(u32::MAX).max(1);
        config.connect_timeout(timeout / hosts);
    }
    // One of several hosts may be a copy that can only be read.
    if config.get_hosts().len() > 1 && !others.iter().any(|pair| pair.starts_with("target_session_attrs=")) {
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    }
    config.ssl_mode(mode);
    let place = place(&config);
    Ok(Target { config, trust, place })
}

fn read_mode(mode: Option<&str>, ca: Option<PathBuf>) -> Result<(SslMode, Trust), ArchiveError> {
    if ca.is_some() && mode != Some("verify-full") {
        return Err(bad("has `sslrootcert`, which only `sslmode=verify-full` looks at"));
    }
    match mode {
        Some("disable") => Ok((SslMode::Disable, Trust::Anybody)),
        Some("prefer") | None => Ok((SslMode::Prefer, Trust::Anybody)),
        Some("require") => Ok((SslMode::Require, Trust::Anybody)),
        Some("verify-full") => Ok((SslMode::Require, Trust::Verified(ca))),
        Some(_) => {
            Err(bad("has an option `sslmode` that is not `disable`, `prefer`, `require` or `verify-full`"))
        }
    }
}

/// The library names an option or says what it expected, and then may say what it found instead: that is left out.
fn unreadable(error: &tokio_postgres::Error) -> String {
    let cause = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
    let option = ["port", "host", "connect_timeout", "keepalives", "channel_binding", "load_balance_hosts"]
        .into_iter()
        .chain(["target_session_attrs"])
        .find(|option| cause.ends_with(&format!("`{option}`")));
    match option {
        Some(option) => format!("has a value for `{option}` that cannot be one"),
        None => "cannot be read".to_owned(),
    }
}

fn place(config: &Config) -> String {
    let ports = config.get_ports();
    // One port, or none, stands for all hosts.
    let port = |place: usize| ports.get(place).or(ports.first()).copied().unwrap_or(5432);
    let host = |(place, host): (usize, &Host)| match host {
        Host::Tcp(name) if name.contains(':') => format!("[{name}]:{}", port(place)),
        Host::Tcp(name) => format!("{name}:{}", port(place)),
        Host::Unix(path) => path.display().to_string(),
    };
    config.get_hosts().iter().enumerate().map(host).collect::<Vec<_>>().join(",")
}

fn decode(text: &str) -> Result<String, ArchiveError> {
    let decoded = percent_encoding::percent_decode_str(text).decode_utf8();
    decoded.map(Into::into).map_err(|_| bad("is not UTF-8 where it is escaped"))
}

fn bad(what: &str) -> ArchiveError {
    let hint = "it looks like `postgres://user:password@host:5432/database?sslmode=verify-full`; characters such as \
                `/ ? @ : %` in a password are written as `%2F` and so on";
    ArchiveError::Url(format!("{what} (hint: {hint})"))
}

#[cfg(test)]
mod tests;
