//! Black box: what the real `tidegate` binary tells of itself, to a collector and on `/metrics`.
//!
//! [`scene`] starts the processes; every other module is one promise. The process and the client are those of the proxy suite, the
//! conversations those of the folding suite.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic is the failure message of a test")]

#[path = "../proxy/client.rs"]
#[allow(dead_code, reason = "the proxy suite uses the rest")]
mod client;
#[path = "../proxy/reply.rs"]
#[allow(dead_code, reason = "the proxy suite uses the rest")]
mod reply;
#[path = "../folding/talk.rs"]
#[allow(dead_code, reason = "the folding suite uses the rest")]
mod talk;
#[path = "../proxy/tidegate.rs"]
#[allow(dead_code, reason = "the proxy suite uses the rest")]
mod tidegate;

mod scene;

mod away;
mod cardinality;
mod names;
mod private;
mod propagation;
mod savings;
mod tree;

use std::time::Duration;

/// Far longer than anything takes, so that it only ends a test that hangs, and names what it waited for.
const PATIENCE: Duration = Duration::from_secs(60);

async fn within<T>(what: &str, signal: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, signal).await {
        Ok(value) => value,
        Err(_) => panic!("waited {PATIENCE:?} in vain: {what}"),
    }
}
