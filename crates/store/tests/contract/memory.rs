use crate::suite::{self, FIRST};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tidegate_store::{ConversationKey, Journal, MemoryStore, MessageId, Store};

#[tokio::test]
async fn the_memory_store_keeps_the_contract() {
    suite::everything(async |ttl| Arc::new(MemoryStore::new(ttl)) as Arc<dyn Store>).await;
}

#[tokio::test]
async fn the_least_recently_written_conversation_is_evicted_when_full() {
    static NOW: AtomicU64 = AtomicU64::new(1);
    let clock = || NOW.fetch_add(1, Ordering::Relaxed);
    let store = MemoryStore::with(Duration::from_secs(3600), 100_000, clock);
    let key = |number: u8| ConversationKey([number; 16]);
    for number in 0..20 {
        let message = (MessageId([number; 32]), Bytes::from(vec![0; 10_000]));
        store.journal(key(number), FIRST, Journal { messages: vec![message], waypoint: None }).await.unwrap();
    }
    assert_eq!(store.messages(key(0)).await.unwrap(), []);
    assert_eq!(store.messages(key(19)).await.unwrap().len(), 1);
}
