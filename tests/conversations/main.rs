//! Black box: what went through the real `tidegate` binary is read back, by its admin API and by its command.
//!
//! [`talk`] has conversations and [`ask`] asks for them; every other module is one behaviour. The process, the client and the
//! agent are those of the other suites.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic is the failure message of a test")]

#[path = "../masking/agent.rs"]
#[allow(dead_code, reason = "the masking suite uses the rest")]
mod agent;
#[path = "../proxy/client.rs"]
#[allow(dead_code, reason = "the proxy suite uses the rest")]
mod client;
#[path = "../proxy/reply.rs"]
#[allow(dead_code, reason = "the proxy suite uses the rest")]
mod reply;
#[path = "../proxy/tidegate.rs"]
#[allow(dead_code, reason = "the proxy suite uses the rest")]
mod tidegate;

mod ask;
mod talk;

mod access;
mod audit;
mod diff;
mod encryption;
mod many;
mod memory;
mod memory_text;
mod reading;
mod removal;
mod restart;
mod summaries;
mod tenants;
mod terminal;

use std::time::Duration;

/// Far longer than anything takes, so that it only ends a test that hangs, and names what it waited for.
const PATIENCE: Duration = Duration::from_secs(60);

async fn within<T>(what: &str, signal: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, signal).await {
        Ok(value) => value,
        Err(_) => panic!("waited {PATIENCE:?} in vain: {what}"),
    }
}
