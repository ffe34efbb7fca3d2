//! The result of recalling a conversation.

use crate::Degraded;
use crate::record::StoredFold;
use crate::store::Generation;
use std::sync::Arc;
use tidegate_engine::{Digest, Memory, Waypoint};

/// The state of a conversation as of the arrival of a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recalled {
    /// Writes of the request belong to this generation.
    pub generation: Generation,
    pub memory: Memory,
    /// The stored summaries, the newest last.
    pub folds: Vec<StoredFold>,
    /// The text pinned to the conversation.
    pub pinned: Option<Arc<str>>,
    /// The ends of waypoints that are not in the store.
    pub(crate) unsaved: Vec<Digest>,
    /// Why this may be incomplete; `None` if it is complete.
    pub degraded: Option<Degraded>,
    /// Whether the store could not be read at all.
    pub is_unavailable: bool,
}

impl Recalled {
    /// This, if it belongs to the generation; else nothing.
    #[must_use]
    pub fn in_generation(self, generation: Generation) -> Recalled {
        if self.generation == generation {
            return self;
        }
        let Recalled { degraded, is_unavailable, .. } = self;
        Recalled { generation, degraded, is_unavailable, ..Recalled::default() }
    }

    /// Whether the store already has this decision from a moment ago, so that a retry need not write it again.
    #[must_use]
    pub fn has_waypoint(&self, waypoint: &Waypoint) -> bool {
        self.memory.has_recent(waypoint) && !self.unsaved.contains(&waypoint.end)
    }

    /// Whether requests of the conversation were served before.
    #[must_use]
    pub fn is_under_way(&self) -> bool {
        !self.memory.waypoints().is_empty() || !self.folds.is_empty()
    }

    /// The number of leading messages of a request that are already stored: a waypoint is only ever stored together with all
    /// messages before it. `digests` are the digests of the conversation at each message.
    #[must_use]
    pub fn recorded(&self, digests: impl DoubleEndedIterator<Item = Digest> + ExactSizeIterator) -> usize {
        let is_saved = |end: &Digest| {
            self.memory.waypoints().iter().any(|waypoint| waypoint.end == *end) && !self.unsaved.contains(end)
        };
        digests.enumerate().rev().find(|(_, digest)| is_saved(digest)).map_or(0, |(index, _)| index + 1)
    }
}
