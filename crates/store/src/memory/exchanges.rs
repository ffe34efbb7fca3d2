//! Exchanges, each with its conversation.

use super::conversation::{Conversation, ENTRY_OVERHEAD};
use super::{MemoryStore, done};
use crate::ConversationKey;
use crate::exchanges::ExchangeStore;
use crate::store::{Generation, MessageId, StoreFuture, Written};
use bytes::Bytes;

impl ExchangeStore for MemoryStore {
    fn save_exchange(
        &self,
        key: ConversationKey,
        generation: Generation,
        after: MessageId,
        record: Bytes,
    ) -> StoreFuture<'_, Written> {
        done(
            self.change_in(key, generation, Written::Gone, |conversation| {
                conversation.exchange(after, record)
            }),
        )
    }

    fn exchanges(&self, key: ConversationKey) -> StoreFuture<'_, Vec<(MessageId, Bytes)>> {
        let all = |conversation: &Conversation| {
            conversation.exchanges.iter().map(|(after, record)| (*after, record.clone())).collect()
        };
        done(self.read(key, all))
    }
}

impl Conversation {
    fn exchange(&mut self, after: MessageId, record: Bytes) -> Written {
        self.bytes += record.len() + ENTRY_OVERHEAD;
        if let Some(replaced) = self.exchanges.insert(after, record) {
            self.bytes -= replaced.len() + ENTRY_OVERHEAD;
        }
        Written::Done
    }
}
