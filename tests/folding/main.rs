//! Black box: the real `tidegate` binary folds: old messages leave a request only for a summary that stands in it.
//!
//! [`talk`] writes the requests, [`forwarded`] reads what reached the upstream, [`scene`] starts the processes; every other
//! module is one behaviour. The process and the client are those of the proxy suite.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic is the failure message of a test")]

#[path = "../proxy/client.rs"]
#[allow(dead_code, reason = "the proxy suite uses the rest")]
mod client;
#[path = "../proxy/reply.rs"]
#[allow(dead_code, reason = "the proxy suite uses the rest")]
mod reply;
#[path = "../proxy/tidegate.rs"]
#[allow(dead_code, reason = "the proxy suite uses the rest")]
mod tidegate;

mod forwarded;
mod scene;
mod talk;

mod background;
mod canary;
mod crash;
mod deleted;
mod forged;
mod hostile;
mod inline;
mod keys;
mod marker;
mod never_drop;
mod property;
mod replicas;
mod restart;

use std::time::Duration;

/// Far longer than anything takes, so that it only ends a test that hangs, and names what it waited for.
const PATIENCE: Duration = Duration::from_secs(60);

async fn within<T>(what: &str, signal: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, signal).await {
        Ok(value) => value,
        Err(_) => panic!("waited {PATIENCE:?} in vain: {what}"),
    }
}
