//! What all processes that share the store should know.

use super::Conversations;
use crate::Degraded;
use bytes::Bytes;
use std::sync::Arc;

impl Conversations {
    /// Tells other processes a fact. The last write wins.
    pub async fn publish(self: &Arc<Self>, topic: &str, name: &str, fact: Bytes) -> Result<(), Degraded> {
        self.with_deadline(self.store.publish(topic.to_owned(), name.to_owned(), fact)).await
    }

    /// All facts of a topic, in no particular order.
    pub async fn published(self: &Arc<Self>, topic: &str) -> Result<Vec<(String, Bytes)>, Degraded> {
        self.with_deadline(self.store.published(topic.to_owned())).await
    }

    /// Removes all facts of a topic.
    pub async fn forget(self: &Arc<Self>, topic: &str) -> Result<(), Degraded> {
        self.with_deadline(self.store.forget(topic.to_owned())).await
    }

    /// Whether other processes may publish facts here.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.store.is_shared()
    }
}
