//! `tidegate check --live`: connects to everything that `serve` would use.

use crate::store;
use anyhow::bail;
use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Duration;
use tidegate_config::Settings;
use tidegate_proxy::{LEARNT_WINDOWS, LearntWindow, probe};
use tidegate_store::{StoreError, wall_clock};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

const REACHABLE: &str = "reachable";

/// How long the archive and the collector may take to accept a connection.
const DEADLINE: Duration = Duration::from_secs(5);

/// One connection that was tried.
struct Attempt {
    name: String,
    result: Result<String, String>,
}

pub(super) fn run(settings: &Settings) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (attempts, windows) =
        runtime.block_on(async { (attempts(settings).await, learnt_windows(settings).await) });
    let mut out = String::new();
    for Attempt { name, result } in &attempts {
        // Writing into a string does not fail.
        let _ = match result {
            Ok(how) => writeln!(out, "{name}: {how}"),
            Err(reason) => writeln!(out, "{name}: {reason}"),
        };
    }
    for (name, window) in windows {
        let _ = writeln!(out, "learnt window {name}: {window}");
    }
    let _ = std::io::stdout().write_all(out.as_bytes());
    match attempts.iter().filter(|attempt| attempt.result.is_err()).count() {
        0 => Ok(()),
        failed => bail!("{failed} of {} connections failed", attempts.len()),
    }
}

async fn attempts(settings: &Settings) -> Vec<Attempt> {
    let mut attempts = Vec::new();
    for (name, upstream) in &settings.upstreams {
        let result = probe(upstream).await.map(|status| format!("reachable, answers {status}"));
        attempts.push(Attempt { name: format!("upstream `{name}` {}", upstream.url), result });
    }
    attempts
        .push(Attempt { name: format!("store {}", settings.store.url), result: probe_store(settings).await });
    if settings.archive.is_some() {
        let result = probe_archive(settings).await.map(|()| REACHABLE.to_owned());
        attempts.push(Attempt { name: "archive".to_owned(), result });
    }
    if let Some(endpoint) = &settings.telemetry.endpoint {
        let (scheme, rest) = endpoint.split_once("://").unwrap_or(("http", endpoint));
        let authority = rest.split('/').next().unwrap_or(rest);
        let port = if scheme == "https" { 443 } else { 80 };
        let result = connect(&with_port(authority, port)).await.map(|()| REACHABLE.to_owned());
        attempts.push(Attempt { name: format!("collector {endpoint}"), result });
    }
    attempts
}

fn with_port(authority: &str, port: u16) -> String {
    let host = authority.rsplit_once(']').map_or(authority, |(_, after)| after);
    if host.contains(':') { authority.to_owned() } else { format!("{authority}:{port}") }
}

async fn connect(address: &str) -> Result<(), String> {
    match timeout(DEADLINE, TcpStream::connect(address)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(format!("cannot connect: {error}")),
        Err(_) => Err(format!("no connection within {}s", DEADLINE.as_secs_f64())),
    }
}

/// A process that runs has its embedded store to itself, and shows that the store can be opened.
async fn probe_store(settings: &Settings) -> Result<String, String> {
    let store = match store::open(settings) {
        Ok(store) => store,
        Err(StoreError::InUse(_)) => return Ok("in use by a running process".to_owned()),
        Err(error) => return Err(error.to_string()),
    };
    match timeout(DEADLINE, store.probe()).await {
        Ok(probed) => probed.map(|()| REACHABLE.to_owned()).map_err(|error| error.to_string()),
        Err(_) => Err("the store did not answer in time".to_owned()),
    }
}

/// The windows that running processes have learnt, each by its upstream and model.
async fn learnt_windows(settings: &Settings) -> Vec<(String, String)> {
    let Ok(store) = store::open(settings) else { return Vec::new() };
    let Ok(Ok(facts)) = timeout(DEADLINE, store.published(LEARNT_WINDOWS.to_owned())).await else {
        return Vec::new();
    };
    let now = wall_clock();
    let windows = facts.into_iter().filter_map(|(name, fact)| {
        let window = LearntWindow::of_fact(&fact)?.tokens(now)?;
        Some((name, window.to_string()))
    });
    windows.collect()
}

/// The archive connects in the background and reports when it has.
async fn probe_archive(settings: &Settings) -> Result<(), String> {
    let archive = store::archive(settings).map_err(|error| error.to_string())?;
    let Some(archive) = archive else { return Ok(()) };
    let connected = async {
        while !archive.stats().connected {
            sleep(Duration::from_millis(20)).await;
        }
    };
    let result = timeout(DEADLINE, connected).await;
    archive.close(Duration::ZERO).await;
    result.map_err(|_| format!("no connection within {}s", DEADLINE.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::with_port;

    #[test]
    fn an_authority_without_a_port_gets_one() {
        assert_eq!(with_port("api.example.com", 443), "api.example.com:443");
        assert_eq!(with_port("127.0.0.1:80", 443), "127.0.0.1:80");
        assert_eq!(with_port("[::1]", 443), "[::1]:443");
        assert_eq!(with_port("[::1]:8080", 443), "[::1]:8080");
    }
}
