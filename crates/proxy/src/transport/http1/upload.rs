//! Writes a request to its connection.

use crate::transport::body::SendBody;
use crate::transport::http1::error::Http1Error;
use crate::transport::stream::Stream;
use bytes::{Buf, Bytes};
use http_body::Body;
use std::collections::VecDeque;
use std::io::IoSlice;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;

#[derive(Debug)]
pub(crate) struct Sending {
    /// Bytes to write, starting with the head.
    ready: VecDeque<Bytes>,
    body: SendBody,
    is_chunked: bool,
    /// Whether all of the body is in `ready` or written.
    is_body_read: bool,
    /// Whether everything that was written has left TLS's buffer.
    is_flushed: bool,
    /// Whether nothing has been written yet.
    is_untouched: bool,
}

/// How many bytes are read from the body before they are written.
const READ_AHEAD: usize = 256 * 1024;
/// The maximum number of pieces written by one system call.
const MAX_SLICES: usize = 32;

impl Sending {
    pub(super) fn new(head: Bytes, body: SendBody) -> Sending {
        let is_chunked = body.size_hint().exact().is_none();
        Sending {
            ready: VecDeque::from([head]),
            body,
            is_chunked,
            is_body_read: false,
            is_flushed: false,
            is_untouched: true,
        }
    }

    pub(super) fn is_untouched(&self) -> bool {
        self.is_untouched
    }

    pub(super) fn is_done(&self) -> bool {
        self.is_written() && self.is_flushed
    }

    fn is_written(&self) -> bool {
        self.is_body_read && self.ready.is_empty()
    }

    /// Writes until everything is written or the socket blocks.
    pub(super) fn poll(&mut self, stream: &mut Stream, cx: &mut Context<'_>) -> Poll<Result<(), Http1Error>> {
        while !self.is_written() {
            let body = self.read_body(cx)?;
            if self.ready.is_empty() && body.is_pending() {
                // The upstream may want to see what there is before more comes.
                ready!(Pin::new(&mut *stream).poll_flush(cx))?;
                return Poll::Pending;
            }
            let slices: Vec<IoSlice<'_>> =
                self.ready.iter().take(MAX_SLICES).map(|piece| IoSlice::new(piece)).collect();
            if slices.is_empty() {
                continue;
            }
            let written = ready!(Pin::new(&mut *stream).poll_write_vectored(cx, &slices))?;
            self.is_untouched = false;
            self.advance(written);
        }
        if !self.is_flushed {
            ready!(Pin::new(&mut *stream).poll_flush(cx))?;
            self.is_flushed = true;
        }
        Poll::Ready(Ok(()))
    }

    /// Reads available data from the body. Returns `Pending` if the body has no more for now.
    fn read_body(&mut self, cx: &mut Context<'_>) -> Result<Poll<()>, Http1Error> {
        while !self.is_body_read && self.ready.iter().map(Bytes::len).sum::<usize>() < READ_AHEAD {
            match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        self.queue(data);
                    }
                }
                Poll::Ready(Some(Err(error))) => return Err(Http1Error::Upload(error)),
                Poll::Ready(None) => {
                    self.is_body_read = true;
                    if self.is_chunked {
                        self.ready.push_back(Bytes::from_static(b"0\r\n\r\n"));
                    }
                }
                Poll::Pending => return Ok(Poll::Pending),
            }
        }
        Ok(Poll::Ready(()))
    }

    fn queue(&mut self, data: Bytes) {
        if data.is_empty() {
            // An empty chunk would end the body.
            return;
        }
        if self.is_chunked {
            self.ready.push_back(format!("{:x}\r\n", data.len()).into());
            self.ready.push_back(data);
            self.ready.push_back(Bytes::from_static(b"\r\n"));
        } else {
            self.ready.push_back(data);
        }
    }

    fn advance(&mut self, mut written: usize) {
        while let Some(piece) = self.ready.front_mut() {
            if piece.len() > written {
                piece.advance(written);
                return;
            }
            written -= piece.len();
            self.ready.pop_front();
        }
    }
}
