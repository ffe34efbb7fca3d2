//! What every store promises about who may fold.

use crate::suite::{key, nothing_is_left, until, waypoint};
use std::sync::Arc;
use std::time::Duration;
use tidegate_store::Store;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Longer than any of these tests takes.
const LONG: Duration = Duration::from_secs(600);

const MINE: [u8; 16] = [1; 16];
const OTHER: [u8; 16] = *b"\0\r\nanother\xff\xfe\0\0\0\0";

pub(crate) async fn everything(store: &Arc<dyn Store>) {
    of_many_who_claim_at_once_one_may(store).await;
    only_the_holder_gives_it_back(&**store).await;
    a_lease_runs_out(&**store).await;
    a_lease_is_renewed_by_its_holder(&**store).await;
    a_claim_is_no_conversation_and_goes_with_one(&**store).await;
}

async fn of_many_who_claim_at_once_one_may(store: &Arc<dyn Store>) {
    let (key, another) = (key(), key());
    let mut tasks = JoinSet::new();
    for number in 0..64 {
        let store = store.clone();
        tasks.spawn(
            async move { store.claim(key, [number; 16], LONG).await.unwrap().then_some([number; 16]) },
        );
    }
    let holders: Vec<[u8; 16]> = tasks.join_all().await.into_iter().flatten().collect();
    assert_eq!(holders.len(), 1);
    // The holder has it still, and nobody has another conversation.
    assert!(store.claim(key, holders[0], LONG).await.unwrap());
    assert!(store.claim(another, [255; 16], LONG).await.unwrap());
    assert!(!store.claim(key, [255; 16], LONG).await.unwrap());
}

async fn only_the_holder_gives_it_back(store: &dyn Store) {
    let key = key();
    store.release(key, MINE).await.unwrap();
    assert!(store.claim(key, MINE, LONG).await.unwrap());
    store.release(key, OTHER).await.unwrap();
    assert!(!store.claim(key, OTHER, LONG).await.unwrap());
    store.release(key, MINE).await.unwrap();
    assert!(store.claim(key, OTHER, LONG).await.unwrap());
    store.release(key, MINE).await.unwrap();
    assert!(!store.claim(key, MINE, LONG).await.unwrap());
}

async fn a_lease_runs_out(store: &dyn Store) {
    let key = key();
    let begun = Instant::now();
    let lease = Duration::from_millis(300);
    assert!(store.claim(key, MINE, lease).await.unwrap());
    // A write keeps the conversation for an hour, and must not keep the claim as long.
    store.journal(key, waypoint("w")).await.unwrap();
    until(async || store.claim(key, OTHER, LONG).await.unwrap()).await;
    // A server counts in whole milliseconds of its own clock.
    assert!(begun.elapsed() >= lease - Duration::from_millis(10), "{:?}", begun.elapsed());
    // The late one has lost it, and takes nothing from the next.
    store.release(key, MINE).await.unwrap();
    assert!(!store.claim(key, MINE, LONG).await.unwrap());
}

async fn a_lease_is_renewed_by_its_holder(store: &dyn Store) {
    let key = key();
    let lease = Duration::from_millis(300);
    let begun = Instant::now();
    assert!(store.claim(key, MINE, lease).await.unwrap());
    assert!(store.claim(key, MINE, LONG).await.unwrap());
    until(async || begun.elapsed() > lease + Duration::from_millis(50)).await;
    assert!(!store.claim(key, OTHER, LONG).await.unwrap());
}

async fn a_claim_is_no_conversation_and_goes_with_one(store: &dyn Store) {
    let key = key();
    assert!(store.claim(key, MINE, LONG).await.unwrap());
    nothing_is_left(store, key).await;
    assert!(!store.delete(key).await.unwrap());
    assert!(store.claim(key, OTHER, LONG).await.unwrap());
}
