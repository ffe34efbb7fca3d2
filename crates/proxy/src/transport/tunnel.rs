//! Passes bytes both ways on a connection that no longer speaks HTTP.

use crate::transport::body::Progress;
use bytes::Bytes;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// How a tunnel ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TunnelEnd {
    /// Both sides closed it.
    Closed,
    /// The client's side broke off, or takes nothing any more.
    ClientBroke,
    /// The upstream's did.
    UpstreamBroke,
    /// Neither side sent anything for too long.
    Idle,
    /// The drain time is over.
    Cut,
}

const BUFFER: usize = 16 * 1024;

/// Runs until both sides have closed. `first` has arrived from the upstream already. `up` and `down` count what passes.
pub(crate) async fn tunnel(
    client: impl AsyncRead + AsyncWrite,
    upstream: impl AsyncRead + AsyncWrite,
    first: Bytes,
    (up, down): (&Progress, &Progress),
    idle_timeout: Duration,
    cut: &CancellationToken,
) -> TunnelEnd {
    let (from_client, to_client) = split(client);
    let (from_upstream, to_upstream) = split(upstream);
    let passing = async {
        tokio::try_join!(
            pass(
                (from_client, TunnelEnd::ClientBroke),
                (to_upstream, TunnelEnd::UpstreamBroke),
                Bytes::new(),
                up
            ),
            pass((from_upstream, TunnelEnd::UpstreamBroke), (to_client, TunnelEnd::ClientBroke), first, down),
        )
    };
    tokio::select! {
        passed = passing => passed.map_or_else(|end| end, |_| TunnelEnd::Closed),
        () = idle([up, down], idle_timeout) => TunnelEnd::Idle,
        () = cut.cancelled() => TunnelEnd::Cut,
    }
}

/// Passes on what arrives until its end. Each side comes with what its failure means.
async fn pass(
    (mut from, from_broke): (impl AsyncRead + Unpin, TunnelEnd),
    (mut to, to_broke): (impl AsyncWrite + Unpin, TunnelEnd),
    first: Bytes,
    progress: &Progress,
) -> Result<(), TunnelEnd> {
    progress.record(first.len());
    to.write_all(&first).await.map_err(|_| to_broke)?;
    let mut buffer = vec![0; BUFFER];
    loop {
        to.flush().await.map_err(|_| to_broke)?;
        let count = from.read(&mut buffer).await.map_err(|_| from_broke)?;
        if count == 0 {
            return to.shutdown().await.map_err(|_| to_broke);
        }
        progress.record(count);
        to.write_all(&buffer[..count]).await.map_err(|_| to_broke)?;
    }
}

/// Ready when nothing has passed either way for this long.
async fn idle(directions: [&Progress; 2], timeout: Duration) {
    loop {
        let last = directions.map(Progress::last_activity);
        let deadline = last[0].max(last[1]) + timeout;
        if deadline <= Instant::now() {
            return;
        }
        sleep_until(deadline).await;
    }
}
