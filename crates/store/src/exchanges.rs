//! What models have recalled in a conversation: it belongs to the conversation, and lives and goes with it.

use crate::ConversationKey;
use crate::store::{Generation, MessageId, StoreFuture, Written};
use bytes::Bytes;

/// Keeps exchanges under the message that they follow.
pub trait ExchangeStore {
    /// Stores an exchange. The last write wins, as the last answer does that a client got.
    fn save_exchange(
        &self,
        key: ConversationKey,
        generation: Generation,
        after: MessageId,
        record: Bytes,
    ) -> StoreFuture<'_, Written>;

    /// All exchanges of a conversation, in no particular order.
    fn exchanges(&self, key: ConversationKey) -> StoreFuture<'_, Vec<(MessageId, Bytes)>>;
}
