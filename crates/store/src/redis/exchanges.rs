//! Exchanges, one hash per conversation.

use super::RedisStore;
use super::keys::Part;
use super::script::EXCHANGE;
use super::written;
use crate::ConversationKey;
use crate::exchanges::ExchangeStore;
use crate::store::{Generation, MessageId, StoreFuture, Written};
use bytes::Bytes;

impl ExchangeStore for RedisStore {
    fn save_exchange(
        &self,
        key: ConversationKey,
        generation: Generation,
        after: MessageId,
        record: Bytes,
    ) -> StoreFuture<'_, Written> {
        Box::pin(async move {
            let invocation = self.on(&EXCHANGE, key).arg(generation.0).arg(&after.0[..]).arg(&record[..]);
            self.run(&invocation).await.map(written)
        })
    }

    fn exchanges(&self, key: ConversationKey) -> StoreFuture<'_, Vec<(MessageId, Bytes)>> {
        Box::pin(async move { self.by_message(key, Part::Exchanges).await })
    }
}
