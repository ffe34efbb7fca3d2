//! Looks up the addresses of an upstream, one lookup at a time.
//!
//! The system's resolver blocks a thread, for many seconds if a name server does not answer, and nobody can end it. If every request
//! began a lookup of its own, the name of one upstream could keep all threads, and those of the others could not be looked up.

use hyper_util::client::legacy::connect::dns::Name;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use tokio::time::Instant;
use tower_service::Service;

type Lookup = fn(&str) -> io::Result<Vec<SocketAddr>>;

/// The addresses of one name. Clones share its lookups.
#[derive(Clone, Debug)]
pub(super) struct Resolver {
    lookup: Lookup,
    /// The last lookup. Locked while one runs, even if nobody waits for it any more.
    last: Arc<Mutex<Option<Found>>>,
}

#[derive(Debug)]
struct Found {
    begun: Instant,
    addresses: Result<Vec<SocketAddr>, Arc<io::Error>>,
}

impl Resolver {
    pub(super) fn new() -> Resolver {
        Resolver::with(|name| Ok((name, 0).to_socket_addrs()?.collect()))
    }

    fn with(lookup: Lookup) -> Resolver {
        Resolver { lookup, last: Arc::default() }
    }

    async fn resolve(self, name: String) -> io::Result<Vec<SocketAddr>> {
        let asked = Instant::now();
        let mut last = self.last.lock_owned().await;
        // Others may have waited for the same lookup.
        if let Some(found) = last.as_ref().filter(|found| found.begun >= asked) {
            return found.addresses.clone().map_err(io::Error::other);
        }
        let lookup = self.lookup;
        let looking_up = spawn_blocking(move || {
            let begun = Instant::now();
            let addresses = lookup(&name).map_err(Arc::new);
            *last = Some(Found { begun, addresses: addresses.clone() });
            addresses
        });
        looking_up.await.map_err(io::Error::other)?.map_err(io::Error::other)
    }
}

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let resolving = self.clone().resolve(name.as_str().to_owned());
        Box::pin(async move { resolving.await.map(Vec::into_iter) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex as StdMutex;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::{Sender, channel};

    static LOOKUPS: AtomicUsize = AtomicUsize::new(0);
    static HELD: StdMutex<Vec<Sender<()>>> = StdMutex::new(Vec::new());

    /// Waits until the test lets it go on.
    fn held(_: &str) -> io::Result<Vec<SocketAddr>> {
        let (sender, receiver) = channel();
        HELD.lock().unwrap().push(sender);
        LOOKUPS.fetch_add(1, Ordering::SeqCst);
        receiver.recv().map_err(io::Error::other)?;
        Ok(vec![([127, 0, 0, 1], 0).into()])
    }

    async fn lookups(count: usize) {
        while LOOKUPS.load(Ordering::SeqCst) < count {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }

    fn release() {
        HELD.lock().unwrap().pop().unwrap().send(()).unwrap();
    }

    #[tokio::test]
    async fn a_name_takes_one_thread_at_a_time() {
        let resolver = Resolver::with(held);
        let ask = || tokio::spawn(resolver.clone().resolve("upstream".to_owned()));
        let first = ask();
        lookups(1).await;
        // Whoever gives up leaves the lookup running, and nobody begins another beside it.
        first.abort();
        assert!(first.await.unwrap_err().is_cancelled());
        let others: Vec<_> = (0..8).map(|_| ask()).collect();
        tokio::task::yield_now().await;
        release();
        // They asked after that one had begun, and share one of their own.
        lookups(2).await;
        release();
        for other in others {
            assert_eq!(other.await.unwrap().unwrap().len(), 1);
        }
        assert_eq!(LOOKUPS.load(Ordering::SeqCst), 2);
    }
}
