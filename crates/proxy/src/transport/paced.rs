//! The response to an HTTP/2 client, limited in how long the client may leave it unread.
//!
//! A client that stops reading its HTTP/1 connection is noticed when the connection is written to. One that closes the window of
//! an HTTP/2 stream is not: hyper does not even poll the stream's body, so that no timeout in it would ever fire. So a task of its own
//! polls the body, and lets go of it when the client takes nothing for too long. All that the body holds goes with it: its upstream,
//! its memory, and its place among the requests.

use crate::transport::framing::SharedState;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

#[derive(Debug)]
pub(crate) struct PacedBody<E> {
    frames: Receiver<Result<Paced, E>>,
    error: Option<E>,
    is_end: bool,
    size_hint: SizeHint,
}

/// A frame, and what the body says after it.
#[derive(Debug)]
struct Paced {
    frame: Frame<Bytes>,
    is_end: bool,
    size_hint: SizeHint,
}

/// How long a client may take nothing of a response.
#[derive(Debug)]
pub(crate) struct Pace<E> {
    pub(crate) write_timeout: Duration,
    pub(crate) connection: SharedState,
    /// Ends the stream if its client reads again after that.
    pub(crate) stalled: E,
}

impl<E: Send + 'static> PacedBody<E> {
    /// Must be called on the worker's runtime.
    pub(crate) fn new<B>(body: B, pace: Pace<E>, tasks: &TaskTracker) -> PacedBody<E>
    where
        B: Body<Data = Bytes, Error = E> + Unpin + Send + 'static,
    {
        let (sender, frames) = channel(1);
        let (is_end, size_hint) = (body.is_end_stream(), body.size_hint());
        drop(tasks.spawn(read(body, sender, pace)));
        PacedBody { frames, error: None, is_end, size_hint }
    }

    pub(crate) fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, E>>> {
        if let Some(error) = self.error.take() {
            return Poll::Ready(Some(Err(error)));
        }
        match ready!(self.frames.poll_recv(cx)) {
            Some(Ok(Paced { frame, is_end, size_hint })) => {
                (self.is_end, self.size_hint) = (is_end, size_hint);
                Poll::Ready(Some(Ok(frame)))
            }
            Some(Err(error)) => {
                // An error now would make hyper discard the frames that it has not written yet.
                self.error = Some(error);
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            None => Poll::Ready(None),
        }
    }

    pub(crate) fn is_end_stream(&self) -> bool {
        self.is_end
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        self.size_hint
    }
}

/// Reads a frame whenever the client has taken the one before. Lets go of the body if the client has left or takes nothing for too long.
async fn read<B, E>(mut body: B, sender: Sender<Result<Paced, E>>, pace: Pace<E>)
where
    B: Body<Data = Bytes, Error = E> + Unpin,
{
    let is_whole = loop {
        let frame = tokio::select! {
            // Whoever has left is told nothing any more.
            biased;
            () = sender.closed() => return,
            frame = body.frame() => frame,
        };
        let Some(frame) = frame else { break true };
        let is_last = frame.is_err() || body.is_end_stream();
        let (is_end, size_hint) = (body.is_end_stream(), body.size_hint());
        let frame = frame.map(|frame| Paced { frame, is_end, size_hint });
        match timeout(pace.write_timeout, sender.reserve()).await {
            Ok(Ok(place)) => place.send(frame),
            Ok(Err(_)) => return,
            Err(_) => break false,
        }
        if is_last {
            break true;
        }
    };
    drop(body);
    // The last frame of a whole response waits in the channel.
    if is_whole && timeout(pace.write_timeout, sender.reserve()).await.is_ok() {
        return;
    }
    let (_active, _stalled) = (pace.connection.enter(0), pace.connection.stall());
    let place = sender.reserve().await;
    if let Some(place) = place.ok().filter(|_| !is_whole) {
        place.send(Err(pace.stalled));
    }
}
