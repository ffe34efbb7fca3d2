//! What models have recalled in a conversation.
//!
//! An exchange is found by where it stands in the conversation, which its name says. It belongs to a generation, so that a deleted
//! conversation does not come back with it.

use super::Conversations;
use crate::record;
use crate::store::Generation;
use crate::{ConversationKey, Degraded};
use std::sync::Arc;

impl Conversations {
    /// Stores an exchange under its name. The last write wins, as the last answer does that a client got.
    pub async fn save_exchange(
        self: &Arc<Self>,
        key: ConversationKey,
        generation: Generation,
        name: &str,
        text: &str,
    ) -> Result<(), Degraded> {
        let record = record::encode_exchange(key, text, self.options.keyring.as_ref());
        self.publish(&topic(key, generation), name, record).await
    }

    /// All exchanges of a conversation by name, in no particular order. Those that cannot be read are missing.
    pub async fn exchanges(
        self: &Arc<Self>,
        key: ConversationKey,
        generation: Generation,
    ) -> Result<Vec<(String, String)>, Degraded> {
        let records = self.published(&topic(key, generation)).await?;
        let keyring = self.options.keyring.as_ref();
        let decode = |(name, record): (String, bytes::Bytes)| {
            record::decode_exchange(key, &record, keyring).ok().map(|text| (name, text))
        };
        Ok(records.into_iter().filter_map(decode).collect())
    }
}

/// Where the exchanges of a generation are.
pub(super) fn topic(key: ConversationKey, generation: Generation) -> String {
    format!("recall {key} {}", generation.0)
}
