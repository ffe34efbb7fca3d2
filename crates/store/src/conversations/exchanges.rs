//! What models have recalled in a conversation, each exchange by where it stands.

use super::Conversations;
use crate::record;
use crate::store::{Generation, MessageId};
use crate::{ConversationKey, Degraded};
use std::sync::Arc;
use tidegate_engine::Digest;

impl Conversations {
    /// Stores an exchange by the digest of the conversation at the message that it follows. The last write wins, as the last answer does that
    /// a client got.
    pub async fn save_exchange(
        self: &Arc<Self>,
        key: ConversationKey,
        generation: Generation,
        after: Digest,
        text: &str,
    ) -> Result<(), Degraded> {
        let record = record::encode_exchange(key, text, self.options.keyring.as_ref());
        let save = self.store.save_exchange(key, generation, MessageId(after.0), record);
        self.with_deadline(save).await.map(drop)
    }

    /// All exchanges of a conversation, in no particular order. Those that cannot be read are missing.
    pub async fn exchanges(
        self: &Arc<Self>,
        key: ConversationKey,
    ) -> Result<Vec<(Digest, String)>, Degraded> {
        let records = self.with_deadline(self.store.exchanges(key)).await?;
        let keyring = self.options.keyring.as_ref();
        let decode = |(after, record): (MessageId, bytes::Bytes)| {
            record::decode_exchange(key, &record, keyring).ok().map(|text| (Digest(after.0), text))
        };
        Ok(records.into_iter().filter_map(decode).collect())
    }
}
