//! Request bodies sent to an upstream.

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use std::collections::VecDeque;
use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// The body of a request to an upstream.
#[derive(Debug)]
pub(crate) enum SendBody {
    /// A request that was read completely: the client's bytes, and ours between them. `length` is the size of `left`, and `sent` is told
    /// when the first of it is sent.
    Pieces { left: VecDeque<Bytes>, length: u64, sent: Option<Progress> },
    /// A request that is streamed as it arrives.
    Stream(Upload),
}

impl SendBody {
    pub(crate) fn pieces(pieces: impl IntoIterator<Item = Bytes>) -> SendBody {
        let mut left = VecDeque::new();
        let mut small = BytesMut::new();
        let mut length = 0;
        for piece in pieces {
            length += piece.len() as u64;
            if piece.len() < MERGE_BELOW {
                small.extend_from_slice(&piece);
                continue;
            }
            if !small.is_empty() {
                left.push_back(small.split().freeze());
            }
            left.push_back(piece);
        }
        if !small.is_empty() {
            left.push_back(small.freeze());
        }
        SendBody::Pieces { left, length, sent: None }
    }

    /// Returns the same body, to be sent again, or `None` if it is streamed.
    pub(crate) fn replica(&self) -> Option<SendBody> {
        match self {
            SendBody::Pieces { left, length, sent } => {
                Some(SendBody::Pieces { left: left.clone(), length: *length, sent: sent.clone() })
            }
            SendBody::Stream(_) => None,
        }
    }

    /// Returns the complete body, or `None` if it is streamed.
    pub(crate) fn whole(&self) -> Option<Vec<u8>> {
        match self {
            SendBody::Pieces { left, .. } => Some(left.iter().flatten().copied().collect()),
            SendBody::Stream(_) => None,
        }
    }
}

/// Adjacent pieces below this size are merged, because a system call costs more than the copy.
const MERGE_BELOW: usize = 16 * 1024;

impl Body for SendBody {
    type Data = Bytes;
    type Error = UploadError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        match self.get_mut() {
            SendBody::Pieces { left, length, sent } => {
                if let Some(sent) = sent.take() {
                    sent.shared.is_sent.store(true, Ordering::Relaxed);
                }
                let piece = left.pop_front();
                *length -= piece.as_ref().map_or(0, |piece| piece.len() as u64);
                Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
            }
            SendBody::Stream(upload) => upload.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            SendBody::Pieces { left, .. } => left.is_empty(),
            SendBody::Stream(upload) => upload.body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            SendBody::Pieces { length, .. } => SizeHint::with_exact(*length),
            SendBody::Stream(upload) => upload.body.size_hint(),
        }
    }
}

/// A client's body, streamed to an upstream. It fails if the client stalls, and records its progress, so that a long upload
/// does not count against the first-byte timeout.
#[derive(Debug)]
pub(crate) struct Upload {
    body: Incoming,
    timeout: Duration,
    timer: Pin<Box<Sleep>>,
    progress: Progress,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum UploadError {
    #[error("the client stopped sending its body")]
    Stalled,
    #[error("the client's body has malformed framing")]
    Malformed,
    #[error("the client disconnected")]
    Gone,
}

impl From<hyper::Error> for UploadError {
    /// `framing` reports a malformed body to hyper as invalid data. Any other error means that the client disconnected.
    fn from(error: hyper::Error) -> UploadError {
        let invalid = |cause: &(dyn Error + 'static)| {
            let io: Option<&io::Error> = cause.downcast_ref();
            io.is_some_and(|io| matches!(io.kind(), io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput))
        };
        if causes(&error).any(invalid) { UploadError::Malformed } else { UploadError::Gone }
    }
}

/// The chain of an error's sources, starting with the nearest.
pub(crate) fn causes(error: &dyn Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(error.source(), |&cause| cause.source())
}

impl Upload {
    pub(crate) fn new(body: Incoming, timeout: Duration, progress: Progress) -> Upload {
        Upload { body, timeout, timer: Box::pin(tokio::time::sleep(timeout)), progress }
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Ready(frame) => {
                if let Some(Ok(frame)) = &frame {
                    self.progress.record(frame.data_ref().map_or(0, Bytes::len));
                }
                self.timer.as_mut().reset(Instant::now() + self.timeout);
                Poll::Ready(frame.map(|frame| frame.map_err(UploadError::from)))
            }
            Poll::Pending => {
                ready!(self.timer.as_mut().poll(cx));
                Poll::Ready(Some(Err(UploadError::Stalled)))
            }
        }
    }
}

/// How much of a request's body has arrived, and when its last bytes did.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    started: Instant,
    shared: Arc<Counters>,
}

#[derive(Debug, Default)]
struct Counters {
    bytes: AtomicU64,
    micros: AtomicU64,
    is_sent: AtomicBool,
}

impl Progress {
    pub(crate) fn start() -> Progress {
        Progress { started: Instant::now(), shared: Arc::default() }
    }

    pub(crate) fn record(&self, bytes: usize) {
        let micros = u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.shared.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.shared.micros.store(micros, Ordering::Relaxed);
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.shared.bytes.load(Ordering::Relaxed)
    }

    /// Whether an upstream may have the request, if it was read before it was sent.
    pub(crate) fn is_sent(&self) -> bool {
        self.shared.is_sent.load(Ordering::Relaxed)
    }

    /// When the last bytes arrived, or the start if none have.
    pub(crate) fn last_activity(&self) -> Instant {
        self.started + Duration::from_micros(self.shared.micros.load(Ordering::Relaxed))
    }
}
