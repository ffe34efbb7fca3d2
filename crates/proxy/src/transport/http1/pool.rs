//! Idle connections to one upstream.

use crate::transport::stream::Stream;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, interval};

/// The idle connections of one worker to one upstream.
#[derive(Debug)]
pub(super) struct Pool {
    connections: Mutex<Connections>,
    max_idle: Duration,
}

#[derive(Debug, Default)]
struct Connections {
    /// The connection used last is at the back and is reused first, so that the others can expire.
    idle: VecDeque<Idle>,
    /// How long the upstream says that it keeps idle connections.
    said: Option<Duration>,
    /// The least that it was seen to keep one, and when.
    seen: Option<(Duration, Instant)>,
}

#[derive(Debug)]
struct Idle {
    stream: Stream,
    since: Instant,
}

/// How often closed and expired connections are dropped, and so how precisely we know when the upstream closes them.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// How much earlier than the upstream we stop using a connection: a request that crosses the upstream's close is lost.
const MARGIN: Duration = Duration::from_secs(2);

/// Connections are kept at least this long, and a little while after each request whatever the upstream does.
const MIN_IDLE: Duration = Duration::from_secs(1);

/// How long an observation counts. The upstream may have closed its connections only because it was restarted.
const SEEN_FOR: Duration = Duration::from_secs(600);

/// The most idle connections of one worker to one upstream. What a burst of requests has opened must not keep the file descriptors that
/// clients need.
const MAX_CONNECTIONS: usize = 256;

impl Pool {
    /// Must be called on the worker's runtime.
    pub(super) fn new(max_idle: Duration) -> Arc<Pool> {
        let pool = Arc::new(Pool { connections: Mutex::default(), max_idle });
        let watched = Arc::downgrade(&pool);
        tokio::spawn(async move {
            let mut ticks = interval(SWEEP_INTERVAL);
            loop {
                ticks.tick().await;
                let Some(pool) = watched.upgrade() else { break };
                pool.sweep();
            }
        });
        pool
    }

    pub(super) fn take(&self) -> Option<Stream> {
        let mut connections = self.connections();
        let max_idle = connections.max_idle(self.max_idle);
        while let Some(mut candidate) = connections.idle.pop_back() {
            if candidate.since.elapsed() >= max_idle {
                continue;
            }
            if candidate.stream.is_open_and_silent() {
                return Some(candidate.stream);
            }
            connections.closed_after(candidate.since.elapsed());
        }
        None
    }

    pub(super) fn give_back(&self, stream: Stream) {
        let mut connections = self.connections();
        if connections.idle.len() >= MAX_CONNECTIONS {
            connections.idle.pop_front();
        }
        connections.idle.push_back(Idle { stream, since: Instant::now() });
    }

    /// Adapts to how long the upstream says that it keeps idle connections.
    pub(super) fn suit(&self, keep_alive: Duration) {
        self.connections().said = Some(keep_alive);
    }

    fn sweep(&self) {
        let mut connections = self.connections();
        let max_idle = connections.max_idle(self.max_idle);
        let mut closed = None;
        connections.idle.retain_mut(|idle| {
            let age = idle.since.elapsed();
            let is_open = idle.stream.is_open_and_silent();
            if !is_open {
                closed = Some(closed.map_or(age, |least: Duration| least.min(age)));
            }
            is_open && age < max_idle
        });
        if let Some(age) = closed {
            connections.closed_after(age);
        }
    }

    fn connections(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connections {
    /// How long a connection may be idle and still be used.
    fn max_idle(&self, most: Duration) -> Duration {
        let kept = self.seen().map(|(kept, _)| kept).into_iter().chain(self.said).min();
        kept.map_or(most, |kept| kept.saturating_sub(MARGIN).clamp(MIN_IDLE, most))
    }

    /// An observation of a longer time says nothing about an earlier one of a shorter time, and does not prolong it.
    fn closed_after(&mut self, age: Duration) {
        let least = self.seen().filter(|(kept, _)| *kept < age);
        self.seen = least.or(Some((age, Instant::now())));
    }

    fn seen(&self) -> Option<(Duration, Instant)> {
        self.seen.filter(|(_, at)| at.elapsed() < SEEN_FOR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::{TcpListener, TcpStream};
    use tokio::time::{advance, pause};

    async fn connection() -> (Stream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (Stream::Plain(stream), listener.accept().await.unwrap().0)
    }

    #[tokio::test]
    async fn connections_are_used_for_as_long_as_the_upstream_keeps_them() {
        let pool = Pool::new(Duration::from_secs(50));
        let (stream, _upstream) = connection().await;
        pause();
        pool.give_back(stream);
        advance(Duration::from_secs(49)).await;
        let stream = pool.take().expect("nothing is known of the upstream");
        pool.suit(Duration::from_secs(5));
        pool.give_back(stream);
        advance(Duration::from_millis(2900)).await;
        let stream = pool.take().expect("the upstream keeps it for longer");
        pool.give_back(stream);
        advance(Duration::from_millis(3100)).await;
        assert!(pool.take().is_none(), "the upstream may be closing it");
    }

    #[tokio::test]
    async fn a_burst_leaves_a_bounded_number_of_connections() {
        let pool = Pool::new(Duration::from_secs(50));
        let mut upstreams = Vec::new();
        for _ in 0..MAX_CONNECTIONS + 10 {
            let (stream, upstream) = connection().await;
            pool.give_back(stream);
            upstreams.push(upstream);
        }
        assert_eq!(pool.connections().idle.len(), MAX_CONNECTIONS);
        // Those that were used last are kept.
        let kept = pool.take().unwrap();
        let Stream::Plain(kept) = kept else { panic!("it is plain") };
        assert_eq!(kept.local_addr().unwrap(), upstreams.last().unwrap().peer_addr().unwrap());
    }

    #[tokio::test]
    async fn a_restart_is_forgotten() {
        let pool = Pool::new(Duration::from_secs(50));
        let (stream, _upstream) = connection().await;
        pause();
        pool.connections().closed_after(Duration::from_secs(1));
        for _ in 0..3 {
            advance(Duration::from_secs(250)).await;
            pool.suit(Duration::from_secs(30));
            pool.connections().closed_after(Duration::from_secs(30));
        }
        pool.give_back(stream);
        advance(Duration::from_secs(20)).await;
        assert!(pool.take().is_some(), "it keeps connections for thirty seconds");
    }

    #[tokio::test]
    async fn an_upstream_that_closes_early_is_noticed() {
        let pool = Pool::new(Duration::from_secs(50));
        let (stream, upstream) = connection().await;
        let (other, _upstream) = connection().await;
        pause();
        pool.give_back(stream);
        advance(Duration::from_secs(5)).await;
        drop(upstream);
        tokio::time::resume();
        while pool.connections().seen.is_none() {
            pool.sweep();
            tokio::task::yield_now().await;
        }
        pause();
        pool.give_back(other);
        advance(Duration::from_secs(4)).await;
        assert!(pool.take().is_none());
    }
}
