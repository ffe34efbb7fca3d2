//! What is counted of requests and conversations.

use crate::cache::Billed;
use crate::price::Cost;

/// One request under one policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Turn {
    /// What it would use as the client sent it, in tokens.
    pub before: u64,
    pub billed: Billed,
    pub cost: Cost,
    pub fate: Fate,
    pub is_edited: bool,
    pub is_refused: bool,
    /// Whether the provider would refuse it, because it is longer than the model's window.
    pub is_over: bool,
    pub is_unreadable: bool,
}

/// What became of the messages of a request, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fate {
    /// Sent as they came, with what stands before the messages.
    pub kept: u64,
    /// As long as they were before they became placeholders.
    pub masked: u64,
    /// Gone for a summary.
    pub folded: u64,
    /// Gone for a marker.
    pub dropped: u64,
    /// Messages of our own.
    pub own: u64,
}

/// Many requests under one policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    pub requests: u64,
    pub refused: u64,
    pub over: u64,
    pub unreadable: u64,
    /// Tokens as the client sent them, and as they would be forwarded. What is refused is in neither.
    pub before: u64,
    pub sent: u64,
    pub cached: u64,
    pub cost: Cost,
    /// Requests that would go out edited, and those of them that change what the provider has seen before.
    pub edited: u64,
    pub moves: u64,
    pub summaries: u64,
    /// The longest request.
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

    /// Requests that nobody would have answered.
    #[must_use]
    pub fn unanswered(&self) -> u64 {
        self.refused + self.over
    }

    /// The share of what was sent that the provider had in its cache.
    #[must_use]
    pub fn cached_share(&self) -> f64 {
        if self.sent == 0 { 0.0 } else { self.cached as f64 / self.sent as f64 }
    }
}
