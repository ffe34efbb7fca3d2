//! A connection and its streams, as the requests that share it see them.

use bytes::Bytes;
use h2::client::SendRequest;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::time::Instant;

#[derive(Debug)]
pub(super) struct Shared {
    sender: SendRequest<Bytes>,
    active: AtomicUsize,
    /// Whether the connection takes no more requests.
    is_closing: AtomicBool,
    idle_since: Mutex<Instant>,
}

/// The right to one stream of a connection, for as long as it is held.
#[derive(Debug)]
pub(in crate::transport) struct Lease {
    connection: Arc<Shared>,
}

/// The most streams on one connection, if the upstream allows as many.
pub(super) const MAX_STREAMS: usize = 128;

impl Shared {
    pub(super) fn new(sender: SendRequest<Bytes>) -> Arc<Shared> {
        Arc::new(Shared {
            sender,
            active: AtomicUsize::new(0),
            is_closing: AtomicBool::new(false),
            idle_since: Mutex::new(Instant::now()),
        })
    }

    /// Returns a stream, if any is left.
    pub(super) fn lease(self: &Arc<Self>) -> Option<Lease> {
        let most = self.sender.current_max_send_streams().min(MAX_STREAMS);
        (self.active.load(Ordering::Relaxed) < most).then(|| Lease::new(self))
    }

    /// Whether the connection can be given to another request. An upstream that goes away does not answer requests that it gets later, and
    /// may close a connection that was idle for long just as one is sent.
    pub(super) fn takes_requests(&self, max_idle: Duration) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        let is_refused = matches!(self.sender.clone().poll_ready(&mut cx), Poll::Ready(Err(_)));
        let is_stale = self.idle().is_some_and(|idle| idle > max_idle);
        if is_refused || is_stale {
            self.close();
        }
        !self.is_closing.load(Ordering::Relaxed)
    }

    /// Gives out no more streams. The connection ends with its last one.
    pub(super) fn close(&self) {
        self.is_closing.store(true, Ordering::Relaxed);
    }

    /// How long the connection has had no request; `None` while it has one.
    pub(super) fn idle(&self) -> Option<Duration> {
        (self.active.load(Ordering::Relaxed) == 0).then(|| self.idle_since().elapsed())
    }

    fn idle_since(&self) -> MutexGuard<'_, Instant> {
        self.idle_since.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lease {
    pub(super) fn new(connection: &Arc<Shared>) -> Lease {
        connection.active.fetch_add(1, Ordering::Relaxed);
        Lease { connection: connection.clone() }
    }

    pub(super) fn sender(&self) -> SendRequest<Bytes> {
        self.connection.sender.clone()
    }

    pub(super) fn close_connection(&self) {
        self.connection.close();
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.connection.active.fetch_sub(1, Ordering::Relaxed) == 1 {
            *self.connection.idle_since() = Instant::now();
        }
    }
}
