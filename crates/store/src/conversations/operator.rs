//! What an operator reads and changes, with a longer deadline than a request has.

use super::Conversations;
use crate::record::{self, RawMessage, RecordError};
use crate::store::{Generation, Listing, MessageId, StoreFuture};
use crate::{ConversationKey, Head, StoreError};
use bytes::Bytes;
use chacha20poly1305::aead::OsRng;
use chacha20poly1305::aead::rand_core::RngCore;
use std::cell::Cell;
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

/// The most bytes of compressed messages that are decompressed for a person at once. What is stored may be a thousand times as long as its
/// records.
const MAX_TIMELINE: u64 = 256 << 20;

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

    /// All messages, in order. Those at the end of a conversation that is too long to be in memory at once are reported as unreadable.
    pub async fn timeline(self: &Arc<Self>, key: ConversationKey) -> Result<Timeline, StoreError> {
        let records = with_operator_timeout(self.store.messages(key)).await?;
        let this = self.clone();
        let reading = tokio::task::spawn_blocking(move || this.read_timeline(key, records, MAX_TIMELINE));
        // Fails only while the runtime shuts down.
        reading.await.map_err(|_| StoreError::Timeout)
    }

    fn read_timeline(
        &self,
        key: ConversationKey,
        mut records: Vec<(MessageId, Bytes)>,
        most: u64,
    ) -> Timeline {
        records.sort_by_key(|(id, record)| (record::place_of_message(record), *id));
        let left = Cell::new(Some(most));
        let room = |bytes| {
            // What follows one that does not fit is left out too, so that there is no gap.
            left.set(left.get().and_then(|left| left.checked_sub(bytes)));
            left.get().is_some()
        };
        let mut timeline = Timeline::default();
        for (id, record) in &records {
            match record::decode_message(key, *id, record, self.options.keyring.as_ref(), &room) {
                Ok(message) => timeline.messages.push(message),
                Err(error) => timeline.unreadable.push(error),
            }
        }
        timeline
    }

    /// Deletes a conversation. Returns whether it existed. Whatever requests have under way, it stays deleted.
    pub async fn delete(&self, key: ConversationKey) -> Result<bool, StoreError> {
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
        deleted
    }
}

async fn with_operator_timeout<T>(operation: StoreFuture<'_, T>) -> Result<T, StoreError> {
    timeout(OPERATOR_TIMEOUT, operation).await.unwrap_or(Err(StoreError::Timeout))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Entries, MemoryStore, Options, Standing};

    #[tokio::test]
    async fn a_timeline_is_only_decompressed_as_far_as_there_is_room() {
        let day = Duration::from_secs(86_400);
        let options = Options { timeout: day, ttl: day, raw: true, keyring: None };
        let conversations = Conversations::new(Arc::new(MemoryStore::new(day)), options);
        let key = ConversationKey([7; 16]);
        let bomb = |number: u8| RawMessage {
            id: MessageId([number; 32]),
            parent: MessageId([number - 1; 32]),
            position: u32::from(number),
            at: 5,
            json: format!(r#"{{"role":"user","content":"{number}{}"}}"#, " ".repeat(1 << 20)).into(),
            standing: Standing::Kept,
        };
        let messages = (1..=5).map(bomb).collect();
        conversations.journal(key, Entries { messages, ..Entries::default() }).await.unwrap();
        let records = conversations.store.messages(key).await.unwrap();
        assert!(records.iter().all(|(_, record)| record.len() < 1_000));

        let timeline = conversations.read_timeline(key, records, 3 << 20);
        // Each is a little longer than a mebibyte, so that two fit.
        assert_eq!(timeline.messages, [bomb(1), bomb(2)]);
        assert_eq!(timeline.unreadable, [RecordError::NoRoom; 3]);
        assert_eq!(conversations.timeline(key).await.unwrap().messages.len(), 5);

        let recorded = conversations.recorded(key).await.unwrap();
        assert!(recorded.bytes() < 5_000);
        assert_eq!(recorded.messages(&|bytes| bytes < 1 << 20).unwrap_err(), crate::Degraded::NoRoom);
        let third = recorded.those(|id| id == MessageId([3; 32]), &|_| true).unwrap();
        assert_eq!(third, [bomb(3)]);
        assert_eq!(recorded.messages(&|_| true).unwrap().len(), 5);
    }
}
