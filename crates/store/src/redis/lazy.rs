//! A value that takes a while to make, made once for all who need it.

use redis::{RedisError, RedisResult};
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

/// Made when first asked for, and again after it was discarded.
///
/// The making runs in a task of its own: a request that gives up waiting must not take it away from the others, nor make the
/// next one start over. No lock is held meanwhile.
pub(super) struct Lazy<T> {
    state: Mutex<State<T>>,
}

/// A value, told apart from those before it and after it.
#[derive(Clone)]
pub(super) struct Made<T> {
    pub(super) value: T,
    at: Instant,
    /// The value's own mark: equal only to itself.
    mark: Arc<()>,
}

enum State<T> {
    Empty,
    Making(watch::Receiver<Option<RedisResult<Made<T>>>>),
    Made(Made<T>),
    Failed { error: RedisError, until: Instant },
}

/// A server that does not say hello within this time is taken for dead.
const DEADLINE: Duration = Duration::from_secs(1);

/// How long a failure is repeated before the next attempt, so that a dead server is not hammered by every request.
const PAUSE: Duration = Duration::from_millis(200);

impl<T: Clone + Send + Sync + 'static> Lazy<T> {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Lazy { state: Mutex::new(State::Empty) })
    }

    pub(super) async fn get<F>(self: &Arc<Self>, make: impl FnOnce() -> F) -> RedisResult<Made<T>>
    where
        F: Future<Output = RedisResult<T>> + Send + 'static,
    {
        let mut outcome = {
            let mut state = self.state();
            match &*state {
                State::Made(made) => return Ok(made.clone()),
                State::Failed { error, until } if Instant::now() < *until => return Err(error.clone()),
                // A closed channel here means that the task ended without a word: it panicked.
                State::Making(outcome) if outcome.has_changed().is_ok() => outcome.clone(),
                State::Empty | State::Failed { .. } | State::Making(_) => {
                    let outcome = Self::start(Arc::clone(self), make());
                    *state = State::Making(outcome.clone());
                    outcome
                }
            }
        };
        let made = outcome.wait_for(Option::is_some).await.map(|outcome| outcome.clone());
        made.ok().flatten().unwrap_or_else(|| Err(io::Error::other("connecting ended unexpectedly").into()))
    }

    /// Forgets a value that proved bad, unless another has taken its place already.
    pub(super) fn discard(&self, bad: &Made<T>) {
        self.discard_older(bad, Duration::ZERO);
    }

    /// Forgets a value unless it is younger than this.
    pub(super) fn discard_older(&self, bad: &Made<T>, age: Duration) {
        let mut state = self.state();
        if let State::Made(made) = &*state
            && Arc::ptr_eq(&made.mark, &bad.mark)
            && made.at.elapsed() >= age
        {
            *state = State::Empty;
        }
    }

    fn start<F>(lazy: Arc<Self>, make: F) -> watch::Receiver<Option<RedisResult<Made<T>>>>
    where
        F: Future<Output = RedisResult<T>> + Send + 'static,
    {
        let (done, outcome) = watch::channel(None);
        tokio::spawn(async move {
            let made = timeout(DEADLINE, make).await.unwrap_or_else(|_| Err(no_answer()));
            let made = made.map(|value| Made { value, at: Instant::now(), mark: Arc::new(()) });
            *lazy.state() = match &made {
                Ok(made) => State::Made(made.clone()),
                Err(error) => State::Failed { error: error.clone(), until: Instant::now() + PAUSE },
            };
            done.send_replace(Some(made));
        });
        outcome
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        // The state is only ever replaced as a whole, so a poisoned lock holds a good one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> fmt::Debug for Lazy<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lazy").finish_non_exhaustive()
    }
}

/// Not a timeout of the caller's: nobody is there, and waiting again would be the same again.
fn no_answer() -> RedisError {
    io::Error::new(io::ErrorKind::HostUnreachable, format!("no answer within {DEADLINE:?}")).into()
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
    async fn all_who_wait_share_one_attempt_and_giving_up_does_not_end_it() {
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
        let impatient = timeout(Duration::from_millis(1), lazy.get(slow)).await;
        assert!(impatient.is_err());
        let other = { lazy.get(|| ready(Ok(8))) };
        go.send(()).unwrap();
        assert_eq!(other.await.unwrap().value, 7);
        assert_eq!(attempts.load(Ordering::Relaxed), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_is_repeated_for_a_while_and_then_tried_again() {
        let lazy = Lazy::new();
        assert!(lazy.get(|| ready(Err::<u8, _>(refused()))).await.is_err());
        assert!(lazy.get(|| ready(Ok(1))).await.is_err());
        tokio::time::advance(PAUSE).await;
        assert_eq!(lazy.get(|| ready(Ok(1))).await.unwrap().value, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_without_an_answer_ends() {
        let lazy = Lazy::<u8>::new();
        let error = lazy.get(pending).await.map(|made| made.value).unwrap_err();
        assert!(error.is_io_error() && !error.is_timeout(), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn only_the_bad_value_itself_is_discarded() {
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
    async fn a_panic_while_making_does_not_block_those_who_come_later() {
        let lazy = Lazy::new();
        let broken = || async { panic!("on purpose") };
        assert!(lazy.get(broken).await.is_err());
        assert_eq!(lazy.get(|| ready(Ok(1))).await.unwrap().value, 1);
    }
}
