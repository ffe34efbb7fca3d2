//! The contract of leases.

use crate::suite::{FIRST, assert_empty, key, next, until, waypoint};
use std::sync::Arc;
use std::time::Duration;
use tidegate_store::{Lease, Store};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Longer than any of these tests.
const LONG: Duration = Duration::from_secs(600);

const ONE: [u8; 16] = [1; 16];
const OTHER: [u8; 16] = *b"\0\r\nanother\xff\xfe\0\0\0\0";

pub(crate) async fn everything(store: &Arc<dyn Store>) {
    one_of_many_concurrent_callers_gets_the_lease(store).await;
    only_the_holder_can_release(&**store).await;
    a_lease_expires(&**store).await;
    the_holder_can_renew(&**store).await;
    a_lease_creates_no_conversation_and_is_deleted_with_one(&**store).await;
}

async fn one_of_many_concurrent_callers_gets_the_lease(store: &Arc<dyn Store>) {
    let (key, another) = (key(), key());
    let mut tasks = JoinSet::new();
    for number in 0..64 {
        let store = store.clone();
        tasks.spawn(async move {
            store.claim(key, Lease::Fold, [number; 16], LONG).await.unwrap().then_some([number; 16])
        });
    }
    let holders: Vec<[u8; 16]> = tasks.join_all().await.into_iter().flatten().collect();
    assert_eq!(holders.len(), 1);
    // The holder can renew it, and another conversation is free.
    assert!(store.claim(key, Lease::Fold, holders[0], LONG).await.unwrap());
    assert!(store.claim(another, Lease::Fold, [255; 16], LONG).await.unwrap());
    // A turn may run while a summary is made.
    assert!(store.claim(key, Lease::Turn, [255; 16], LONG).await.unwrap());
    assert!(!store.claim(key, Lease::Turn, ONE, LONG).await.unwrap());
    assert!(!store.claim(key, Lease::Fold, [255; 16], LONG).await.unwrap());
}

async fn only_the_holder_can_release(store: &dyn Store) {
    let key = key();
    store.release(key, Lease::Fold, ONE).await.unwrap();
    assert!(store.claim(key, Lease::Fold, ONE, LONG).await.unwrap());
    store.release(key, Lease::Fold, OTHER).await.unwrap();
    assert!(!store.claim(key, Lease::Fold, OTHER, LONG).await.unwrap());
    store.release(key, Lease::Fold, ONE).await.unwrap();
    assert!(store.claim(key, Lease::Fold, OTHER, LONG).await.unwrap());
    store.release(key, Lease::Fold, ONE).await.unwrap();
    assert!(!store.claim(key, Lease::Fold, ONE, LONG).await.unwrap());
}

async fn a_lease_expires(store: &dyn Store) {
    let key = key();
    let begun = Instant::now();
    let lease = Duration::from_millis(300);
    assert!(store.claim(key, Lease::Fold, ONE, lease).await.unwrap());
    // A write extends the life of the conversation, but not of the lease.
    store.journal(key, FIRST, waypoint("w")).await.unwrap();
    until(async || store.claim(key, Lease::Fold, OTHER, LONG).await.unwrap()).await;
    // A server measures in whole milliseconds of its own clock.
    assert!(begun.elapsed() >= lease - Duration::from_millis(10), "{:?}", begun.elapsed());
    // The late holder has lost it and cannot release the lease of the next one.
    store.release(key, Lease::Fold, ONE).await.unwrap();
    assert!(!store.claim(key, Lease::Fold, ONE, LONG).await.unwrap());
}

async fn the_holder_can_renew(store: &dyn Store) {
    let key = key();
    let lease = Duration::from_millis(300);
    let begun = Instant::now();
    for kind in [Lease::Fold, Lease::Turn] {
        assert!(!store.renew(key, kind, ONE, LONG).await.unwrap());
    }
    assert!(store.claim(key, Lease::Fold, ONE, lease).await.unwrap());
    assert!(store.claim(key, Lease::Fold, ONE, LONG).await.unwrap());
    assert!(store.claim(key, Lease::Turn, ONE, LONG).await.unwrap());
    for kind in [Lease::Fold, Lease::Turn] {
        assert!(!store.renew(key, kind, OTHER, LONG).await.unwrap());
        assert!(store.renew(key, kind, ONE, LONG).await.unwrap());
    }
    until(async || begun.elapsed() > lease + Duration::from_millis(50)).await;
    assert!(!store.claim(key, Lease::Fold, OTHER, LONG).await.unwrap());
}

async fn a_lease_creates_no_conversation_and_is_deleted_with_one(store: &dyn Store) {
    let key = key();
    for lease in [Lease::Fold, Lease::Turn] {
        assert!(store.claim(key, lease, ONE, LONG).await.unwrap());
        assert_empty(store, key).await;
        assert!(!store.delete(key, next()).await.unwrap());
        // The turn that runs does not take it back.
        assert!(!store.renew(key, lease, ONE, LONG).await.unwrap());
        assert!(store.claim(key, lease, OTHER, LONG).await.unwrap());
        assert!(!store.renew(key, lease, ONE, LONG).await.unwrap());
    }
}
