//! A value that is created asynchronously, once for all callers.

use redis::{RedisError, RedisResult};
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

/// A value that is created on first use, and again after it was discarded.
///
/// Creation runs in its own task, so that a caller that stops waiting neither cancels it for the others nor makes the next one
/// start over. No lock is held meanwhile.
pub(super) struct Lazy<T> {
    state: Mutex<State<T>>,
}

/// A created value, distinguishable from earlier and later ones.
#[derive(Clone)]
pub(super) struct Instance<T> {
    pub(super) value: T,
    created: Instant,
    /// Equal only to itself, by address.
    identity: Arc<()>,
}

enum State<T> {
    Empty,
    Creating(watch::Receiver<Option<RedisResult<Instance<T>>>>),
    Ready(Instance<T>),
    Failed { error: RedisError, until: Instant },
}

/// A server that does not complete the handshake within this time is considered unreachable.
const DEADLINE: Duration = Duration::from_secs(1);

/// How long a failure is returned to all callers before the next attempt, so that a dead server is not flooded.
const RETRY_DELAY: Duration = Duration::from_millis(200);

impl<T: Clone + Send + Sync + 'static> Lazy<T> {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Lazy { state: Mutex::new(State::Empty) })
    }

    /// Returns the value. Creates it with `create` if there is none and no recent failure.
    pub(super) async fn get<F>(self: &Arc<Self>, create: impl FnOnce() -> F) -> RedisResult<Instance<T>>
    where
        F: Future<Output = RedisResult<T>> + Send + 'static,
    {
        let mut outcome = {
            let mut state = self.state();
            match &*state {
                State::Ready(instance) => return Ok(instance.clone()),
                State::Failed { error, until } if Instant::now() < *until => return Err(error.clone()),
                // A closed channel means that the task panicked.
                State::Creating(outcome) if outcome.has_changed().is_ok() => outcome.clone(),
                State::Empty | State::Failed { .. } | State::Creating(_) => {
                    let outcome = Self::start(Arc::clone(self), create());
                    *state = State::Creating(outcome.clone());
                    outcome
                }
            }
        };
        let outcome = outcome.wait_for(Option::is_some).await.map(|outcome| outcome.clone());
        outcome
            .ok()
            .flatten()
            .unwrap_or_else(|| Err(io::Error::other("connecting stopped unexpectedly").into()))
    }

    /// Discards a bad value, unless it has already been replaced.
    pub(super) fn discard(&self, bad: &Instance<T>) {
        self.discard_older(bad, Duration::ZERO);
    }

    /// Discards a bad value, unless it has already been replaced or is younger than `age`.
    pub(super) fn discard_older(&self, bad: &Instance<T>, age: Duration) {
        let mut state = self.state();
        if let State::Ready(instance) = &*state
            && Arc::ptr_eq(&instance.identity, &bad.identity)
            && instance.created.elapsed() >= age
        {
            *state = State::Empty;
        }
    }

    fn start<F>(lazy: Arc<Self>, create: F) -> watch::Receiver<Option<RedisResult<Instance<T>>>>
    where
        F: Future<Output = RedisResult<T>> + Send + 'static,
    {
        let (done, outcome) = watch::channel(None);
        tokio::spawn(async move {
            let created = timeout(DEADLINE, create).await.unwrap_or_else(|_| Err(no_response()));
            let created =
                created.map(|value| Instance { value, created: Instant::now(), identity: Arc::new(()) });
            *lazy.state() = match &created {
                Ok(instance) => State::Ready(instance.clone()),
                Err(error) => State::Failed { error: error.clone(), until: Instant::now() + RETRY_DELAY },
            };
            done.send_replace(Some(created));
        });
        outcome
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        // The state is only ever replaced as a whole, so a poisoned lock still guards a valid one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> fmt::Debug for Lazy<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lazy").finish_non_exhaustive()
    }
}

/// Not reported as a timeout, which callers retry: the server is unreachable.
fn no_response() -> RedisError {
    io::Error::new(io::ErrorKind::HostUnreachable, format!("no response within {DEADLINE:?}")).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{pending, ready};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::sync::oneshot;

    fn refused() -> RedisError {
        io::Error::from(io::ErrorKind::ConnectionRefused).into()
    }

    #[tokio::test]
    async fn callers_share_one_attempt_and_giving_up_does_not_cancel_it() {
        let lazy = Lazy::new();
        let attempts = Arc::new(AtomicUsize::new(0));
        let (go, gone) = oneshot::channel::<()>();
        let slow = {
            let attempts = attempts.clone();
            move || async move {
                attempts.fetch_add(1, Ordering::Relaxed);
                let _ = gone.await;
                Ok(7)
            }
        };
        let abandoned = timeout(Duration::from_millis(1), lazy.get(slow)).await;
        assert!(abandoned.is_err());
        let other = { lazy.get(|| ready(Ok(8))) };
        go.send(()).unwrap();
        assert_eq!(other.await.unwrap().value, 7);
        assert_eq!(attempts.load(Ordering::Relaxed), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_is_returned_for_a_while_and_then_retried() {
        let lazy = Lazy::new();
        assert!(lazy.get(|| ready(Err::<u8, _>(refused()))).await.is_err());
        assert!(lazy.get(|| ready(Ok(1))).await.is_err());
        tokio::time::advance(RETRY_DELAY).await;
        assert_eq!(lazy.get(|| ready(Ok(1))).await.unwrap().value, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_without_a_response_fails() {
        let lazy = Lazy::<u8>::new();
        let error = lazy.get(pending).await.map(|instance| instance.value).unwrap_err();
        assert!(error.is_io_error() && !error.is_timeout(), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn discarding_a_value_leaves_its_successor_alone() {
        let lazy = Lazy::new();
        let first = lazy.get(|| ready(Ok(1))).await.unwrap();
        lazy.discard_older(&first, Duration::from_secs(1));
        assert_eq!(lazy.get(|| ready(Ok(2))).await.unwrap().value, 1);
        tokio::time::advance(Duration::from_secs(1)).await;
        lazy.discard_older(&first, Duration::from_secs(1));
        let second = lazy.get(|| ready(Ok(2))).await.unwrap();
        lazy.discard(&first);
        assert_eq!((second.value, lazy.get(|| ready(Ok(3))).await.unwrap().value), (2, 2));
    }

    #[tokio::test]
    async fn a_panic_while_creating_does_not_block_later_callers() {
        let lazy = Lazy::new();
        let broken = || async { panic!("on purpose") };
        assert!(lazy.get(broken).await.is_err());
        assert_eq!(lazy.get(|| ready(Ok(1))).await.unwrap().value, 1);
    }
}
