//! The parts of an [`Answer`](crate::Answer): steps, framing and endings.

use std::time::Duration;

use bytes::Bytes;
use tokio::sync::watch;

/// One action of the upstream during a response.
#[derive(Clone, Debug)]
pub enum Step {
    /// Sends the head now, before any byte of the body.
    Head,
    /// Body bytes, in one write.
    Chunk(Bytes),
    /// Like `Chunk`, but only for requests with `stream_options.include_usage`.
    UsageChunk(Bytes),
    /// This many bytes of the [`filler`] pattern.
    Fill(u64),
    Pause(Duration),
    /// Stalls until the gate opens.
    Wait(Gate),
    /// Ends the connection here, whatever the framing declared.
    Break(Ending),
    /// Bytes without framing. As the first step they replace the head.
    Raw(Bytes),
}

impl Step {
    /// The number of body bytes.
    pub(crate) fn length(&self, usage_asked: bool) -> u64 {
        match self {
            Step::Chunk(bytes) => bytes.len() as u64,
            Step::UsageChunk(bytes) if usage_asked => bytes.len() as u64,
            Step::Fill(bytes) => *bytes,
            Step::Head
            | Step::UsageChunk(_)
            | Step::Pause(_)
            | Step::Wait(_)
            | Step::Break(_)
            | Step::Raw(_) => 0,
        }
    }
}

/// When the response begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    AfterBody,
    BeforeBody,
}

/// How the end of the body is signalled on HTTP/1.1. HTTP/2 has its own framing and only uses the length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// `content-length` with the actual length.
    Length,
    /// `content-length` with this number, right or wrong.
    Declared(u64),
    /// `transfer-encoding: chunked`, one chunk per step.
    Chunked,
    /// The end of the connection ends the body.
    Close,
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// An orderly FIN.
    Close,
    /// A TCP reset. On HTTP/2 both endings reset the stream.
    Reset,
}

/// A point where a response waits for the test. Clones share their state.
#[derive(Clone, Debug)]
pub struct Gate(watch::Sender<bool>);

impl Gate {
    pub fn new() -> Self {
        Gate(watch::Sender::new(false))
    }

    /// Releases every response that waits here, now or later.
    pub fn open(&self) {
        self.0.send_replace(true);
    }

    pub(crate) async fn opened(&self) {
        let mut state = self.0.subscribe();
        // This cannot fail: `self` holds a sender while this future lives.
        let _ = state.wait_for(|open| *open).await;
    }
}

impl Default for Gate {
    fn default() -> Self {
        Gate::new()
    }
}

/// The first `length` bytes of the pattern that [`Step::Fill`] sends. Its period is prime, so that bytes lost at any
/// power of two are noticed.
pub fn filler(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index % 251) as u8).collect()
}
