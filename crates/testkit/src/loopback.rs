//! What every server of ours needs: a port, patience, and a loud word where it is not installed.

use std::fmt::Debug;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// Long enough for a machine that builds something at the same time.
const PATIENCE: Duration = Duration::from_secs(30);

const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Asks again and again, and fails loudly in the end.
pub async fn until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    until_ok(what, PATIENCE, async || if condition().await { Ok(()) } else { Err("it is not so") }).await;
}

/// Asks again and again for what another process gives no signal of, and fails with the last error in the end.
pub async fn until_ok<T, E: Debug>(
    what: &str,
    limit: Duration,
    mut ask: impl AsyncFnMut() -> Result<T, E>,
) -> T {
    let end = Instant::now() + limit;
    let mut looks = tokio::time::interval(LOOK_EVERY);
    loop {
        looks.tick().await;
        match ask().await {
            Ok(answer) => return answer,
            Err(error) => {
                assert!(Instant::now() < end, "waited {limit:?} in vain: {what}; last: {error:?}");
            }
        }
    }
}

/// A port that is free, as is the one 10,000 above it, which a cluster uses for itself. Both are below those that the kernel
/// gives to outgoing connections, one of which could otherwise take the port before the server does.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Test processes that run at once start at different places.
    let start = u16::try_from(std::process::id() % 10_000).expect("below 10,000").wrapping_mul(61);
    let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    let candidate = |_| 12_000 + start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % 10_000;
    let found = (0..10_000).map(candidate).find(|port| is_free(*port) && is_free(port + 10_000));
    found.expect("one of 10,000 ports is free")
}

/// For what could not be started: a missing server is loud, and names the package that brings it.
pub(crate) fn missing<T>(error: &std::io::Error, program: &str, package: &str) -> T {
    match error.kind() {
        ErrorKind::NotFound => panic!("`{program}` is not installed: apt install {package}"),
        _ => panic!("`{program}` does not start: {error}"),
    }
}
