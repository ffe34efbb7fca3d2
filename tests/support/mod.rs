//! Shared by the suites: the process under test, its clients, and conversations to send.

pub(crate) mod agent;
pub(crate) mod chat;
pub(crate) mod client;
pub(crate) mod command;
pub(crate) mod cores;
pub(crate) mod http2;
pub(crate) mod metrics;
pub(crate) mod raw_http2;
pub(crate) mod reply;
pub(crate) mod tidegate;

use std::fmt::Debug;
use std::time::Duration;
use tidegate_testkit::until_ok;

/// Far longer than anything takes, so it only ends a test that hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Awaits `signal`, and panics with `what` if it takes longer than [`PATIENCE`].
pub(crate) async fn within<T>(what: &str, signal: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, signal).await {
        Ok(value) => value,
        Err(_) => panic!("timed out after {PATIENCE:?}: {what}"),
    }
}

/// Calls `ask` again and again until its result `is_done`. Panics with the last result after `limit`.
pub(crate) async fn until<T: Debug>(
    what: &str,
    limit: Duration,
    ask: impl AsyncFn() -> T,
    is_done: impl Fn(&T) -> bool,
) -> T {
    let asked = async || {
        let result = ask().await;
        if is_done(&result) { Ok(result) } else { Err(result) }
    };
    until_ok(what, limit, asked).await
}
