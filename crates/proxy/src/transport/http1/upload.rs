//! A request on its way to the upstream.

use crate::transport::body::SendBody;
use crate::transport::http1::error::Http1Error;
use bytes::{Buf, Bytes};
use http_body::Body;
use std::collections::VecDeque;
use std::io::IoSlice;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;
use tokio::net::TcpStream;

#[derive(Debug)]
pub(crate) struct Sending {
    /// What is ready to be written, the head first.
    ready: VecDeque<Bytes>,
    body: SendBody,
    is_chunked: bool,
    /// The whole body has been taken into `ready`.
    is_taken: bool,
    is_untouched: bool,
}

/// How much is taken from a body before it is written.
const AHEAD: usize = 256 * 1024;
/// How many pieces one system call writes.
const SLICES: usize = 32;

impl Sending {
    pub(super) fn new(head: Bytes, body: SendBody) -> Sending {
        let is_chunked = body.size_hint().exact().is_none();
        Sending { ready: VecDeque::from([head]), body, is_chunked, is_taken: false, is_untouched: true }
    }

    /// Nothing of it has been written yet.
    pub(super) fn is_untouched(&self) -> bool {
        self.is_untouched
    }

    pub(super) fn is_done(&self) -> bool {
        self.is_taken && self.ready.is_empty()
    }

    /// Writes as much as the upstream takes; ready when all of it is written.
    pub(super) fn poll(
        &mut self,
        stream: &mut TcpStream,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Http1Error>> {
        while !self.is_done() {
            let waits = self.take(cx)?;
            if self.ready.is_empty() && waits.is_pending() {
                return Poll::Pending;
            }
            let slices: Vec<IoSlice<'_>> =
                self.ready.iter().take(SLICES).map(|piece| IoSlice::new(piece)).collect();
            if slices.is_empty() {
                continue;
            }
            let written = ready!(Pin::new(&mut *stream).poll_write_vectored(cx, &slices))?;
            self.is_untouched = false;
            self.advance(written);
        }
        Poll::Ready(Ok(()))
    }

    /// Takes what the body has; pending if it has no more for now.
    fn take(&mut self, cx: &mut Context<'_>) -> Result<Poll<()>, Http1Error> {
        while !self.is_taken && self.ready.iter().map(Bytes::len).sum::<usize>() < AHEAD {
            match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        self.queue(data);
                    }
                }
                Poll::Ready(Some(Err(error))) => return Err(Http1Error::Upload(error)),
                Poll::Ready(None) => {
                    self.is_taken = true;
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
            // An empty chunk would be taken for the last one.
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
