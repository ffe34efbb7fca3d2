//! The body of a response.

use crate::transport::http2::error::Http2Error;
use crate::transport::http2::lease::Lease;
use crate::transport::http2::upload::Sending;
use bytes::Bytes;
use h2::RecvStream;
use http::Response;
use http::header::{CONTENT_LENGTH, TRAILER};
use http_body::{Frame, SizeHint};
use std::future::poll_fn;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::timeout;

#[derive(Debug)]
pub(crate) struct Http2Body {
    /// Absent once its end is waited for by a task of its own.
    stream: Option<(RecvStream, Lease)>,
    /// The rest of the request, if the upstream responds before it has received all of it.
    sending: Option<Box<Sending>>,
    /// How much of the announced length is still to come.
    left: Option<u64>,
    /// Whether trailers may follow the last byte.
    has_trailers: bool,
}

/// How long the end of a stream may take to follow the last byte.
const END_OF_STREAM: Duration = Duration::from_secs(10);

impl Http2Body {
    pub(super) fn new(
        response: Response<RecvStream>,
        sending: Option<Sending>,
        lease: Lease,
    ) -> Response<Http2Body> {
        let headers = response.headers();
        let length = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
        let left = length.and_then(|length| length.parse().ok());
        let has_trailers = headers.contains_key(TRAILER);
        let sending = sending.map(Box::new);
        response.map(|stream| Http2Body { stream: Some((stream, lease)), sending, left, has_trailers })
    }

    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Http2Error>>> {
        if let Some(sending) = &mut self.sending
            && sending.poll(cx).is_ready()
        {
            // An upstream that has responded may reject the rest. Its response is still valid.
            self.sending = None;
        }
        let Some((stream, _)) = &mut self.stream else { return Poll::Ready(None) };
        match ready!(stream.poll_data(cx)) {
            Some(Ok(data)) => {
                // The client reads as fast as it can: what it has not taken yet is not polled for.
                let _ = stream.flow_control().release_capacity(data.len());
                if let Some(left) = &mut self.left {
                    *left = left.saturating_sub(data.len() as u64);
                }
                Poll::Ready(Some(Ok(Frame::data(data))))
            }
            Some(Err(error)) => Poll::Ready(Some(Err(Http2Error::Stream(error)))),
            None => {
                let trailers = ready!(stream.poll_trailers(cx));
                self.has_trailers = false;
                let trailers = trailers.map(|trailers| trailers.map(Frame::trailers));
                Poll::Ready(trailers.map_err(Http2Error::Stream).transpose())
            }
        }
    }

    /// An upstream may end a stream with an empty frame after the last byte. A body of known length is complete before that.
    pub(crate) fn is_end_stream(&self) -> bool {
        let is_ended = self.stream.as_ref().is_none_or(|(stream, _)| stream.is_end_stream());
        is_ended || (self.left == Some(0) && !self.has_trailers)
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        match self.left {
            Some(left) => SizeHint::with_exact(left),
            None if self.is_end_stream() => SizeHint::with_exact(0),
            None => SizeHint::default(),
        }
    }
}

impl Drop for Http2Body {
    /// Dropping a stream that has not ended resets it, and an upstream closes a connection with too many resets. So the end of a
    /// complete body is waited for.
    fn drop(&mut self) {
        let Some((mut stream, lease)) = self.stream.take() else { return };
        if stream.is_end_stream() || self.left != Some(0) {
            return;
        }
        // There is no runtime if the process is ending.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                let _lease = lease;
                let end = poll_fn(|cx| stream.poll_data(cx));
                let _ = timeout(END_OF_STREAM, end).await;
            });
        }
    }
}
