//! The body of a response, which reads its connection as it is polled.

use crate::transport::http1::chunks::Chunks;
use crate::transport::http1::error::Http1Error;
use crate::transport::http1::head::Framing;
use crate::transport::http1::pool::Pool;
use crate::transport::http1::read::poll_read;
use crate::transport::http1::upload::Sending;
use bytes::Bytes;
use http::HeaderMap;
use http_body::{Frame, SizeHint};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::net::TcpStream;

#[derive(Debug)]
pub(crate) struct Http1Body {
    /// Absent once the answer is over.
    stream: Option<TcpStream>,
    /// The rest of the request, where the upstream answers before it has all of it.
    sending: Option<Box<Sending>>,
    left: Left,
    trailers: Option<HeaderMap>,
    /// What arrived with the head.
    rest: Bytes,
    reuse: bool,
    pool: Arc<Pool>,
}

/// What is still to come.
#[derive(Debug)]
enum Left {
    Bytes(u64),
    Chunks(Box<Chunks>),
    UntilClose,
    Nothing,
}

impl Http1Body {
    pub(super) fn new(
        stream: TcpStream,
        sending: Sending,
        framing: Framing,
        rest: Bytes,
        reuse: bool,
        pool: Arc<Pool>,
    ) -> Http1Body {
        let left = match framing {
            Framing::Length(0) => Left::Nothing,
            Framing::Length(length) => Left::Bytes(length),
            Framing::Chunked => Left::Chunks(Box::default()),
            Framing::UntilClose => Left::UntilClose,
        };
        let sending = (!sending.is_done()).then(|| Box::new(sending));
        let mut answer = Http1Body { stream: Some(stream), sending, left, trailers: None, rest, reuse, pool };
        if matches!(answer.left, Left::Nothing) {
            answer.end();
        }
        answer
    }

    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Http1Error>>> {
        self.send_on(cx);
        while !matches!(self.left, Left::Nothing) {
            let (data, is_open) = match ready!(self.poll_data(cx)) {
                Ok(read) => read,
                Err(error) => return Poll::Ready(Some(Err(self.fail(error)))),
            };
            match &mut self.left {
                Left::Chunks(chunks) if chunks.is_done() => {
                    self.trailers =
                        Some(std::mem::take(&mut chunks.trailers)).filter(|trailers| !trailers.is_empty());
                    self.end();
                }
                Left::Bytes(0) => self.end(),
                Left::UntilClose if !is_open => self.end(),
                // The upstream closed, which ends no answer that says how long it is.
                Left::Bytes(_) | Left::Chunks(_) if !is_open => {
                    return Poll::Ready(Some(Err(self.fail(Http1Error::Ended))));
                }
                Left::Bytes(_) | Left::Chunks(_) | Left::UntilClose | Left::Nothing => {}
            }
            if !data.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(data))));
            }
        }
        Poll::Ready(self.trailers.take().map(|trailers| Ok(Frame::trailers(trailers))))
    }

    /// What has arrived, without framing, and whether the upstream still has the connection open.
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
        match &mut self.left {
            Left::Bytes(left) => {
                let count = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= count as u64;
                // More than was announced: whatever it is, the next request must not get it as its answer.
                self.reuse &= count == bytes.len();
                Ok(Bytes::copy_from_slice(&bytes[..count]))
            }
            Left::Chunks(chunks) => {
                let mut data = Vec::with_capacity(bytes.len());
                let count = chunks.take(bytes, &mut data)?;
                self.reuse &= count == bytes.len();
                Ok(data.into())
            }
            Left::UntilClose => Ok(Bytes::copy_from_slice(bytes)),
            Left::Nothing => Ok(Bytes::new()),
        }
    }

    /// Goes on sending a request that is answered before it has all arrived.
    fn send_on(&mut self, cx: &mut Context<'_>) {
        if let (Some(sending), Some(stream)) = (&mut self.sending, &mut self.stream)
            && let Poll::Ready(sent) = sending.poll(stream, cx)
        {
            // An upstream that has answered need not take the rest; its answer counts.
            self.reuse &= sent.is_ok();
            self.sending = None;
        }
    }

    /// The answer is complete: the connection can serve another request.
    fn end(&mut self) {
        self.left = Left::Nothing;
        if let Some(stream) = self.stream.take()
            && self.reuse
            && self.rest.is_empty()
            && self.sending.is_none()
        {
            self.pool.give_back(stream);
        }
    }

    fn fail(&mut self, error: Http1Error) -> Http1Error {
        self.left = Left::Nothing;
        self.stream = None;
        error
    }

    pub(crate) fn is_end_stream(&self) -> bool {
        matches!(self.left, Left::Nothing) && self.trailers.is_none()
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        match self.left {
            Left::Bytes(left) => SizeHint::with_exact(left),
            Left::Nothing => SizeHint::with_exact(0),
            Left::Chunks(_) | Left::UntilClose => SizeHint::default(),
        }
    }
}
