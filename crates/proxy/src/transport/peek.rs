//! Reads a short response body ahead, and gives it back as if it had not been read.

use crate::transport::BoxError;
use crate::transport::overload::Charge;
use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::timeout;

/// A body whose beginning has been read.
pub(crate) struct PeekedBody {
    read: VecDeque<Frame<Bytes>>,
    rest: UnreadBody,
    end: Option<End>,
    /// What the body said about its length before it was read. The client gets the same framing.
    size_hint: SizeHint,
}

type UnreadBody = Box<dyn Body<Data = Bytes, Error = BoxError> + Send + Sync + Unpin>;

/// How the body ended while it was read.
#[derive(Debug)]
enum End {
    Complete,
    Broken(BoxError),
}

/// Reads up to `limit` bytes, or until what has been read is `enough`. Returns the body, to be relayed unchanged, and its bytes if it was
/// complete within that and no pause was longer than `pause`. What is held of it is added to `charge`.
pub(crate) async fn peek(
    mut body: UnreadBody,
    limit: usize,
    pause: Duration,
    charge: Option<&Charge>,
    mut enough: impl FnMut(&[u8]) -> bool,
) -> (PeekedBody, Option<Bytes>) {
    let (mut read, mut bytes) = (VecDeque::new(), BytesMut::new());
    let size_hint = body.size_hint();
    let end = loop {
        if body.is_end_stream() {
            break Some(End::Complete);
        }
        match timeout(pause, body.frame()).await {
            Ok(Some(Ok(frame))) => {
                let data = frame.data_ref().map_or(&[][..], |data| data);
                bytes.extend_from_slice(data);
                // Once to be read, and once to be relayed.
                if let Some(charge) = charge {
                    charge.grow_regardless(2 * data.len() as u64);
                }
                read.push_back(frame);
            }
            Ok(Some(Err(error))) => break Some(End::Broken(error)),
            Ok(None) => break Some(End::Complete),
            Err(_) => break None,
        }
        if bytes.len() > limit || enough(&bytes) {
            break None;
        }
    };
    let whole = matches!(end, Some(End::Complete)).then(|| bytes.freeze());
    (PeekedBody { read, rest: body, end, size_hint }, whole)
}

impl std::fmt::Debug for PeekedBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PeekedBody").field("end", &self.end).finish_non_exhaustive()
    }
}

impl PeekedBody {
    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(frame) = self.read.pop_front() {
            return Poll::Ready(Some(Ok(frame)));
        }
        match self.end.take() {
            Some(End::Complete) => {
                self.end = Some(End::Complete);
                Poll::Ready(None)
            }
            Some(End::Broken(error)) => {
                self.end = Some(End::Complete);
                Poll::Ready(Some(Err(error)))
            }
            None => Pin::new(&mut *self.rest).poll_frame(cx),
        }
    }

    pub(crate) fn is_end_stream(&self) -> bool {
        self.read.is_empty()
            && match &self.end {
                Some(End::Complete) => true,
                Some(End::Broken(_)) => false,
                None => self.rest.is_end_stream(),
            }
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        self.size_hint
    }
}
