//! The contract of folds.

use crate::suite::{FIRST, assert_empty, id, key, message, next, until};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use tidegate_store::{FOLDS, FoldWritten, Store};
use tokio::task::JoinSet;
use tokio::time::{Instant, interval};

pub(crate) async fn everything(store: &Arc<dyn Store>) {
    the_first_fold_of_a_prefix_is_kept(&**store).await;
    folds_are_returned_in_order_and_the_oldest_are_dropped(&**store).await;
    one_of_many_concurrent_folds_of_a_prefix_is_kept(store).await;
    concurrent_folds_of_different_prefixes_are_all_kept(store).await;
    folds_are_deleted_with_their_conversation(&**store).await;
}

async fn the_first_fold_of_a_prefix_is_kept(store: &dyn Store) {
    let key = key();
    assert_eq!(store.fold(key, FIRST, id(1), "first".into()).await.unwrap(), FoldWritten::Stored);
    assert_eq!(store.fold(key, FIRST, id(1), "second".into()).await.unwrap(), FoldWritten::Other);
    assert_eq!(store.fold(key, FIRST, id(2), "another prefix".into()).await.unwrap(), FoldWritten::Stored);
    // A retry after a lost response returns the same result.
    assert_eq!(store.fold(key, FIRST, id(1), "first".into()).await.unwrap(), FoldWritten::Stored);
    assert_eq!(store.fold(key, FIRST, id(1), Bytes::new()).await.unwrap(), FoldWritten::Other);
    assert_eq!(folds(store, key).await, ["first", "another prefix"]);
}

async fn folds_are_returned_in_order_and_the_oldest_are_dropped(store: &dyn Store) {
    let key = key();
    // Not in the order of the covered prefixes.
    let covers = |number: usize| id(u8::try_from(200 - 7 * number).unwrap());
    let record = |number: usize| Bytes::from(format!("fold {number}"));
    for number in 0..FOLDS + 3 {
        assert_eq!(
            store.fold(key, FIRST, covers(number), record(number)).await.unwrap(),
            FoldWritten::Stored
        );
    }
    // Storing a fold again does not make it the newest.
    store.fold(key, FIRST, covers(3), record(3)).await.unwrap();
    let expected: Vec<Bytes> = (3..FOLDS + 3).map(record).collect();
    assert_eq!(folds(store, key).await, expected);
    // A dropped fold can be stored anew.
    assert_eq!(store.fold(key, FIRST, covers(0), "anew".into()).await.unwrap(), FoldWritten::Stored);
    let expected: Vec<Bytes> = (4..FOLDS + 3).map(record).chain(["anew".into()]).collect();
    assert_eq!(folds(store, key).await, expected);
}

async fn one_of_many_concurrent_folds_of_a_prefix_is_kept(store: &Arc<dyn Store>) {
    let key = key();
    let mut tasks = JoinSet::new();
    for number in 0..64 {
        let store = store.clone();
        let record = Bytes::from(format!("fold {number}"));
        tasks.spawn(async move {
            let written = store.fold(key, FIRST, id(1), record.clone()).await.unwrap();
            (written == FoldWritten::Stored).then_some(record)
        });
    }
    let kept: Vec<Bytes> = tasks.join_all().await.into_iter().flatten().collect();
    assert_eq!(kept.len(), 1);
    assert_eq!(folds(&**store, key).await, kept);
}

async fn concurrent_folds_of_different_prefixes_are_all_kept(store: &Arc<dyn Store>) {
    let key = key();
    let mut tasks = JoinSet::new();
    for number in 0..FOLDS {
        let store = store.clone();
        tasks.spawn(async move {
            let covers = id(u8::try_from(number).unwrap());
            assert_eq!(
                store.fold(key, FIRST, covers, format!("{number:02}").into()).await.unwrap(),
                FoldWritten::Stored
            );
        });
    }
    tasks.join_all().await;
    let mut all = folds(&**store, key).await;
    all.sort();
    let expected: Vec<Bytes> = (0..FOLDS).map(|number| format!("{number:02}").into()).collect();
    assert_eq!(all, expected);
}

async fn folds_are_deleted_with_their_conversation(store: &dyn Store) {
    let key = key();
    store.fold(key, FIRST, id(1), "before".into()).await.unwrap();
    assert!(store.delete(key, next()).await.unwrap());
    assert_empty(store, key).await;
    assert!(!store.delete(key, next()).await.unwrap());
    let generation = store.recall(key).await.unwrap().generation;
    assert_eq!(store.fold(key, generation, id(1), "after".into()).await.unwrap(), FoldWritten::Stored);
    assert_eq!(folds(store, key).await, ["after"]);
}

pub(crate) async fn folding_keeps_a_conversation_alive(store: &dyn Store) {
    let key = key();
    let begun = Instant::now();
    store.journal(key, FIRST, message(1, "old")).await.unwrap();
    let mut pace = interval(Duration::from_millis(100));
    while begun.elapsed() < Duration::from_millis(2500) {
        store.fold(key, FIRST, id(1), "same".into()).await.unwrap();
        pace.tick().await;
    }
    assert_eq!(store.messages(key).await.unwrap(), [(id(1), "old".into())]);
    assert_eq!(folds(store, key).await, ["same"]);
    until(async || folds(store, key).await.is_empty()).await;
}

async fn folds(store: &dyn Store, key: tidegate_store::ConversationKey) -> Vec<Bytes> {
    store.recall(key).await.unwrap().folds
}
