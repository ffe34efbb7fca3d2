//! The body of an upstream's response.

use crate::transport::BoxError;
use crate::transport::http1::response::Http1Body;
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, TRAILER};
use http::{Response, Version};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::timeout;

#[derive(Debug)]
pub(crate) enum ResponseBody {
    Http1(Http1Body),
    Hyper(HyperBody),
}

/// A body that hyper reads.
#[derive(Debug)]
pub(crate) struct HyperBody {
    /// Absent once the rest of it is being read by a task of its own.
    body: Option<Incoming>,
    /// How much of the announced length is still to come.
    left: Option<u64>,
}

/// How long the end of a stream may take to follow the last byte.
const END_OF_STREAM: Duration = Duration::from_secs(10);

impl ResponseBody {
    pub(crate) fn from_hyper(response: Response<Incoming>) -> Response<ResponseBody> {
        let headers = response.headers();
        // HTTP/1 bodies end by themselves, and announced trailers come after the last byte.
        let ends_early = response.version() == Version::HTTP_2 && !headers.contains_key(TRAILER);
        let length = headers.get(CONTENT_LENGTH).filter(|_| ends_early).and_then(|value| value.to_str().ok());
        let left = length.and_then(|length| length.parse().ok());
        response.map(|body| ResponseBody::Hyper(HyperBody { body: Some(body), left }))
    }
}

impl HyperBody {
    /// An HTTP/2 server may end a stream with an empty frame after the last byte. A body of known length is complete before that.
    fn is_complete(&self) -> bool {
        self.left == Some(0) || self.body.as_ref().is_none_or(Incoming::is_end_stream)
    }
}

impl Drop for HyperBody {
    /// Dropping a stream that has not ended resets it, and an upstream closes a connection with too many resets. So the end of a
    /// complete body is waited for.
    fn drop(&mut self) {
        let is_due = self.left == Some(0);
        let Some(body) = self.body.take().filter(|body| is_due && !body.is_end_stream()) else { return };
        // There is no runtime if the process is ending.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(timeout(END_OF_STREAM, body.collect()));
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.get_mut() {
            ResponseBody::Http1(body) => body.poll_frame(cx).map_err(BoxError::from),
            ResponseBody::Hyper(HyperBody { body, left }) => {
                let Some(body) = body else { return Poll::Ready(None) };
                let polled = Pin::new(body).poll_frame(cx);
                if let (Poll::Ready(Some(Ok(frame))), Some(left)) = (&polled, left) {
                    *left = left.saturating_sub(frame.data_ref().map_or(0, |data| data.len() as u64));
                }
                polled.map_err(BoxError::from)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            ResponseBody::Http1(body) => body.is_end_stream(),
            ResponseBody::Hyper(body) => body.is_complete(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            ResponseBody::Http1(body) => body.size_hint(),
            ResponseBody::Hyper(HyperBody { body, .. }) => {
                body.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
            }
        }
    }
}
