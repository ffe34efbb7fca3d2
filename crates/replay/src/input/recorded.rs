//! A recorded conversation.

use bytes::Bytes;
use std::sync::Arc;
use tidegate_wire::Dialect;

/// A recorded conversation: its requests, as a client would have sent them.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub id: String,
    /// The memory pinned to it.
    pub memory: Option<Arc<str>>,
    requests: Requests,
    /// When each request was sent, in milliseconds; `None` if not recorded.
    times: Vec<Option<u64>>,
}

#[derive(Clone, Debug)]
enum Requests {
    /// Each request is a prefix of `whole` that ends at one of `ends`, followed by closing brackets.
    Prefixes {
        whole: Vec<u8>,
        ends: Vec<usize>,
    },
    Bodies(Vec<Bytes>),
}

const CLOSING: &[u8] = b"]}";

/// The body of a request and its time.
pub(super) type TimedRequest = (Bytes, Option<u64>);

impl Recorded {
    /// Each request is a prefix of `whole` that ends at one of `ends`.
    pub(super) fn from_prefixes(
        id: String,
        memory: Option<Arc<str>>,
        whole: Vec<u8>,
        ends: Vec<usize>,
        times: Vec<Option<u64>>,
    ) -> Recorded {
        Recorded { id, memory, requests: Requests::Prefixes { whole, ends }, times }
    }

    /// A conversation of these requests, without times.
    #[must_use]
    pub fn from_bodies(id: String, bodies: Vec<Bytes>) -> Recorded {
        Recorded::from_requests(id, bodies.into_iter().map(|body| (body, None)).collect())
    }

    pub(super) fn from_requests(id: String, requests: Vec<TimedRequest>) -> Recorded {
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

    /// The dialect of its requests, by the longest of them: a first request may not tell.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        let last = self.len().checked_sub(1).map(|last| self.body(last));
        last.map_or(Dialect::Chat, |body| Dialect::of_body(&body))
    }

    /// The body of the request with this number.
    #[must_use]
    pub fn body(&self, number: usize) -> Bytes {
        match &self.requests {
            Requests::Prefixes { whole, ends } => [&whole[..ends[number]], CLOSING].concat().into(),
            Requests::Bodies(bodies) => bodies[number].clone(),
        }
    }

    /// When each request was sent, in ascending order. A request without a time is assumed `gap` after the
    /// previous one.
    #[must_use]
    pub fn times(&self, gap: u64) -> Vec<u64> {
        let mut last = None;
        let next = |at: &Option<u64>| {
            let at = match (*at, last) {
                (Some(at), Some(before)) => at.max(before),
                (Some(at), None) => at,
                (None, Some(before)) => before + gap,
                // An arbitrary time long after 1970, so that no earlier request seems recent.
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
