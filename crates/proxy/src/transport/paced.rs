//! The response to an HTTP/2 client, limited in how long the client may leave it unread.
//!
//! A client that stops reading its HTTP/1 connection is noticed when the connection is written to. One that closes the window of
//! an HTTP/2 stream is not: the stream's body is not even polled. So a task of its own reads the upstream.

use crate::transport::BoxError;
use crate::transport::framing::SharedState;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use std::io;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::timeout;

#[derive(Debug)]
pub(crate) struct PacedBody {
    frames: Receiver<Result<Paced, BoxError>>,
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

impl PacedBody {
    /// Must be called on the worker's runtime.
    pub(super) fn new<B>(body: B, write_timeout: Duration, connection: SharedState) -> PacedBody
    where
        B: Body<Data = Bytes, Error = BoxError> + Unpin + Send + 'static,
    {
        let (sender, frames) = channel(1);
        let (is_end, size_hint) = (body.is_end_stream(), body.size_hint());
        tokio::spawn(read(body, sender, write_timeout, connection));
        PacedBody { frames, is_end, size_hint }
    }

    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match ready!(self.frames.poll_recv(cx)) {
            Some(Ok(Paced { frame, is_end, size_hint })) => {
                (self.is_end, self.size_hint) = (is_end, size_hint);
                Poll::Ready(Some(Ok(frame)))
            }
            Some(Err(error)) => Poll::Ready(Some(Err(error))),
            None => Poll::Ready(None),
        }
    }

    pub(super) fn is_end_stream(&self) -> bool {
        self.is_end
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        self.size_hint
    }
}

/// Reads a frame whenever the client has taken the one before. Ends, and with it the upstream's stream, if the client has left or
/// takes nothing for too long.
async fn read<B>(
    mut body: B,
    sender: Sender<Result<Paced, BoxError>>,
    write_timeout: Duration,
    connection: SharedState,
) where
    B: Body<Data = Bytes, Error = BoxError> + Unpin,
{
    loop {
        let frame = tokio::select! {
            frame = body.frame() => frame,
            () = sender.closed() => return,
        };
        let Some(frame) = frame else { return };
        let (is_end, size_hint) = (body.is_end_stream(), body.size_hint());
        let frame = frame.map(|frame| Paced { frame, is_end, size_hint });
        match timeout(write_timeout, sender.reserve()).await {
            Ok(Ok(place)) => place.send(frame),
            Ok(Err(_)) => return,
            Err(_) => break,
        }
    }
    drop(body);
    let _stalled = connection.stall();
    // For when the client reads again.
    let stalled = io::Error::new(io::ErrorKind::TimedOut, "the client read nothing");
    let _ = sender.send(Err(stalled.into())).await;
}
