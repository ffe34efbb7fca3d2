//! Strict HTTP/1 request framing, enforced below hyper.
//!
//! Two servers that disagree on the length of a request can be made to see different requests (request smuggling).
//! hyper silently resolves ambiguous framing, for instance by dropping a `Content-Length` next to a `Transfer-Encoding`.
//! This layer refuses such requests instead. It inspects the bytes as they pass, withholds a head until it is complete
//! and valid, and copies nothing when a head arrives in one read.

use crate::transport::framing::head::{BodyLength, HeadError};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

mod chunked;
mod connection;
mod head;

pub(crate) use connection::{ActiveRequest, CONNECTION_WINDOW, ConnectionState, STREAM_WINDOW, SharedState};

/// Why a request was refused before hyper saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Violation {
    /// The head violates HTTP/1. The text names the rule.
    Malformed(&'static str),
    /// The head is longer than the limit.
    HeadTooLarge,
    /// The head did not arrive within the timeout.
    HeadTooSlow,
}

/// The protocol that a connection starts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    Http1,
    Http2,
    /// The client closed before its first head was complete.
    Nothing,
}

/// The method of the request that hyper sees in place of a refused one. The service replies with the connection's
/// violation. If a client sends this method itself, no violation is set and the request is handled normally.
pub(crate) const REFUSED_METHOD: &str = "REFUSED";
const REFUSED_HEAD: &[u8] = b"REFUSED / HTTP/1.1\r\nhost: refused\r\nconnection: close\r\n\r\n";

/// Wraps a client's connection and checks the framing of everything that is read from it.
#[derive(Debug)]
pub(crate) struct Guard<S> {
    stream: S,
    phase: Phase,
    limits: Limits,
    state: SharedState,
    /// An incomplete head, or checked bytes that did not fit the reader's buffer.
    held: Vec<u8>,
    /// The length of the prefix of `held` that is checked and may be passed to the reader.
    checked: usize,
    /// Runs while a head is incomplete.
    head_timer: Option<Pin<Box<Sleep>>>,
    /// Runs while the client takes nothing of what it is sent.
    write_timer: Option<Pin<Box<Sleep>>>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) max_head: usize,
    pub(crate) head_timeout: Duration,
    /// How long the client may take nothing of what it is sent.
    pub(crate) write_timeout: Duration,
}

#[derive(Debug)]
enum Phase {
    /// The next byte belongs to a request head. Only the `first` head of a connection may be an HTTP/2 preface.
    Head {
        first: bool,
    },
    Body {
        left: u64,
    },
    Chunked(chunked::Chunked),
    /// HTTP/2, which has its own framing.
    Http2,
    /// Another protocol, to which the client and the upstream have switched.
    Switched,
    Refused,
    /// A chunked body is malformed. The bytes before the error are passed on, then hyper gets an error.
    Broken,
}

impl<S> Guard<S> {
    pub(crate) fn new(stream: S, limits: Limits, state: SharedState) -> Guard<S> {
        Guard {
            stream,
            phase: Phase::Head { first: true },
            limits,
            state,
            held: Vec::new(),
            checked: 0,
            head_timer: None,
            write_timer: None,
        }
    }

    /// Checks `bytes` and returns the length of the prefix that may be passed on. The rest is the start of an incomplete
    /// or a refused head.
    fn check(&mut self, bytes: &[u8]) -> usize {
        if matches!(self.phase, Phase::Head { .. }) && self.state.is_switched() {
            self.phase = Phase::Switched;
        }
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            match &mut self.phase {
                Phase::Http2 | Phase::Switched => return bytes.len(),
                Phase::Refused | Phase::Broken => return at,
                Phase::Body { left } => {
                    let step = rest.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                    *left -= step as u64;
                    at += step;
                    if *left == 0 {
                        self.phase = Phase::Head { first: false };
                    }
                }
                Phase::Chunked(chunked) => {
                    match chunked.advance(rest) {
                        Ok(step) => at += step,
                        Err(_) => {
                            self.phase = Phase::Broken;
                            return at;
                        }
                    }
                    if chunked.is_done() {
                        self.phase = Phase::Head { first: false };
                    }
                }
                Phase::Head { first } => match head::read(rest, *first, self.limits.max_head) {
                    Ok(None) => return at,
                    Ok(Some(head)) => {
                        at += head.length;
                        self.phase = match head.body {
                            BodyLength::None => Phase::Head { first: false },
                            BodyLength::Known(left) => Phase::Body { left },
                            BodyLength::Chunked => Phase::Chunked(chunked::Chunked::default()),
                            BodyLength::Http2 => Phase::Http2,
                        };
                    }
                    Err(error) => {
                        self.refuse(match error {
                            HeadError::Malformed(rule) => Violation::Malformed(rule),
                            HeadError::TooLarge => Violation::HeadTooLarge,
                        });
                        return at;
                    }
                },
            }
        }
        at
    }

    fn refuse(&mut self, violation: Violation) {
        self.state.violate(violation);
        self.phase = Phase::Refused;
        self.head_timer = None;
    }

    /// Moves as many checked bytes to `buf` as fit.
    fn pass_on(&mut self, buf: &mut ReadBuf<'_>) {
        let count = self.checked.min(buf.remaining());
        buf.put_slice(&self.held[..count]);
        self.held.drain(..count);
        self.checked -= count;
        if self.held.is_empty() {
            // An idle connection should not keep the memory of its largest head.
            self.held = Vec::new();
            self.state.hold(0);
        }
    }

    /// Replaces the unchecked bytes with the request that stands in for the refused one.
    fn substitute_refused(&mut self) {
        self.held.truncate(self.checked);
        self.held.extend_from_slice(REFUSED_HEAD);
        self.checked = self.held.len();
    }
}

