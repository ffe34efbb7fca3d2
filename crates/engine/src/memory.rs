use crate::{Digest, Fold, Gap, Message, Timestamp};

/// What one request left behind: how far the conversation had come, and what had been decided.
///
/// A waypoint is found by the digest of the conversation at its end, so that only a request that continues exactly that
/// conversation can find it. It is never changed; a later request leaves another.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Waypoint {
    /// The last message of the request.
    pub end: Digest,
    /// The last message before the mask frontier; absent while nothing is masked.
    pub frontier: Option<Digest>,
    /// What keeping the maskable observations has cost since the frontier last moved.
    pub tally: f64,
    pub at: Timestamp,
    /// What the summary in use covered; absent without one.
    pub fold: Option<Digest>,
    /// What not folding has cost since that summary was made.
    pub fold_tally: f64,
    /// The messages that the request went without, between a head and a tail; absent where it had all.
    pub gap: Option<Gap>,
}

/// The waypoints of a conversation and its branches, the newest last.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    waypoints: Vec<Waypoint>,
    folds: Vec<Fold>,
}

/// More than this many branches of one conversation are not alive at once; one that is forgotten is decided anew.
const MOST: usize = 64;

/// In milliseconds. Shorter than any provider's cache lives, so that the time of a waypoint stays right where it matters.
const RECENT: u64 = 60_000;

impl Memory {
    /// What was stored, the newest last.
    #[must_use]
    pub fn of(waypoints: Vec<Waypoint>) -> Memory {
        Memory { waypoints, folds: Vec::new() }
    }

    #[must_use]
    pub fn waypoints(&self) -> &[Waypoint] {
        &self.waypoints
    }

    /// The summaries of the conversation and its branches.
    #[must_use]
    pub fn folds(&self) -> &[Fold] {
        &self.folds
    }

    /// Adds a summary. The first one of a prefix stands: another would change what is forwarded.
    pub fn add_fold(&mut self, fold: Fold) {
        if !self.folds.iter().any(|known| known.covers == fold.covers) {
            self.folds.push(fold);
        }
    }

    pub fn add(&mut self, waypoint: Waypoint) {
        // A retry leaves what is there already, and must not push an older branch out.
        self.waypoints.retain(|known| known.end != waypoint.end);
        if self.waypoints.len() >= MOST {
            self.waypoints.remove(0);
        }
        self.waypoints.push(waypoint);
    }

    /// Whether the same decision was left here a moment ago: a retry has nothing to add to it.
    #[must_use]
    pub fn has_recent(&self, waypoint: &Waypoint) -> bool {
        let is_same = |known: &Waypoint| {
            (known.end, known.frontier, known.fold) == (waypoint.end, waypoint.frontier, waypoint.fold)
                && waypoint.at.0.saturating_sub(known.at.0) <= RECENT
        };
        self.waypoints.iter().any(is_same)
    }

    /// The last waypoint on the way of these messages, with the index of the message that it stands at.
    #[must_use]
    pub fn last_on(&self, messages: &[Message]) -> Option<(usize, &Waypoint)> {
        messages.iter().enumerate().rev().filter(|(_, message)| !message.role.is_instruction()).find_map(
            |(index, message)| {
                let waypoint = self.waypoints.iter().rev().find(|waypoint| waypoint.end == message.digest)?;
                Some((index, waypoint))
            },
        )
    }
}
