//! The body of an upstream's response.

use crate::transport::BoxError;
use crate::transport::driven::DrivenBody;
use crate::transport::http1::response::Http1Body;
use crate::transport::http2::response::Http2Body;
use crate::transport::overload::Charge;
use crate::transport::peek::{PeekedBody, peek};
use crate::transport::stream::Stream;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

#[derive(Debug)]
pub(crate) enum ResponseBody {
    Http1(Http1Body),
    Http2(Http2Body),
    /// Its beginning has been read.
    Peeked(PeekedBody),
    /// Written by a task of our own.
    Driven(DrivenBody),
}

impl ResponseBody {
    /// Reads up to `limit` bytes ahead. Returns the body, to be relayed unchanged, and its bytes if it was complete within that and
    /// no pause was longer than `pause`.
    pub(crate) async fn peeked(
        self,
        limit: usize,
        pause: Duration,
        charge: Option<&Charge>,
    ) -> (ResponseBody, Option<Bytes>) {
        let (peeked, whole) = peek(Box::new(self), limit, pause, charge, |_| false).await;
        (ResponseBody::Peeked(peeked), whole)
    }

    /// Reads ahead until what has been read is `enough`, up to `limit` bytes and no longer than the first pause of this length.
    pub(crate) async fn opened(
        self,
        limit: usize,
        pause: Duration,
        enough: impl FnMut(&[u8]) -> bool,
    ) -> ResponseBody {
        ResponseBody::Peeked(peek(Box::new(self), limit, pause, None, enough).await.0)
    }

    /// Returns the connection of a response that has switched protocols, and what has arrived on it.
    pub(crate) fn into_upgraded(self) -> Option<(Stream, Bytes)> {
        match self {
            ResponseBody::Http1(body) => body.into_upgraded(),
            ResponseBody::Http2(_) | ResponseBody::Peeked(_) | ResponseBody::Driven(_) => None,
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
            ResponseBody::Http2(body) => body.poll_frame(cx).map_err(BoxError::from),
            ResponseBody::Peeked(body) => body.poll_frame(cx),
            ResponseBody::Driven(body) => body.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            ResponseBody::Http1(body) => body.is_end_stream(),
            ResponseBody::Http2(body) => body.is_end_stream(),
            ResponseBody::Peeked(body) => body.is_end_stream(),
            ResponseBody::Driven(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            ResponseBody::Http1(body) => body.size_hint(),
            ResponseBody::Http2(body) => body.size_hint(),
            ResponseBody::Peeked(body) => body.size_hint(),
            ResponseBody::Driven(body) => body.size_hint(),
        }
    }
}
