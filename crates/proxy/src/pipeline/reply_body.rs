//! The body of a response to the client.

use crate::pipeline::relay::{Incomplete, Relay};
use crate::transport::paced::PacedBody;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::task::{Context, Poll};

pin_project! {
    /// A response to the client.
    #[project = ReplyProjection]
    #[derive(Debug)]
    pub(crate) enum ReplyBody {
        /// A response of our own.
        Full { left: Option<Bytes> },
        /// The upstream's response, relayed as it arrives.
        Relay { #[pin] relay: Relay },
        /// The same for an HTTP/2 client.
        Paced { relay: PacedBody<Incomplete> },
    }
}

impl ReplyBody {
    pub(crate) fn full(bytes: Bytes) -> ReplyBody {
        ReplyBody::Full { left: Some(bytes).filter(|bytes| !bytes.is_empty()) }
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Incomplete;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Incomplete>>> {
        match self.project() {
            ReplyProjection::Full { left } => Poll::Ready(left.take().map(|bytes| Ok(Frame::data(bytes)))),
            ReplyProjection::Relay { relay } => relay.poll_frame(cx),
            ReplyProjection::Paced { relay } => relay.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            ReplyBody::Full { left } => left.is_none(),
            ReplyBody::Relay { relay } => relay.is_end_stream(),
            ReplyBody::Paced { relay } => relay.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            ReplyBody::Full { left } => {
                SizeHint::with_exact(left.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            ReplyBody::Relay { relay } => relay.size_hint(),
            ReplyBody::Paced { relay } => relay.size_hint(),
        }
    }
}
