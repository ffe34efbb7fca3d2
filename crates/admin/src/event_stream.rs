//! A response body of server-sent events.

use bytes::Bytes;
use hyper::body::{Body, Frame};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::timeout;

/// A body that continues until the client disconnects or its lifetime ends.
#[derive(Debug)]
pub(crate) struct EventStream {
    events: Receiver<Bytes>,
    /// Counts against the limit of open streams until the body is dropped.
    _permit: OwnedSemaphorePermit,
}

impl EventStream {
    /// Sends `event(time)` for the latest sample at once and for every following one. The stream ends after
    /// [`LIFETIME`]: the client then reconnects and is authorized again.
    pub(crate) fn start(
        samples: watch::Receiver<u64>,
        permit: OwnedSemaphorePermit,
        event: impl Fn(u64) -> Option<String> + Send + 'static,
    ) -> EventStream {
        // A slow client gets the newest event next, not a backlog of those it missed.
        let (sender, events) = channel(1);
        drop(tokio::spawn(timeout(LIFETIME, send_events(samples, sender, event))));
        EventStream { events, _permit: permit }
    }
}

/// The maximum duration of a stream.
const LIFETIME: Duration = Duration::from_secs(15 * 60);
/// How long an event may wait for a client that does not read.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);

async fn send_events(
    mut samples: watch::Receiver<u64>,
    events: Sender<Bytes>,
    event: impl Fn(u64) -> Option<String>,
) {
    loop {
        let sampled_at = *samples.borrow_and_update();
        let Some(data) = event(sampled_at) else { return };
        // `retry` makes a disconnected browser reconnect after one second.
        let text = format!("event: tick\nretry: 1000\ndata: {data}\n\n");
        if !matches!(timeout(SEND_TIMEOUT, events.send(text.into())).await, Ok(Ok(()))) {
            return;
        }
        tokio::select! {
            changed = samples.changed() => if changed.is_err() { return },
            () = events.closed() => return,
        }
    }
}

impl Body for EventStream {
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
    async fn events_are_sent_at_once_and_per_sample_and_the_permit_is_returned() {
        let permits = Arc::new(Semaphore::new(1));
        let samples = watch::Sender::new(0);
        let permit = permits.clone().try_acquire_owned().unwrap();
        let other = samples.subscribe();
        let mut stream =
            EventStream::start(samples.subscribe(), permit, |sampled_at| Some(sampled_at.to_string()));
        let mut next = async || {
            let frame = stream.frame().await.unwrap().unwrap().into_data().unwrap();
            String::from_utf8(frame.to_vec()).unwrap()
        };
        assert_eq!(next().await, "event: tick\nretry: 1000\ndata: 0\n\n");
        samples.send_replace(7);
        assert_eq!(next().await, "event: tick\nretry: 1000\ndata: 7\n\n");
        assert_eq!(permits.available_permits(), 0);
        drop((stream, other));
        assert_eq!(permits.available_permits(), 1);
        samples.closed().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_ends_after_its_lifetime() {
        let permits = Arc::new(Semaphore::new(1));
        let samples = watch::Sender::new(1);
        let permit = permits.clone().try_acquire_owned().unwrap();
        let mut stream =
            EventStream::start(samples.subscribe(), permit, |sampled_at| Some(sampled_at.to_string()));
        assert!(stream.frame().await.is_some());
        // Paused time advances by itself while every task is idle.
        assert!(stream.frame().await.is_none());
    }
}
