//! How much memory the caches may take.

use crate::transport::overload::system_memory;
use tidegate_store::Conversations;
use tidegate_wire::Reader;

/// What the caches of a process may take, by what they are for. They come on top of the memory of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheSizes {
    /// Messages that were read before.
    pub messages: u64,
    /// Conversations.
    pub conversations: u64,
}

impl CacheSizes {
    const FULL: CacheSizes =
        CacheSizes { messages: Reader::CACHE_BYTES, conversations: Conversations::CACHE_BYTES };

    /// What is worth having, but no more than a quarter of the cgroup's or the machine's memory.
    #[must_use]
    pub fn of_system() -> CacheSizes {
        system_memory().map_or(CacheSizes::FULL, CacheSizes::within)
    }

    fn within(memory: u64) -> CacheSizes {
        let CacheSizes { messages, conversations } = CacheSizes::FULL;
        let quarter = (memory / 4).min(messages + conversations);
        // Both shrink alike.
        let share = |full: u64| full * (quarter >> 10) / ((messages + conversations) >> 10);
        CacheSizes { messages: share(messages), conversations: share(conversations) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_fit_a_small_container() {
        assert_eq!(CacheSizes::within(64 << 30), CacheSizes::FULL);
        let CacheSizes { messages, conversations } = CacheSizes::within(512 << 20);
        assert!(messages + conversations <= 128 << 20, "{messages} {conversations}");
        assert!(messages >= 48 << 20 && conversations >= 76 << 20, "{messages} {conversations}");
    }
}
