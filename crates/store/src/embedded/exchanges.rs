//! Exchanges, in a table of conversations.

use super::EmbeddedStore;
use super::change::{Change, Effect, Outcome};
use super::lifetime::Moment;
use super::read;
use super::tables::{Tables, under};
use crate::ConversationKey;
use crate::exchanges::ExchangeStore;
use crate::store::{Generation, MessageId, StoreFuture, Written};
use bytes::Bytes;
use redb::StorageError;

impl ExchangeStore for EmbeddedStore {
    fn save_exchange(
        &self,
        key: ConversationKey,
        generation: Generation,
        after: MessageId,
        record: Bytes,
    ) -> StoreFuture<'_, Written> {
        self.write(Change::Exchange(key, generation, after, record))
    }

    fn exchanges(&self, key: ConversationKey) -> StoreFuture<'_, Vec<(MessageId, Bytes)>> {
        self.read(move |transaction, moment| read::exchanges(transaction, key, moment))
    }
}

impl Tables<'_> {
    pub(super) fn exchange(
        &mut self,
        key: ConversationKey,
        after: MessageId,
        record: &Bytes,
        moment: Moment,
    ) -> Result<Outcome, StorageError> {
        self.clear_expired(key, moment)?;
        self.exchanges.insert(&under(key, &after.0)[..], &record[..])?;
        self.touch(key, moment)?;
        Ok(Ok(Effect::Done))
    }
}
