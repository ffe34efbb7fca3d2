//! Figures while they change: server-sent events.

use bytes::Bytes;
use hyper::body::{Body, Frame};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::timeout;

/// A body that goes on until its reader leaves.
#[derive(Debug)]
pub(crate) struct Live {
    events: Receiver<Bytes>,
    /// Its place among those that are open at once.
    _place: OwnedSemaphorePermit,
}

impl Live {
    /// Sends what `event` makes of every tick, and of the last one at once, for a while: who still listens then asks again, and is asked
    /// again who it is.
    pub(crate) fn begin(
        ticks: watch::Receiver<u64>,
        place: OwnedSemaphorePermit,
        event: impl Fn(u64) -> Option<String> + Send + 'static,
    ) -> Live {
        // One may wait: a reader that is slow gets the newest one next, not all that it has missed.
        let (sender, events) = channel(1);
        drop(tokio::spawn(timeout(LIFE, tell(ticks, sender, event))));
        Live { events, _place: place }
    }
}

/// How long somebody listens at most, and how long an event waits for a reader that does not read.
const LIFE: Duration = Duration::from_secs(15 * 60);
const PATIENCE: Duration = Duration::from_secs(30);

async fn tell(mut ticks: watch::Receiver<u64>, events: Sender<Bytes>, event: impl Fn(u64) -> Option<String>) {
    loop {
        let noted = *ticks.borrow_and_update();
        let Some(data) = event(noted) else { return };
        // A browser that lost the connection tries again after a second.
        let text = format!("event: tick\nretry: 1000\ndata: {data}\n\n");
        if !matches!(timeout(PATIENCE, events.send(text.into())).await, Ok(Ok(()))) {
            return;
        }
        tokio::select! {
            changed = ticks.changed() => if changed.is_err() { return },
            () = events.closed() => return,
        }
    }
}

impl Body for Live {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.events.poll_recv(cx).map(|event| event.map(|event| Ok(Frame::data(event))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;
    use std::sync::Arc;
    use tokio::sync::Semaphore;

    #[tokio::test]
    async fn an_event_comes_at_once_and_at_every_tick_and_the_place_is_given_back() {
        let places = Arc::new(Semaphore::new(1));
        let ticks = watch::Sender::new(0);
        let place = places.clone().try_acquire_owned().unwrap();
        let listened = ticks.subscribe();
        let mut live = Live::begin(ticks.subscribe(), place, |noted| Some(noted.to_string()));
        let mut next = async || {
            let frame = live.frame().await.unwrap().unwrap().into_data().unwrap();
            String::from_utf8(frame.to_vec()).unwrap()
        };
        assert_eq!(next().await, "event: tick\nretry: 1000\ndata: 0\n\n");
        ticks.send_replace(7);
        assert_eq!(next().await, "event: tick\nretry: 1000\ndata: 7\n\n");
        assert_eq!(places.available_permits(), 0);
        drop((live, listened));
        assert_eq!(places.available_permits(), 1);
        ticks.closed().await;
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_listens_for_ever() {
        let places = Arc::new(Semaphore::new(1));
        let ticks = watch::Sender::new(1);
        let place = places.clone().try_acquire_owned().unwrap();
        let mut live = Live::begin(ticks.subscribe(), place, |noted| Some(noted.to_string()));
        assert!(live.frame().await.is_some());
        // Time passes by itself where nothing else happens.
        assert!(live.frame().await.is_none());
    }
}
