//! What a request is told of its conversation.

use crate::record::StoredFold;
use std::sync::Arc;
use tidegate_engine::{Digest, Memory, Waypoint};

/// What is known of a conversation when a request of it arrives.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recalled {
    pub memory: Memory,
    /// Its summaries, the newest last.
    pub folds: Vec<StoredFold>,
    /// What a person has pinned to it.
    pub pinned: Option<Arc<str>>,
    /// The ends of waypoints that the store does not have.
    pub(crate) unsaved: Vec<Digest>,
    /// Why it may not be all; none if it is.
    pub degraded: Option<&'static str>,
    /// Whether the store could not be asked at all.
    pub is_unavailable: bool,
}

impl Recalled {
    /// Whether the store has this decision from a moment ago: a retry has nothing to add to it.
    #[must_use]
    pub fn knows(&self, waypoint: &Waypoint) -> bool {
        self.memory.has_recent(waypoint) && !self.unsaved.contains(&waypoint.end)
    }

    /// How many messages of a request, from the first one on, are in the timeline already: a waypoint is only ever stored
    /// together with all messages before it. `digests` are those of the conversation at each message.
    #[must_use]
    pub fn recorded(&self, digests: impl DoubleEndedIterator<Item = Digest> + ExactSizeIterator) -> usize {
        let is_saved = |end: &Digest| {
            self.memory.waypoints().iter().any(|one| one.end == *end) && !self.unsaved.contains(end)
        };
        digests.enumerate().rev().find(|(_, digest)| is_saved(digest)).map_or(0, |(index, _)| index + 1)
    }
}
