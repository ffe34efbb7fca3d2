use crate::turns::dialogue;
use crate::{Digest, Fold, Gap, Message, Timestamp};

/// What was decided for one request, so that the next one can repeat it.
///
/// A waypoint is found by the digest of the conversation at its end, so only a request that continues exactly that
/// conversation finds it. A waypoint is never changed; a later request records another.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Waypoint {
    /// The digest at the last message of the request.
    pub end: Digest,
    /// The digest at the last message before the mask frontier; `None` while nothing is masked.
    pub frontier: Option<Digest>,
    /// What leaving maskable observations in the prompt has cost since the frontier last moved.
    pub tally: f64,
    /// When the request was made.
    pub at: Timestamp,
    /// What the summary in use covered; `None` if there was no summary.
    pub fold: Option<Digest>,
    /// What not folding has cost since that summary was made.
    pub fold_tally: f64,
    /// The run of messages that the window strategy dropped; `None` if it dropped nothing.
    pub gap: Option<Gap>,
}

/// The decisions of a conversation and all its branches: waypoints, the newest last, and summaries.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    waypoints: Vec<Waypoint>,
    folds: Vec<Fold>,
}

/// The maximum number of waypoints in memory. A branch whose waypoint was evicted is decided anew.
const MAX_WAYPOINTS: usize = 64;

/// In milliseconds. Shorter than any provider's cache life, so that skipping a waypoint never makes a cache look cold.
const RECENT: u64 = 60_000;

impl Memory {
    /// A memory of stored waypoints, the newest last.
    #[must_use]
    pub fn of(waypoints: Vec<Waypoint>) -> Memory {
        Memory { waypoints, folds: Vec::new() }
    }

    /// The waypoints, the newest last.
    #[must_use]
    pub fn waypoints(&self) -> &[Waypoint] {
        &self.waypoints
    }

    /// The summaries of the conversation and its branches.
    #[must_use]
    pub fn folds(&self) -> &[Fold] {
        &self.folds
    }

    /// Adds a summary, unless there is one of the same prefix. The first one is immutable: replacing it would change what is
    /// forwarded.
    pub fn add_fold(&mut self, fold: Fold) {
        if !self.folds.iter().any(|known| known.covers == fold.covers) {
            self.folds.push(fold);
        }
    }

    /// Adds a waypoint, and evicts the oldest if there are too many.
    pub fn add(&mut self, waypoint: Waypoint) {
        // A retry records the same waypoint again. It must not evict another branch.
        self.waypoints.retain(|known| known.end != waypoint.end);
        if self.waypoints.len() >= MAX_WAYPOINTS {
            self.waypoints.remove(0);
        }
        self.waypoints.push(waypoint);
    }

    /// Whether the same decision was recorded a moment ago, so that a retry has nothing to add.
    #[must_use]
    pub fn has_recent(&self, waypoint: &Waypoint) -> bool {
        let is_same = |known: &Waypoint| {
            (known.end, known.frontier, known.fold) == (waypoint.end, waypoint.frontier, waypoint.fold)
                && waypoint.at.0.saturating_sub(known.at.0) <= RECENT
        };
        self.waypoints.iter().any(is_same)
    }

    /// Returns the waypoint of the longest known prefix of these messages, with the index of that prefix's last message.
    #[must_use]
    pub fn latest_waypoint(&self, messages: &[Message]) -> Option<(usize, &Waypoint)> {
        dialogue(messages).rev().find_map(|(index, message)| {
            let waypoint = self.waypoints.iter().rev().find(|waypoint| waypoint.end == message.digest)?;
            Some((index, waypoint))
        })
    }
}

/// Whether a request is a retry of the one that recorded a waypoint at `index`.
///
/// Instructions are not part of the digest, so trailing ones do not make it a new request.
pub(crate) fn is_retry(messages: &[Message], index: usize) -> bool {
    messages[index + 1..].iter().all(|message| message.role.is_instruction())
}
