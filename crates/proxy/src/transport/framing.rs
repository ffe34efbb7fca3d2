//! Where one HTTP/1 request ends and the next begins, judged strictly.
//!
//! Two servers that disagree on the length of a request can be made to see different requests (request smuggling).
//! hyper resolves doubtful framing quietly, for instance by dropping a `Content-Length` beside a `Transfer-Encoding`;
//! this layer below it refuses instead. It reads along as the bytes pass, holds a head back until it is complete and
//! sound, and copies nothing when a head arrives in one piece.

use crate::transport::framing::head::{BodyLength, HeadError};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

mod chunked;
mod head;

/// Why a connection's next request was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Violation {
    /// The head breaks a rule of HTTP/1; the text says which.
    Malformed(&'static str),
    /// The head is longer than the limit.
    HeadTooLarge,
    /// The head did not arrive in time.
    HeadTooSlow,
}

/// What a connection begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    Http1,
    /// The preface of HTTP/2.
    Http2,
    /// The client closed without a word, or within its first head.
    Nothing,
}

/// Where the guard leaves its verdict for the service of the same connection.
pub(crate) type Verdict = Arc<OnceLock<Violation>>;

/// The request that hyper gets to see in place of one that was refused. The service answers it from the [`Verdict`];
/// a client that sends the same text itself finds no verdict and is treated like anybody.
pub(crate) const REFUSED_METHOD: &str = "REFUSED";
const REFUSED_HEAD: &[u8] = b"REFUSED / HTTP/1.1\r\nhost: refused\r\nconnection: close\r\n\r\n";

#[derive(Debug)]
pub(crate) struct Guard<S> {
    stream: S,
    phase: Phase,
    limits: Limits,
    verdict: Verdict,
    /// A head that is not complete yet, or bytes that are sound but did not fit the reader's buffer.
    held: Vec<u8>,
    /// How much of `held` is sound and may be handed on.
    sound: usize,
    /// Runs while a head has begun and is not complete.
    head_timer: Option<Pin<Box<Sleep>>>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) max_head: usize,
    pub(crate) head_timeout: Duration,
}

#[derive(Debug)]
enum Phase {
    /// The next byte belongs to a request head. `first` until one head was read: only there an HTTP/2 preface may stand.
    Head {
        first: bool,
    },
    Body {
        left: u64,
    },
    Chunked(chunked::Chunked),
    /// HTTP/2, which frames itself.
    Open,
    Refused,
    /// A body whose end cannot be found. What came before it is handed on, then hyper gets an error.
    Broken,
}

impl<S> Guard<S> {
    pub(crate) fn new(stream: S, limits: Limits, verdict: Verdict) -> Guard<S> {
        let phase = Phase::Head { first: true };
        Guard { stream, phase, limits, verdict, held: Vec::new(), sound: 0, head_timer: None }
    }

    /// Reads along `bytes` and says how many of them, from the start, may be handed on. What follows is the beginning of
    /// an incomplete head, or of a refused one.
    fn follow(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            match &mut self.phase {
                Phase::Open => return bytes.len(),
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
                    match chunked.follow(rest) {
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
                            BodyLength::Unframed => Phase::Open,
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
        // Only the first verdict of a connection counts: it is closed after it.
        let _ = self.verdict.set(violation);
        self.phase = Phase::Refused;
        self.head_timer = None;
    }

    /// Hands on what is held and sound, as much as fits.
    fn hand_on(&mut self, buf: &mut ReadBuf<'_>) {
        let count = self.sound.min(buf.remaining());
        buf.put_slice(&self.held[..count]);
        self.held.drain(..count);
        self.sound -= count;
        if self.held.is_empty() {
            // A connection that idles should not keep the memory of its largest head.
            self.held = Vec::new();
        }
    }

    /// Ends the held bytes with the request that stands for the refused one.
    fn hold_refusal(&mut self) {
        self.held.truncate(self.sound);
        self.held.extend_from_slice(REFUSED_HEAD);
        self.sound = self.held.len();
    }
}

impl<S: AsyncRead + Unpin> Guard<S> {
    /// Waits for the first head and says what it is. The head stays here until it is read.
    pub(crate) async fn opening(&mut self) -> io::Result<Opening> {
        poll_fn(|cx| self.poll_fill(cx)).await?;
        Ok(match self.phase {
            _ if self.sound == 0 => Opening::Nothing,
            Phase::Open => Opening::Http2,
            Phase::Head { .. } | Phase::Body { .. } | Phase::Chunked(_) | Phase::Refused | Phase::Broken => {
                Opening::Http1
            }
        })
    }

    /// Reads until a held head is complete. Only the first head of a connection and heads that arrive in pieces come
    /// this way, so the small buffer and the copy do not matter.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut space = [0u8; 4096];
            let mut more = ReadBuf::new(&mut space);
            match Pin::new(&mut self.stream).poll_read(cx, &mut more)? {
                Poll::Ready(()) if more.filled().is_empty() => {
                    // The peer closed in the middle of a head. hyper sees the end and closes too.
                    self.held.clear();
                    return Poll::Ready(Ok(()));
                }
                Poll::Ready(()) => {
                    self.held.extend_from_slice(more.filled());
                    let held = std::mem::take(&mut self.held);
                    let sound = self.follow(&held);
                    self.held = held;
                    self.sound = sound;
                    if matches!(self.phase, Phase::Refused) {
                        self.hold_refusal();
                    }
                    if self.sound > 0 {
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
                    self.hold_refusal();
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
        if guard.sound > 0 {
            guard.hand_on(buf);
            return Poll::Ready(Ok(()));
        }
        if matches!(guard.phase, Phase::Broken) {
            return Poll::Ready(Err(broken()));
        }
        if matches!(guard.phase, Phase::Refused) {
            // Nothing more is read. An end of input here would look like a client that left, and hyper would
            // drop the answer; the answer closes the connection.
            return Poll::Pending;
        }
        if guard.held.is_empty() {
            let before = buf.filled().len();
            ready!(Pin::new(&mut guard.stream).poll_read(cx, buf))?;
            let arrived = &buf.filled()[before..];
            if arrived.is_empty() {
                return Poll::Ready(Ok(()));
            }
            let sound = guard.follow(arrived);
            if sound == arrived.len() {
                return Poll::Ready(Ok(()));
            }
            guard.held.extend_from_slice(&arrived[sound..]);
            buf.set_filled(before + sound);
            if matches!(guard.phase, Phase::Refused) {
                guard.hold_refusal();
            }
            if sound > 0 {
                return Poll::Ready(Ok(()));
            }
            if matches!(guard.phase, Phase::Broken) {
                return Poll::Ready(Err(broken()));
            }
        }
        if guard.sound == 0 {
            ready!(guard.poll_fill(cx))?;
        }
        guard.hand_on(buf);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guard<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests;
