//! Idle connections to one upstream.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, interval};

/// The idle connections of one worker to one upstream.
#[derive(Debug)]
pub(super) struct Pool {
    /// The connection used last is at the back and is reused first, so that the others can expire.
    idle: Mutex<VecDeque<Idle>>,
    max_idle: Duration,
}

#[derive(Debug)]
struct Idle {
    stream: TcpStream,
    since: Instant,
}

/// How often closed and expired connections are dropped. This only limits how long a closed connection keeps its file
/// descriptor, because every connection is checked before it is reused.
const SWEEP_INTERVAL: Duration = Duration::from_secs(5);

impl Pool {
    /// Must be called on the worker's runtime.
    pub(super) fn new(max_idle: Duration) -> Arc<Pool> {
        let pool = Arc::new(Pool { idle: Mutex::default(), max_idle });
        let watched = Arc::downgrade(&pool);
        tokio::spawn(async move {
            let mut ticks = interval(SWEEP_INTERVAL);
            loop {
                ticks.tick().await;
                let Some(pool) = watched.upgrade() else { break };
                pool.idle().retain(|idle| pool.is_usable(idle));
            }
        });
        pool
    }

    pub(super) fn take(&self) -> Option<TcpStream> {
        let mut idle = self.idle();
        while let Some(candidate) = idle.pop_back() {
            if self.is_usable(&candidate) {
                return Some(candidate.stream);
            }
        }
        None
    }

    pub(super) fn give_back(&self, stream: TcpStream) {
        self.idle().push_back(Idle { stream, since: Instant::now() });
    }

    fn is_usable(&self, idle: &Idle) -> bool {
        idle.since.elapsed() < self.max_idle && is_open_and_silent(&idle.stream)
    }

    fn idle(&self) -> MutexGuard<'_, VecDeque<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An idle connection that is readable was closed by the upstream, or holds bytes that belong to no request.
fn is_open_and_silent(stream: &TcpStream) -> bool {
    matches!(stream.try_read(&mut [0]), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}
