//! Black box: the real `tidegate` binary masks, reports, refuses and remembers.
//!
//! [`agent`] writes the requests of an agent; every other module is one behaviour. The process and the client are those of
//! the proxy suite.

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

mod agent;

mod calibration;
mod conversations;
mod hostile;
mod latency;
mod masks;
mod observations;
mod overrides;
mod refusals;
mod reports;

use std::time::Duration;

/// Far longer than anything takes, so that it only ends a test that hangs, and names what it waited for.
const PATIENCE: Duration = Duration::from_secs(60);

async fn within<T>(what: &str, signal: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, signal).await {
        Ok(value) => value,
        Err(_) => panic!("waited {PATIENCE:?} in vain: {what}"),
    }
}
