//! What is known of a connection, by its guard and by the service of its requests.

use super::Violation;
use crate::transport::overload::{Charge, Limit, MemoryBudget, SMALL, Share};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

/// What the guard of a connection and the service of its requests tell each other.
#[derive(Debug, Default)]
pub(crate) struct ConnectionState {
    violation: OnceLock<Violation>,
    is_switched: AtomicBool,
    /// Requests in flight, and how many of them have a response that the client does not take.
    active: AtomicUsize,
    stalled: AtomicUsize,
    abandoned: Notify,
    /// Requests so far.
    served: AtomicUsize,
    /// What an incomplete head takes; `None` if it is not accounted for.
    head: Option<Charge>,
    lacks_memory: AtomicBool,
}

pub(crate) type SharedState = Arc<ConnectionState>;

impl ConnectionState {
    /// A connection whose memory is part of this budget.
    pub(crate) fn accounted(budget: &Arc<MemoryBudget>) -> ConnectionState {
        ConnectionState { head: Some(Charge::new(budget)), ..ConnectionState::default() }
    }

    /// Only the first violation counts, because the connection is closed after it.
    pub(super) fn violate(&self, violation: Violation) {
        let _ = self.violation.set(violation);
    }

    /// Accounts for an incomplete head of this length. Says whether there is memory for it.
    pub(super) fn hold(&self, bytes: usize) -> bool {
        let Some(head) = &self.head else { return true };
        let bytes = bytes.saturating_sub(FREE_HEAD) as u64;
        let more = bytes.saturating_sub(head.bytes());
        head.shrink_to(bytes);
        let is_held = more == 0 || head.grow(more, Share::Small);
        self.lacks_memory.fetch_or(!is_held, Ordering::Relaxed);
        is_held
    }

    /// Whether a head was refused because there was no memory for it.
    pub(crate) fn lacks_memory(&self) -> bool {
        self.lacks_memory.load(Ordering::Relaxed)
    }

    /// The first violation on the connection.
    pub(crate) fn violation(&self) -> Option<Violation> {
        self.violation.get().copied()
    }

    /// What the client sends from now on is no longer HTTP.
    pub(crate) fn switch_protocols(&self) {
        self.is_switched.store(true, Ordering::Relaxed);
    }

    /// Counts a request until the guard is dropped. A client may send `unread` bytes of its body before anybody reads them, which is refused
    /// if there is no memory for them.
    pub(crate) fn enter(self: &Arc<Self>, unread: u64) -> Result<ActiveRequest, Limit> {
        self.served.fetch_add(1, Ordering::Relaxed);
        let before = self.active.fetch_add(1, Ordering::Relaxed);
        let mut request = ActiveRequest { connection: self.clone(), window: None };
        // What follows shares the window of the connection.
        if before < WINDOWS
            && unread > 0
            && let Some(head) = &self.head
        {
            let window = unread.min(u64::from(STREAM_WINDOW));
            let share = if window <= SMALL { Share::Small } else { Share::UnderWay };
            let charge = head.another(0);
            if !charge.grow(window, share) {
                return Err(Limit::Memory);
            }
            request.window = Some(charge);
        }
        Ok(request)
    }

    /// Waits until no request has been in flight for as long as `allowed` says, which is asked now and then.
    pub(crate) async fn idle(&self, step: Duration, allowed: impl Fn() -> Duration) {
        let (mut served, mut since) = (usize::MAX, Instant::now());
        loop {
            let now = self.served.load(Ordering::Relaxed);
            if self.active.load(Ordering::Relaxed) > 0 || now != served {
                (served, since) = (now, Instant::now());
            } else if since.elapsed() >= allowed() {
                return;
            }
            sleep(step.min(allowed())).await;
        }
    }

    /// Counts a response that the client has not taken for too long, until the guard is dropped. hyper does not ask for the body of such a
    /// stream any more, so it cannot be ended alone. If there are several, and they are half of what the client has asked for, the connection ends.
    pub(crate) fn stall(self: &Arc<Self>) -> StalledResponse {
        let stalled = self.stalled.fetch_add(1, Ordering::Relaxed) + 1;
        if stalled >= MIN_STALLED && stalled * 2 >= self.active.load(Ordering::Relaxed) {
            self.abandoned.notify_one();
        }
        StalledResponse(self.clone())
    }

    /// Waits until the connection is to be ended because its client takes no responses.
    pub(crate) async fn abandoned(&self) {
        self.abandoned.notified().await;
    }

    pub(super) fn is_switched(&self) -> bool {
        self.is_switched.load(Ordering::Relaxed)
    }
}

/// What an incomplete head takes without being accounted for: nearly all of them.
const FREE_HEAD: usize = 4 * 1024;

/// How much a client of HTTP/2 may send on a stream, and on all streams of a connection, before it is read.
pub(crate) const STREAM_WINDOW: u32 = 256 * 1024;
pub(crate) const CONNECTION_WINDOW: u32 = 1024 * 1024;

/// The streams that can fill the window of their connection.
const WINDOWS: usize = (CONNECTION_WINDOW / STREAM_WINDOW) as usize;

/// A connection with fewer stalled responses is kept for its other streams, which may be those of other people behind a proxy.
const MIN_STALLED: usize = 8;

/// A request in flight on a connection.
#[derive(Debug)]
pub(crate) struct ActiveRequest {
    connection: SharedState,
    /// What its client may have sent that nobody has read.
    window: Option<Charge>,
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        self.connection.active.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A response that its client does not take.
#[derive(Debug)]
pub(crate) struct StalledResponse(SharedState);

impl Drop for StalledResponse {
    fn drop(&mut self) {
        self.0.stalled.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_and_windows_are_part_of_the_budget() {
        let budget = MemoryBudget::new(1 << 20);
        let state = Arc::new(ConnectionState::accounted(&budget));
        assert!(state.hold(FREE_HEAD) && budget.used() == 0);
        assert!(state.hold(FREE_HEAD + 1_000) && budget.used() == 1_000);
        assert!(state.hold(0) && budget.used() == 0);
        assert!(!state.hold(2 << 20) && budget.used() == 0);

        let small = state.enter(2_000).unwrap();
        assert_eq!(budget.used(), 2_000);
        let large: Vec<_> = (0..3).map(|_| state.enter(32 << 20).unwrap()).collect();
        assert_eq!(budget.used(), 2_000 + 3 * u64::from(STREAM_WINDOW));
        // The others share the connection's window, but those of another connection do not.
        assert!(state.enter(32 << 20).is_ok());
        let other = Arc::new(ConnectionState::accounted(&budget));
        assert_eq!(other.enter(32 << 20).unwrap_err(), Limit::Memory);
        assert_eq!(other.active.load(Ordering::Relaxed), 0);
        drop((small, large));
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_when_it_has_had_no_request_for_a_while() {
        let state = SharedState::default();
        let minute = Duration::from_secs(60);
        let idle = async |allowed: Duration| {
            let started = Instant::now();
            state.idle(Duration::from_secs(10), || allowed).await;
            started.elapsed()
        };
        assert_eq!(idle(minute).await, minute);
        let active = state.enter(0).unwrap();
        let served = async {
            sleep(Duration::from_secs(95)).await;
            drop(active);
        };
        let ((), waited) = tokio::join!(served, idle(minute));
        assert_eq!(waited, Duration::from_secs(150), "a minute after it was last seen active");
    }
}
