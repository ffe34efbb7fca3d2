//! The Redis store while its servers freeze, crash, fill up, fail over or contain unexpected data.
#![allow(clippy::unwrap_used, reason = "a panic in a test is its failure message")]

mod cluster;
mod concurrency;
mod connection;
mod error_response;
mod sentinel;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tidegate_store::{ConversationKey, Generation, Journal, MessageId, RedisStore, Store, StoreError, Turn};
use tidegate_testkit::until_ok;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval};

const HOUR: Duration = Duration::from_secs(3600);

/// The timeout of each operation.
const TIMEOUT: Duration = Duration::from_millis(400);
/// The same with a margin for a busy machine.
const BOUND: Duration = Duration::from_millis(900);

fn open(url: &str) -> RedisStore {
    RedisStore::open(url, HOUR, TIMEOUT).unwrap()
}

fn key(number: u8) -> ConversationKey {
    ConversationKey([number; 16])
}

fn journal(number: u8) -> Journal {
    Journal { messages: vec![(MessageId([number; 32]), "m".into())], waypoint: Some(vec![number].into()) }
}

fn turn(number: u8) -> Turn {
    Turn {
        id: [number; 16],
        end: Some(MessageId([number; 32])),
        at: 1_000_000 + u64::from(number),
        record: vec![number].into(),
        counts: vec![("tokens", 10)],
        labels: Vec::new(),
    }
}

/// Fails if an operation takes longer than [`BOUND`].
async fn bounded<T>(work: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    let begun = Instant::now();
    let outcome = work.await;
    let took = begun.elapsed();
    assert!(took < BOUND, "an operation took {took:?}");
    outcome
}

/// Retries until it succeeds. Returns how long that took.
async fn until_success<T>(mut work: impl AsyncFnMut() -> Result<T, StoreError>) -> Duration {
    let begun = Instant::now();
    until_ok("the operation succeeds", Duration::from_secs(10), async || work().await).await;
    begun.elapsed()
}

/// Continuous requests, which may fail but never hang.
struct Load {
    tasks: JoinSet<()>,
    done: Arc<AtomicUsize>,
}

impl Load {
    fn start(store: &RedisStore) -> Load {
        let done = Arc::new(AtomicUsize::new(0));
        let mut tasks = JoinSet::new();
        for worker in 0..8u8 {
            let (store, done) = (store.clone(), Arc::clone(&done));
            tasks.spawn(async move {
                let mut pace = interval(Duration::from_millis(5));
                for number in (0..=u8::MAX).cycle() {
                    pace.tick().await;
                    let key = key(worker);
                    let (recalled, journaled) = (
                        bounded(store.recall(key)).await,
                        bounded(store.journal(key, Generation(0), journal(number))).await,
                    );
                    let counted = bounded(store.count(key, Generation(0), turn(number))).await;
                    if recalled.is_ok() && journaled.is_ok() && counted.is_ok() {
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        Load { tasks, done }
    }

    /// Waits until requests succeed again. Returns how long that took.
    async fn succeeds(&self) -> Duration {
        let (begun, before) = (Instant::now(), self.done.load(Ordering::Relaxed));
        until_ok("requests succeed", Duration::from_secs(10), async || {
            let done = self.done.load(Ordering::Relaxed) - before;
            if done >= 32 { Ok(()) } else { Err(done) }
        })
        .await;
        begun.elapsed()
    }

    /// Stops the workers and propagates their panics.
    async fn stop(mut self) {
        self.tasks.abort_all();
        while let Some(ended) = self.tasks.join_next().await {
            if let Err(error) = ended
                && error.is_panic()
            {
                std::panic::resume_unwind(error.into_panic());
            }
        }
    }
}
