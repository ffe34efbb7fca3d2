//! The figures of requests and conversations.

use crate::cache::Billed;
use crate::price::Cost;

/// One request under one policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Turn {
    /// The tokens of the request as the client sent it.
    pub before: u64,
    pub billed: Billed,
    pub cost: Cost,
    pub fate: Fate,
    pub is_edited: bool,
    pub is_refused: bool,
    /// Whether the provider would reject it, because it is longer than the model's window.
    pub is_over: bool,
    pub is_unreadable: bool,
}

/// The tokens of a request's messages, by what happened to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fate {
    /// Forwarded unchanged, including everything before the messages.
    pub kept: u64,
    /// Masked messages, at their original length.
    pub masked: u64,
    /// Left out of trimmed messages.
    pub trimmed: u64,
    /// Replaced by a summary.
    pub folded: u64,
    /// Replaced by a marker.
    pub dropped: u64,
    /// Messages inserted by Tidegate.
    pub own: u64,
}

/// The totals of many requests under one policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    pub requests: u64,
    pub refused: u64,
    pub over: u64,
    pub unreadable: u64,
    /// Tokens as the client sent them, without refused requests.
    pub before: u64,
    /// Tokens as they would be forwarded, without refused requests.
    pub sent: u64,
    pub cached: u64,
    pub cost: Cost,
    /// Requests that would be forwarded edited.
    pub edited: u64,
    /// Requests whose edits change a prefix that the provider may have cached.
    pub moves: u64,
    pub summaries: u64,
    /// The tokens of the longest request.
    pub peak: u64,
}

impl Figures {
    pub(crate) fn count(&mut self, turn: &Turn) {
        self.requests += 1;
        self.refused += u64::from(turn.is_refused);
        self.over += u64::from(turn.is_over);
        self.unreadable += u64::from(turn.is_unreadable);
        self.before += turn.before;
        self.sent += turn.billed.tokens();
        self.cached += turn.billed.read;
        self.cost.add(&turn.cost);
        self.edited += u64::from(turn.is_edited);
        self.moves += u64::from(turn.billed.is_moved);
        self.peak = self.peak.max(turn.billed.tokens());
    }

    pub(crate) fn add(&mut self, other: &Figures) {
        self.requests += other.requests;
        self.refused += other.refused;
        self.over += other.over;
        self.unreadable += other.unreadable;
        self.before += other.before;
        self.sent += other.sent;
        self.cached += other.cached;
        self.cost.add(&other.cost);
        self.edited += other.edited;
        self.moves += other.moves;
        self.summaries += other.summaries;
        self.peak = self.peak.max(other.peak);
    }

    /// Requests that Tidegate or the provider would have refused.
    #[must_use]
    pub fn unanswered(&self) -> u64 {
        self.refused + self.over
    }

    /// The share of the forwarded tokens that was read from the provider's cache.
    #[must_use]
    pub fn cached_share(&self) -> f64 {
        if self.sent == 0 { 0.0 } else { self.cached as f64 / self.sent as f64 }
    }
}
