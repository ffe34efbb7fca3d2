//! The body of a response, which reads its connection as it is polled.

use crate::transport::http1::chunks::Chunks;
use crate::transport::http1::error::Http1Error;
use crate::transport::http1::head::Framing;
use crate::transport::http1::pool::Pool;
use crate::transport::http1::read::poll_read;
use crate::transport::http1::upload::Sending;
use crate::transport::stream::Stream;
use bytes::Bytes;
use http::HeaderMap;
use http_body::{Frame, SizeHint};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

#[derive(Debug)]
pub(crate) struct Http1Body {
    /// `None` once the response is complete.
    stream: Option<Stream>,
    /// The rest of the request, if the upstream responds before it has received all of it.
    sending: Option<Box<Sending>>,
    remaining: Remaining,
    trailers: Option<HeaderMap>,
    /// Bytes that arrived with the head.
    rest: Bytes,
    reuse: bool,
    pool: Arc<Pool>,
}

/// The part of the body that has not arrived yet.
#[derive(Debug)]
enum Remaining {
    Bytes(u64),
    Chunks(Box<Chunks>),
    UntilClose,
    Nothing,
}

impl Http1Body {
    pub(super) fn new(
        stream: Stream,
        sending: Option<Sending>,
        framing: Framing,
        rest: Bytes,
        reuse: bool,
        pool: Arc<Pool>,
    ) -> Http1Body {
        let remaining = match framing {
            Framing::Length(0) | Framing::Upgraded => Remaining::Nothing,
            Framing::Length(length) => Remaining::Bytes(length),
            Framing::Chunked => Remaining::Chunks(Box::default()),
            Framing::UntilClose => Remaining::UntilClose,
        };
        let sending = sending.map(Box::new);
        let mut body =
            Http1Body { stream: Some(stream), sending, remaining, trailers: None, rest, reuse, pool };
        if framing == Framing::Length(0) {
            body.end();
        }
        body
    }

    /// Returns the connection of an upgraded response, and what has arrived on it.
    pub(crate) fn into_upgraded(self) -> Option<(Stream, Bytes)> {
        Some((self.stream?, self.rest))
    }

    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Http1Error>>> {
        self.continue_sending(cx);
        while !matches!(self.remaining, Remaining::Nothing) {
            let (data, is_open) = match ready!(self.poll_data(cx)) {
                Ok(read) => read,
                Err(error) => return Poll::Ready(Some(Err(self.fail(error)))),
            };
            match &mut self.remaining {
                Remaining::Chunks(chunks) if chunks.is_done() => {
                    self.trailers =
                        Some(std::mem::take(&mut chunks.trailers)).filter(|trailers| !trailers.is_empty());
                    self.end();
                }
                Remaining::Bytes(0) => self.end(),
                Remaining::UntilClose if !is_open => self.end(),
                // The upstream closed before a body of known length was complete.
                Remaining::Bytes(_) | Remaining::Chunks(_) if !is_open => {
                    return Poll::Ready(Some(Err(self.fail(Http1Error::Ended))));
                }
                Remaining::Bytes(_) | Remaining::Chunks(_) | Remaining::UntilClose | Remaining::Nothing => {}
            }
            if !data.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(data))));
            }
        }
        Poll::Ready(self.trailers.take().map(|trailers| Ok(Frame::trailers(trailers))))
    }

    /// Returns the data that has arrived, and whether the upstream still has the connection open.
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<(Bytes, bool), Http1Error>> {
        if !self.rest.is_empty() {
            let rest = std::mem::take(&mut self.rest);
            return Poll::Ready(self.decode(&rest).map(|data| (data, true)));
        }
        let Some(mut stream) = self.stream.take() else { return Poll::Ready(Err(Http1Error::Ended)) };
        let mut decoded = Ok(Bytes::new());
        let read = poll_read(&mut stream, cx, |bytes| decoded = self.decode(bytes));
        self.stream = Some(stream);
        let count = ready!(read)?;
        Poll::Ready(decoded.map(|data| (data, count > 0)))
    }

    fn decode(&mut self, bytes: &[u8]) -> Result<Bytes, Http1Error> {
        match &mut self.remaining {
            Remaining::Bytes(left) => {
                let count = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= count as u64;
                // Extra bytes must not become the response to the next request.
                self.reuse &= count == bytes.len();
                Ok(Bytes::copy_from_slice(&bytes[..count]))
            }
            Remaining::Chunks(chunks) => {
                let mut data = Vec::with_capacity(bytes.len());
                let count = chunks.decode(bytes, &mut data)?;
                self.reuse &= count == bytes.len();
                Ok(data.into())
            }
            Remaining::UntilClose => Ok(Bytes::copy_from_slice(bytes)),
            Remaining::Nothing => Ok(Bytes::new()),
        }
    }

    /// Continues sending a request that the upstream responds to early.
    fn continue_sending(&mut self, cx: &mut Context<'_>) {
        if let (Some(sending), Some(stream)) = (&mut self.sending, &mut self.stream)
            && let Poll::Ready(sent) = sending.poll(stream, cx)
        {
            // An upstream that has responded may reject the rest. Its response is still valid.
            self.reuse &= sent.is_ok();
            self.sending = None;
        }
    }

    /// Marks the response as complete and returns its connection to the pool if it can be reused.
    fn end(&mut self) {
        self.remaining = Remaining::Nothing;
        if let Some(stream) = self.stream.take()
            && self.reuse
            && self.rest.is_empty()
            && self.sending.is_none()
        {
            self.pool.give_back(stream);
        }
    }

    fn fail(&mut self, error: Http1Error) -> Http1Error {
        self.remaining = Remaining::Nothing;
        self.stream = None;
        error
    }

    pub(crate) fn is_end_stream(&self) -> bool {
        matches!(self.remaining, Remaining::Nothing) && self.trailers.is_none()
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        match self.remaining {
            Remaining::Bytes(left) => SizeHint::with_exact(left),
            Remaining::Nothing => SizeHint::with_exact(0),
            Remaining::Chunks(_) | Remaining::UntilClose => SizeHint::default(),
        }
    }
}
