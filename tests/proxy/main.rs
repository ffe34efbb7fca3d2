//! Black box: the real `tidegate` binary between a client that speaks bytes and a mock upstream that records bytes.
//!
//! [`tidegate`] starts the process, [`client`] and [`http2`] talk to it; every other module is one behaviour.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic is the failure message of a test")]

mod client;
mod http2;
mod reply;
mod tidegate;

mod access_log;
mod broken_answers;
mod cancel;
mod chunked;
mod cli;
mod compressed;
mod conversation;
mod drain;
mod expect;
mod framing;
mod headers;
mod limits;
mod listening;
mod odd_requests;
mod paths;
mod reload;
mod routes;
mod streaming;
mod timeouts;
mod tls;
mod transparent;

use std::time::Duration;

/// Far longer than anything takes, so that it only ends a test that hangs, and names what it waited for.
const PATIENCE: Duration = Duration::from_secs(20);

async fn within<T>(what: &str, signal: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, signal).await {
        Ok(value) => value,
        Err(_) => panic!("waited {PATIENCE:?} in vain: {what}"),
    }
}
