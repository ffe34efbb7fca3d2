//! What all connections and requests may use together: memory, connections, requests in flight.
//!
//! Everything here is an atomic counter, so that admitting a request takes no lock. Only the connections of an address are counted under
//! one, when a connection is opened or closed.

mod connections;
mod memory;
mod system;

pub(crate) use connections::{ConnectionPermit, Connections};
pub(crate) use memory::{Charge, MemoryBudget, SMALL, Share};
pub(crate) use system::memory as system_memory;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use tidegate_config::Server;

/// The limits of the process and what is in use.
#[derive(Debug)]
pub(crate) struct Overload {
    pub(crate) memory: Arc<MemoryBudget>,
    pub(crate) connections: Arc<Connections>,
    requests: AtomicUsize,
    max_requests: AtomicUsize,
    /// By [`Limit`].
    refused: [AtomicU64; Limit::ALL.len()],
    /// When a limit last refused something, in milliseconds since the start of the process; 0 for never.
    last_refusal: AtomicU64,
    started: std::time::Instant,
}

/// A limit that refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// `server.max_memory`
    Memory,
    /// `server.max_requests`
    Requests,
    /// `server.max_queued_work`
    Queue,
    /// What is left is kept for conversations that are under way.
    NewConversations,
    /// `server.max_connections`
    Connections,
    /// `server.max_connections_per_address`
    AddressConnections,
}

impl Limit {
    pub(crate) const ALL: [Limit; 6] = [
        Limit::Memory,
        Limit::Requests,
        Limit::Queue,
        Limit::NewConversations,
        Limit::Connections,
        Limit::AddressConnections,
    ];

    /// The value of the metric's label.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Limit::Memory => "memory",
            Limit::Requests => "requests",
            Limit::Queue => "queue",
            Limit::NewConversations => "new_conversations",
            Limit::Connections => "connections",
            Limit::AddressConnections => "address_connections",
        }
    }
}

/// For how long after a refusal the process reports that it is overloaded.
const OVERLOADED_MILLIS: u64 = 2_000;

impl Overload {
    pub(crate) fn new(settings: &Server) -> Arc<Overload> {
        let overload = Overload {
            memory: MemoryBudget::new(memory_limit(settings)),
            connections: Connections::new(settings),
            requests: AtomicUsize::new(0),
            max_requests: AtomicUsize::new(0),
            refused: Default::default(),
            last_refusal: AtomicU64::new(0),
            started: std::time::Instant::now(),
        };
        overload.reload(settings);
        Arc::new(overload)
    }

    /// Applies other limits. Connections keep those of the start.
    pub(crate) fn reload(&self, settings: &Server) {
        self.memory.set_limit(memory_limit(settings));
        let most = usize::try_from(settings.max_requests.get()).unwrap_or(usize::MAX);
        self.max_requests.store(most, Ordering::Relaxed);
    }

    /// Counts a request until the permit is dropped. Refuses it if there are too many.
    pub(crate) fn enter(self: &Arc<Self>) -> Result<RequestPermit, Limit> {
        let permit = RequestPermit(self.clone());
        if self.requests.fetch_add(1, Ordering::Relaxed) >= self.max_requests.load(Ordering::Relaxed) {
            return Err(Limit::Requests);
        }
        Ok(permit)
    }

    /// Whether so many requests are in flight that the last places are kept for conversations under way.
    pub(crate) fn is_crowded(&self) -> bool {
        let requests = self.requests.load(Ordering::Relaxed);
        requests * 10 > self.max_requests.load(Ordering::Relaxed) * 9
    }

    /// Counts a refusal.
    pub(crate) fn refused(&self, limit: Limit) {
        self.refused[limit as usize].fetch_add(1, Ordering::Relaxed);
        self.last_refusal.store(self.millis().max(1), Ordering::Relaxed);
    }

    /// Whether a limit has just refused something, or is about to.
    pub(crate) fn is_overloaded(&self) -> bool {
        let last = self.last_refusal.load(Ordering::Relaxed);
        self.is_crowded()
            || self.memory.is_crowded()
            || (last > 0 && self.millis().saturating_sub(last) < OVERLOADED_MILLIS)
    }

    /// Refusals so far, by limit.
    pub(crate) fn refusals(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Limit::ALL
            .map(|limit| (limit.name(), self.refused[limit as usize].load(Ordering::Relaxed)))
            .into_iter()
    }

    /// About what open connections take while they are idle.
    pub(crate) fn connection_bytes(&self) -> u64 {
        self.connections.open() as u64 * system::CONNECTION_BYTES
    }

    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    fn millis(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// A request in flight.
#[derive(Debug)]
pub(crate) struct RequestPermit(Arc<Overload>);

impl Drop for RequestPermit {
    fn drop(&mut self) {
        self.0.requests.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The share of the machine's memory that bodies and answers may take by default.
const DEFAULT_SHARE: u64 = 4;

/// The least that is useful by default: a few bodies of the default maximum size.
const MIN_DEFAULT: u64 = 128 << 20;

fn memory_limit(settings: &Server) -> u64 {
    settings.max_memory.unwrap_or_else(|| system::memory().map_or(1 << 30, default_of))
}

/// In a container that has room for little more than the process itself, even less.
fn default_of(memory: u64) -> u64 {
    (memory / DEFAULT_SHARE).max(MIN_DEFAULT.min(memory / 3))
}

#[cfg(test)]
mod tests;
