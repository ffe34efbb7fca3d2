//! Black box: each profile does what the document says that it reproduces.
//!
//! One directory a profile, each with a page that maps every rule of the document to its test. [`scene`] starts the processes and reads what
//! reached the upstream. The process and the client are those of the proxy suite.

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

mod operator;
mod scene;
mod summarizer;

#[path = "agent/mod.rs"]
mod agent;
#[path = "assistant/mod.rs"]
mod assistant;
#[path = "budgeted-chat/mod.rs"]
mod budgeted_chat;
#[path = "rolling-memory/mod.rs"]
mod rolling_memory;
#[path = "story/mod.rs"]
mod story;

use std::time::Duration;

/// Far longer than anything takes, so that it only ends a test that hangs, and names what it waited for.
const PATIENCE: Duration = Duration::from_secs(60);

async fn within<T>(what: &str, signal: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, signal).await {
        Ok(value) => value,
        Err(_) => panic!("waited {PATIENCE:?} in vain: {what}"),
    }
}
