//! The open connections of the admin address, of which there are a few.
//!
//! Whoever can reach the address can open connections and leave them. If that could keep probes out, an orchestrator would restart a process
//! that is well. So a new connection always gets in, and takes the place of one that is idle, or else of the oldest.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;

/// The maximum number of open connections. Far more than probes, a scraper and a few people need, and few enough that idle connections cannot
/// exhaust the file descriptors that proxied requests need.
pub(crate) const MAX_CONNECTIONS: usize = 128;

#[derive(Debug, Default)]
pub(crate) struct Connections {
    /// The oldest first.
    open: Mutex<Vec<Arc<Place>>>,
}

/// The place of one connection.
#[derive(Debug)]
struct Place {
    activity: AtomicU8,
    /// Closed when another has taken the place.
    own: Semaphore,
}

/// What a connection does. Those that do least are ended first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Activity {
    Idle,
    Serving,
    /// Sends events to a dashboard, of which there are few.
    Streaming,
}

/// An open connection, until it is dropped.
#[derive(Debug)]
pub(crate) struct Connection {
    connections: Arc<Connections>,
    place: Arc<Place>,
}

impl Connections {
    /// Adds a connection, and ends another if there are too many.
    pub(crate) fn enter(self: &Arc<Self>) -> Connection {
        let place = Arc::new(Place { activity: AtomicU8::new(Activity::Idle as u8), own: Semaphore::new(0) });
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() >= MAX_CONNECTIONS {
            // The first of the least active is the oldest of them.
            let least =
                open.iter().enumerate().min_by_key(|(_, place)| place.activity.load(Ordering::Relaxed));
            if let Some(index) = least.map(|(index, _)| index) {
                open.remove(index).own.close();
            }
        }
        open.push(place.clone());
        Connection { connections: self.clone(), place }
    }
}

impl Connection {
    pub(crate) fn does(&self, activity: Activity) {
        self.place.activity.store(activity as u8, Ordering::Relaxed);
    }

    pub(crate) fn is_streaming(&self) -> bool {
        self.place.activity.load(Ordering::Relaxed) == Activity::Streaming as u8
    }

    /// Waits until another has taken the place.
    pub(crate) async fn lost(&self) {
        let _ = self.place.own.acquire().await;
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut open = self.connections.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|place| !Arc::ptr_eq(place, &self.place));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_connection_takes_the_place_of_the_oldest_that_does_least() {
        let connections = Arc::<Connections>::default();
        let open: Vec<Connection> = (0..MAX_CONNECTIONS).map(|_| connections.enter()).collect();
        let is_lost = |index: usize| open[index].place.own.is_closed();
        for one in &open {
            one.does(Activity::Serving);
        }
        open[0].does(Activity::Streaming);
        open[7].does(Activity::Idle);
        let newest = connections.enter();
        assert!(is_lost(7) && (0..MAX_CONNECTIONS).filter(|index| is_lost(*index)).count() == 1);
        newest.does(Activity::Serving);
        let next = connections.enter();
        assert!(is_lost(1), "nobody is idle");
        drop((open, newest, next));
        assert_eq!(connections.open.lock().unwrap().len(), 0);
    }
}
