//! `tidegate replay`: what it says of recorded conversations, and that it edits as the running proxy does. `tidegate demo`, which plays one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a test fails, in its helpers too"
)]

#[path = "../proxy/client.rs"]
#[allow(dead_code, reason = "the proxy suite uses the rest")]
mod client;
#[path = "../proxy/reply.rs"]
#[allow(dead_code, reason = "the proxy suite uses the rest")]
mod reply;
#[path = "../proxy/tidegate.rs"]
#[allow(dead_code, reason = "the proxy suite uses the rest")]
mod tidegate;

mod command;

mod answers;
mod demo;
mod forwarded;
mod inputs;

use std::time::Duration;

/// Far longer than anything takes, so that it only ends a test that hangs, and names what it waited for.
const PATIENCE: Duration = Duration::from_secs(60);

async fn within<T>(what: &str, signal: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, signal).await {
        Ok(value) => value,
        Err(_) => panic!("waited {PATIENCE:?} in vain: {what}"),
    }
}
