//! A conversation, as its requests.

use bytes::Bytes;
use std::sync::Arc;

/// A recorded conversation: its requests, as a client would have sent them.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub id: String,
    /// What is pinned to it.
    pub memory: Option<Arc<str>>,
    requests: Requests,
    /// When each request was sent, in milliseconds; none where nobody wrote it down.
    times: Vec<Option<u64>>,
}

#[derive(Clone, Debug)]
enum Requests {
    /// Each request is the beginning of this up to one of these ends, and then the brackets are closed.
    Prefixes {
        whole: Vec<u8>,
        ends: Vec<usize>,
    },
    Bodies(Vec<Bytes>),
}

const CLOSING: &[u8] = b"]}";

/// The body of a request, and when it was sent.
pub(super) type Sent = (Bytes, Option<u64>);

impl Recorded {
    /// Each request is the beginning of `whole` up to one of `ends`.
    pub(super) fn of_prefixes(
        id: String,
        memory: Option<Arc<str>>,
        whole: Vec<u8>,
        ends: Vec<usize>,
        times: Vec<Option<u64>>,
    ) -> Recorded {
        Recorded { id, memory, requests: Requests::Prefixes { whole, ends }, times }
    }

    pub(super) fn of_requests(id: String, requests: Vec<Sent>) -> Recorded {
        let (bodies, times) = requests.into_iter().unzip();
        Recorded { id, memory: None, requests: Requests::Bodies(bodies), times }
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.times.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// The body of a request, by its number.
    #[must_use]
    pub fn body(&self, number: usize) -> Bytes {
        match &self.requests {
            Requests::Prefixes { whole, ends } => [&whole[..ends[number]], CLOSING].concat().into(),
            Requests::Bodies(bodies) => bodies[number].clone(),
        }
    }

    /// When each request was sent. One without a time comes `gap` after the one before it, and none before it.
    #[must_use]
    pub fn times(&self, gap: u64) -> Vec<u64> {
        let mut last = None;
        let next = |at: &Option<u64>| {
            let at = match (*at, last) {
                (Some(at), Some(before)) => at.max(before),
                (Some(at), None) => at,
                (None, Some(before)) => before + gap,
                // Long after the beginning of time, so that nothing has happened a moment ago.
                (None, None) => 1_000_000_000_000,
            };
            last = Some(at);
            at
        };
        self.times.iter().map(next).collect()
    }

    /// Whether every request has a time of its own.
    #[must_use]
    pub fn has_times(&self) -> bool {
        self.times.iter().all(Option::is_some)
    }

    pub(super) fn bytes(&self) -> u64 {
        match &self.requests {
            Requests::Prefixes { whole, .. } => whole.len() as u64,
            Requests::Bodies(bodies) => bodies.iter().map(|body| body.len() as u64).sum(),
        }
    }
}
