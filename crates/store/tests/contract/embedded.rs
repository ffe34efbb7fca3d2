use crate::suite;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tidegate_store::{EmbeddedStore, Store};

#[tokio::test]
async fn the_embedded_store_keeps_the_contract() {
    let parent = tempfile::tempdir().unwrap();
    let next = AtomicU64::new(0);
    suite::everything(async |ttl| {
        let directory = parent.path().join(next.fetch_add(1, Ordering::Relaxed).to_string());
        Arc::new(EmbeddedStore::open(&directory, ttl).unwrap()) as Arc<dyn Store>
    })
    .await;
}
