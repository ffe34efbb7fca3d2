//! What an operator reads and changes, with a longer deadline than a request has.

use super::Conversations;
use super::exchanges::topic;
use crate::record::{self, RawMessage, RecordError};
use crate::store::{Generation, Listing, StoreFuture};
use crate::{ConversationKey, Head, StoreError};
use bytes::Bytes;
use chacha20poly1305::aead::OsRng;
use chacha20poly1305::aead::rand_core::RngCore;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// The messages of a conversation, and why others cannot be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    pub messages: Vec<RawMessage>,
    pub unreadable: Vec<RecordError>,
}

/// The text pinned to a conversation, if any, or why it cannot be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pinned {
    pub text: Option<String>,
    pub unreadable: Option<RecordError>,
}

/// The deadline of an operation that a person waits for.
const OPERATOR_TIMEOUT: Duration = Duration::from_secs(10);

impl Conversations {
    /// Lists conversations by the time of their last turn, newest first.
    pub async fn list(&self, offset: usize, limit: usize) -> Result<Listing, StoreError> {
        with_operator_timeout(self.store.list(offset, limit)).await
    }

    /// The head of a conversation; `None` if no turn was counted.
    pub async fn head(&self, key: ConversationKey) -> Result<Option<Head>, StoreError> {
        with_operator_timeout(self.store.head(key)).await
    }

    /// Replaces the text pinned to a conversation, or removes it if `text` is `None` or empty.
    pub async fn pin(&self, key: ConversationKey, text: Option<&str>) -> Result<(), StoreError> {
        let text = text.filter(|text| !text.is_empty());
        let record = text.map(|text| record::encode_pin(key, text, self.options.keyring.as_ref()));
        with_operator_timeout(self.store.pin(key, record)).await?;
        self.local.pin(key, text.map(Arc::from));
        Ok(())
    }

    /// Reads the text pinned to a conversation. An unreadable text is reported as such: if it looked absent, an operator might
    /// overwrite it.
    pub async fn pinned(&self, key: ConversationKey) -> Result<Pinned, StoreError> {
        let record = with_operator_timeout(self.store.recall(key)).await?.pinned;
        let decoded = record.map(|record| record::decode_pin(key, &record, self.options.keyring.as_ref()));
        Ok(match decoded {
            None => Pinned::default(),
            Some(Ok(text)) => Pinned { text: Some(text), unreadable: None },
            Some(Err(error)) => Pinned { text: None, unreadable: Some(error) },
        })
    }

    /// The records of all turns, in no particular order. The store does not know what they mean.
    pub async fn turns(&self, key: ConversationKey) -> Result<Vec<Bytes>, StoreError> {
        with_operator_timeout(self.store.turns(key)).await
    }

    /// All messages, in order.
    pub async fn timeline(&self, key: ConversationKey) -> Result<Timeline, StoreError> {
        let records = with_operator_timeout(self.store.messages(key)).await?;
        let mut timeline = Timeline::default();
        for (id, record) in &records {
            match record::decode_message(key, *id, record, self.options.keyring.as_ref()) {
                Ok(message) => timeline.messages.push(message),
                Err(error) => timeline.unreadable.push(error),
            }
        }
        timeline.messages.sort_by_key(|message| (message.position, message.at, message.id));
        Ok(timeline)
    }

    /// Deletes a conversation. Returns whether it existed. Whatever requests have under way, it stays deleted.
    pub async fn delete(&self, key: ConversationKey) -> Result<bool, StoreError> {
        let before = with_operator_timeout(self.store.recall(key)).await.map(|recalled| recalled.generation);
        // A number that no earlier generation had. Zero means that nothing was deleted.
        let next = Generation(OsRng.next_u64().max(1));
        let deleted = with_operator_timeout(self.store.delete(key, next)).await;
        if deleted.is_ok() {
            // A turn that runs belongs to the conversation that is gone: the next one does not wait for it.
            self.leases.revoke(key);
        }
        self.local.remove(key);
        self.logs.remove(&key);
        self.backoffs.remove(&key);
        if let Ok(before) = before {
            // Those that are left are found by nothing, and expire.
            let _ = with_operator_timeout(self.store.forget(topic(key, before))).await;
        }
        deleted
    }
}

async fn with_operator_timeout<T>(operation: StoreFuture<'_, T>) -> Result<T, StoreError> {
    timeout(OPERATOR_TIMEOUT, operation).await.unwrap_or(Err(StoreError::Timeout))
}
