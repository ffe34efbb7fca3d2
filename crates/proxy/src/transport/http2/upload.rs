//! Sends the body of a request, as fast as the upstream takes it.

use crate::transport::body::SendBody;
use crate::transport::http2::error::Http2Error;
use bytes::Bytes;
use h2::{Reason, SendStream};
use http_body::Body;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// The reason that tells an upstream that nobody waits for its response any more.
const ABANDONED: Reason = Reason::CANCEL;

#[derive(Debug)]
pub(super) struct Sending {
    stream: SendStream<Bytes>,
    body: SendBody,
    /// What was read from the body and not sent yet.
    unsent: Bytes,
    /// Whether the upstream has to open its window first.
    is_stalled: bool,
}

impl Sending {
    pub(super) fn new(stream: SendStream<Bytes>, body: SendBody) -> Sending {
        Sending { stream, body, unsent: Bytes::new(), is_stalled: false }
    }

    pub(super) fn is_stalled(&self) -> bool {
        self.is_stalled
    }

    /// Ready when everything is sent, or when the upstream wants no more of it: its response then says why.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Http2Error>> {
        loop {
            while !self.unsent.is_empty() {
                self.stream.reserve_capacity(self.unsent.len());
                while self.stream.capacity() == 0 {
                    let polled = self.stream.poll_capacity(cx);
                    self.is_stalled = polled.is_pending();
                    let Some(Ok(_)) = ready!(polled) else {
                        return Poll::Ready(Ok(()));
                    };
                }
                let piece = self.unsent.split_to(self.stream.capacity().min(self.unsent.len()));
                let is_last = self.unsent.is_empty() && self.body.is_end_stream();
                if self.stream.send_data(piece, is_last).is_err() || is_last {
                    return Poll::Ready(Ok(()));
                }
            }
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => self.unsent = frame.into_data().unwrap_or_default(),
                Some(Err(error)) => {
                    self.stream.send_reset(ABANDONED);
                    return Poll::Ready(Err(Http2Error::Upload(error)));
                }
                None => {
                    // An upstream that has reset the stream does not need its end.
                    let _ = self.stream.send_data(Bytes::new(), true);
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}