impl<S: AsyncRead + Unpin> Guard<S> {
    /// Waits for the first head and returns its protocol. The head stays in the buffer until it is read.
    pub(crate) async fn opening(&mut self) -> io::Result<Opening> {
        poll_fn(|cx| self.poll_fill(cx)).await?;
        Ok(match self.phase {
            _ if self.checked == 0 => Opening::Nothing,
            Phase::Http2 => Opening::Http2,
            Phase::Head { .. } | Phase::Body { .. } | Phase::Chunked(_) => Opening::Http1,
            Phase::Switched | Phase::Refused | Phase::Broken => Opening::Http1,
        })
    }

    /// Reads until the held head is complete. Only the first head of a connection and heads that arrive in pieces take
    /// this path, so the small buffer and the copy do not matter.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut space = [0u8; 4096];
            let mut more = ReadBuf::new(&mut space);
            match Pin::new(&mut self.stream).poll_read(cx, &mut more)? {
                Poll::Ready(()) if more.filled().is_empty() => {
                    // The client closed within a head. hyper sees the end of input and closes too.
                    self.held.clear();
                    return Poll::Ready(Ok(()));
                }
                Poll::Ready(()) => {
                    self.held.extend_from_slice(more.filled());
                    let held = std::mem::take(&mut self.held);
                    let checked = self.check(&held);
                    self.held = held;
                    self.checked = checked;
                    if matches!(self.phase, Phase::Refused) {
                        self.substitute_refused();
                    }
                    if self.checked == 0 && !self.state.hold(self.held.len()) {
                        self.refuse(Violation::HeadTooLarge);
                        self.substitute_refused();
                    }
                    if self.checked > 0 {
                        self.head_timer = None;
                        return Poll::Ready(Ok(()));
                    }
                    if matches!(self.phase, Phase::Broken) {
                        return Poll::Ready(Err(broken()));
                    }
                }
                Poll::Pending => {
                    if self.held.is_empty() {
                        return Poll::Pending;
                    }
                    let timeout = self.limits.head_timeout;
                    let timer = self.head_timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
                    ready!(timer.as_mut().poll(cx));
                    self.refuse(Violation::HeadTooSlow);
                    self.substitute_refused();
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}

fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "malformed chunked body")
}

impl<S: AsyncRead + Unpin> AsyncRead for Guard<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let guard = self.get_mut();
        if guard.state.is_switched() && guard.checked == 0 && !guard.held.is_empty() {
            // The client did not wait for the upstream's consent.
            let held = std::mem::take(&mut guard.held);
            guard.checked = guard.check(&held);
            guard.held = held;
        }
        if guard.checked > 0 {
            guard.pass_on(buf);
            return Poll::Ready(Ok(()));
        }
        if matches!(guard.phase, Phase::Broken) {
            return Poll::Ready(Err(broken()));
        }
        if matches!(guard.phase, Phase::Refused) {
            // Returning the end of input would make hyper assume that the client left and drop the response.
            // The response itself closes the connection.
            return Poll::Pending;
        }
        if guard.held.is_empty() {
            let before = buf.filled().len();
            ready!(Pin::new(&mut guard.stream).poll_read(cx, buf))?;
            let arrived = &buf.filled()[before..];
            if arrived.is_empty() {
                return Poll::Ready(Ok(()));
            }
            let checked = guard.check(arrived);
            if checked == arrived.len() {
                return Poll::Ready(Ok(()));
            }
            guard.held.extend_from_slice(&arrived[checked..]);
            buf.set_filled(before + checked);
            if matches!(guard.phase, Phase::Refused) {
                guard.substitute_refused();
            }
            if checked > 0 {
                return Poll::Ready(Ok(()));
            }
            if matches!(guard.phase, Phase::Broken) {
                return Poll::Ready(Err(broken()));
            }
        }
        if guard.checked == 0 {
            ready!(guard.poll_fill(cx))?;
        }
        guard.pass_on(buf);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> Guard<S> {
    /// Fails if the client takes nothing for too long. Otherwise it would hold its upstream for as long as it likes.
    fn limited<T>(&mut self, cx: &mut Context<'_>, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.write_timer = None;
            return polled;
        }
        let timeout = self.limits.write_timeout;
        let timer = self.write_timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
        ready!(timer.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client reads nothing")))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guard<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let guard = self.get_mut();
        let polled = Pin::new(&mut guard.stream).poll_write(cx, buf);
        guard.limited(cx, polled)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let guard = self.get_mut();
        let polled = Pin::new(&mut guard.stream).poll_flush(cx);
        guard.limited(cx, polled)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let guard = self.get_mut();
        let polled = Pin::new(&mut guard.stream).poll_shutdown(cx);
        guard.limited(cx, polled)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let guard = self.get_mut();
        let polled = Pin::new(&mut guard.stream).poll_write_vectored(cx, bufs);
        guard.limited(cx, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests;
