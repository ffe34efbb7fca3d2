//! What is known of a conversation.

use crate::identify::ConversationKey;
use quick_cache::sync::Cache;
use std::sync::{Arc, Mutex, PoisonError};
use tidegate_engine::{Memory, Waypoint};

/// The memories of this process, the least used forgotten first.
#[derive(Debug)]
pub(crate) struct Conversations {
    memories: Cache<ConversationKey, Arc<Mutex<Memory>>>,
}

/// A memory is at most a few kilobytes, so this many fit into some tens of megabytes.
const MOST: usize = 16_384;

impl Default for Conversations {
    fn default() -> Conversations {
        Conversations { memories: Cache::new(MOST) }
    }
}

impl Conversations {
    pub(crate) fn recall(&self, key: &ConversationKey) -> Memory {
        let memory = self.memories.get(key);
        memory.map_or_else(Memory::default, |memory| {
            memory.lock().unwrap_or_else(PoisonError::into_inner).clone()
        })
    }

    /// Adds what a request left behind. Two requests at once both add theirs; neither overwrites the other's.
    pub(crate) fn add(&self, key: ConversationKey, waypoint: Waypoint) {
        let fresh = || Ok::<_, std::convert::Infallible>(Arc::default());
        let Ok(memory) = self.memories.get_or_insert_with(&key, fresh);
        memory.lock().unwrap_or_else(PoisonError::into_inner).add(waypoint);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_engine::{Digest, Timestamp};

    #[test]
    fn what_is_added_by_many_at_once_is_all_there() {
        let conversations = Conversations::default();
        let key = ConversationKey([7; 32]);
        let waypoint =
            |number| Waypoint { end: Digest([number; 32]), frontier: None, tally: 0.0, at: Timestamp(0) };
        std::thread::scope(|scope| {
            for number in 0..8 {
                let conversations = &conversations;
                scope.spawn(move || conversations.add(key, waypoint(number)));
            }
        });
        let mut expected = Memory::default();
        (0..8).for_each(|number| expected.add(waypoint(number)));
        let recalled = conversations.recall(&key);
        let in_any_order = |memory: &Memory| {
            let mut ends: Vec<Digest> = memory.waypoints().iter().map(|waypoint| waypoint.end).collect();
            ends.sort();
            ends
        };
        assert_eq!(in_any_order(&recalled), in_any_order(&expected));
        assert_eq!(conversations.recall(&ConversationKey([8; 32])), Memory::default());
    }
}
