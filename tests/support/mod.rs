//! Shared by the suites: the process under test, its clients, and conversations to send.

pub(crate) mod agent;
pub(crate) mod chat;
pub(crate) mod client;
pub(crate) mod http2;
pub(crate) mod reply;
pub(crate) mod tidegate;

use std::time::Duration;

/// Far longer than anything takes, so it only ends a test that hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Awaits `signal`, and panics with `what` if it takes longer than [`PATIENCE`].
pub(crate) async fn within<T>(what: &str, signal: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, signal).await {
        Ok(value) => value,
        Err(_) => panic!("waited {PATIENCE:?} in vain: {what}"),
    }
}
