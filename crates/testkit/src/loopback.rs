//! Shared by all servers: free ports, polling, and a clear message if a program is not installed.

use std::fmt::Debug;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// Long enough for a machine that is building at the same time.
const PATIENCE: Duration = Duration::from_secs(30);

const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Polls `condition` until it is true. Panics with `what` after a while.
pub async fn until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    until_ok(what, PATIENCE, async || if condition().await { Ok(()) } else { Err("false") }).await;
}

/// Polls `ask` until it succeeds, for events that another process gives no signal of. Panics with the last error after `limit`.
pub async fn until_ok<T, E: Debug>(
    what: &str,
    limit: Duration,
    mut ask: impl AsyncFnMut() -> Result<T, E>,
) -> T {
    let end = Instant::now() + limit;
    let mut ticks = tokio::time::interval(POLL_INTERVAL);
    loop {
        ticks.tick().await;
        match ask().await {
            Ok(answer) => return answer,
            Err(error) => {
                assert!(Instant::now() < end, "timed out after {limit:?}: {what}; last result: {error:?}");
            }
        }
    }
}

/// A free port. The port 10,000 above it, which a cluster uses for its bus, is free as well. Both are below the ephemeral range, so
/// that no outgoing connection takes them before the server does.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Concurrent test processes start at different ports.
    let start = u16::try_from(std::process::id() % 10_000).expect("below 10,000").wrapping_mul(61);
    let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    let candidate = |_| 12_000 + start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % 10_000;
    let found = (0..10_000).map(candidate).find(|port| is_free(*port) && is_free(port + 10_000));
    found.expect("one of 10,000 ports is free")
}

/// Panics for a program that could not be started. Names the package if it is not installed.
pub(crate) fn missing<T>(error: &std::io::Error, program: &str, package: &str) -> T {
    match error.kind() {
        ErrorKind::NotFound => panic!("`{program}` is not installed: apt install {package}"),
        _ => panic!("`{program}` does not start: {error}"),
    }
}
