//! The vocabulary of an [`Answer`](crate::Answer): what is done, in which framing, and how it ends.

use std::time::Duration;

use bytes::Bytes;
use tokio::sync::watch;

/// One thing the upstream does while it answers.
#[derive(Clone, Debug)]
pub enum Step {
    /// Send the head now, although no byte of the body is due.
    Head,
    /// Body bytes, in one write of their own.
    Chunk(Bytes),
    /// Like `Chunk`, only for requests that asked for `stream_options.include_usage`.
    UsageChunk(Bytes),
    /// This many bytes of the [`filler`] pattern.
    Fill(u64),
    Pause(Duration),
    /// Stall until the gate opens, which may be never.
    Wait(Gate),
    /// End the connection here, whatever the framing promised.
    Break(Ending),
    /// Bytes that no framing touches. As the first bytes they stand in place of the head.
    Raw(Bytes),
}

impl Step {
    /// How many bytes of the body this is.
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

/// When the answer begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    AfterBody,
    BeforeBody,
}

/// How the end of the body is told on HTTP/1.1. HTTP/2 has its own framing and only looks at `Declared`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// `content-length` with the true sum of all steps.
    Length,
    /// `content-length` with this number, true or not.
    Declared(u64),
    /// `transfer-encoding: chunked`, one chunk a step.
    Chunked,
    /// The connection's end is the body's end.
    Close,
}

/// How a connection is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// An orderly FIN.
    Close,
    /// A TCP reset. On HTTP/2 both endings reset the stream.
    Reset,
}

/// A point at which an answer waits for the test. Clones share one state.
#[derive(Clone, Debug)]
pub struct Gate(watch::Sender<bool>);

impl Gate {
    pub fn new() -> Self {
        Gate(watch::Sender::new(false))
    }

    /// Lets every answer that waits here, now or later, go on.
    pub fn open(&self) {
        self.0.send_replace(true);
    }

    pub(crate) async fn opened(&self) {
        let mut state = self.0.subscribe();
        // It cannot fail: `self` holds a sender as long as this future lives.
        let _ = state.wait_for(|open| *open).await;
    }
}

impl Default for Gate {
    fn default() -> Self {
        Gate::new()
    }
}

/// The first `length` bytes of the pattern that [`Step::Fill`] sends. Its period is prime, so that a byte lost or
/// moved at any power of two shows.
pub fn filler(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index % 251) as u8).collect()
}
