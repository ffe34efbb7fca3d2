//! The contract of logs.

use crate::suite::{FIRST, id, key, messages, next, until};
use bytes::Bytes;
use std::sync::Arc;
use tidegate_store::{Append, Appended, ConversationKey, Delivery, Journal, MessageId, Store, Written};
use tokio::task::JoinSet;

pub(crate) async fn everything(store: &Arc<dyn Store>) {
    a_turn_follows_the_head(&**store).await;
    a_retry_replaces_the_last_turn(&**store).await;
    a_turn_is_appended_once(&**store).await;
    a_turn_is_undelivered_until_it_is_noted(&**store).await;
    one_of_many_concurrent_turns_is_appended(store).await;
    a_refused_turn_leaves_nothing(&**store).await;
    kept_messages_replace_those_of_failed_attempts(&**store).await;
    the_end_of_a_log_can_be_read(&**store).await;
}

fn turn(expected: Option<u8>, head: u8) -> Append {
    Append {
        expected: expected.map(id),
        head: id(head),
        replaces: false,
        record: Bytes::from(format!("turn {head}\0")),
        messages: vec![(id(head), format!("message {head}").into())],
        waypoint: Some(format!("waypoint {head}").into()),
    }
}

async fn append(store: &dyn Store, key: ConversationKey, append: Append) -> Appended {
    store.append(key, FIRST, append).await.unwrap()
}

async fn log(store: &dyn Store, key: ConversationKey) -> (Option<MessageId>, Vec<Bytes>) {
    let log = store.log(key, 0).await.unwrap();
    assert_eq!(log.generation, FIRST);
    (log.head, log.turns)
}

async fn a_turn_follows_the_head(store: &dyn Store) {
    let key = key();
    assert_eq!(append(store, key, turn(None, 1)).await, Appended::Done);
    assert_eq!(append(store, key, turn(Some(1), 2)).await, Appended::Done);
    for stale in [turn(None, 3), turn(Some(1), 3), turn(Some(7), 3)] {
        assert_eq!(append(store, key, stale).await, Appended::Conflict);
    }
    assert_eq!(log(store, key).await, (Some(id(2)), vec!["turn 1\0".into(), "turn 2\0".into()]));
    assert_eq!(messages(store, key).await.len(), 2);
    assert_eq!(store.recall(key).await.unwrap().waypoints, ["waypoint 1", "waypoint 2"]);
}

async fn a_retry_replaces_the_last_turn(store: &dyn Store) {
    let key = key();
    let replacing = |expected, head| Append { replaces: true, ..turn(Some(expected), head) };
    assert_eq!(append(store, key, replacing(1, 2)).await, Appended::Conflict, "nothing to replace");
    append(store, key, turn(None, 1)).await;
    append(store, key, turn(Some(1), 2)).await;
    assert_eq!(append(store, key, replacing(2, 3)).await, Appended::Done);
    assert_eq!(append(store, key, replacing(2, 4)).await, Appended::Conflict);
    assert_eq!(log(store, key).await, (Some(id(3)), vec!["turn 1\0".into(), "turn 3\0".into()]));
    assert_eq!(append(store, key, turn(Some(3), 5)).await, Appended::Done);
}

async fn a_turn_is_appended_once(store: &dyn Store) {
    let key = key();
    for _ in 0..3 {
        assert_eq!(append(store, key, turn(None, 1)).await, Appended::Done);
    }
    let replacing = Append { replaces: true, ..turn(Some(1), 2) };
    for _ in 0..2 {
        assert_eq!(append(store, key, replacing.clone()).await, Appended::Done);
    }
    assert_eq!(log(store, key).await, (Some(id(2)), vec!["turn 2\0".into()]));
}

/// A process that is killed after it has appended a turn cannot note anything any more.
async fn a_turn_is_undelivered_until_it_is_noted(store: &dyn Store) {
    let key = key();
    let is_undelivered = async || store.log(key, 0).await.unwrap().is_undelivered;
    let note = async |head, delivery| store.note_delivery(key, FIRST, id(head), delivery).await.unwrap();
    for delivery in [Delivery::Undelivered, Delivery::Delivered] {
        assert_eq!(note(1, delivery).await, Written::Done, "there is no turn");
    }
    crate::suite::assert_empty(store, key).await;
    append(store, key, turn(None, 1)).await;
    assert!(is_undelivered().await && store.log(key, 1).await.unwrap().is_undelivered);
    note(9, Delivery::Delivered).await;
    assert!(is_undelivered().await, "another turn was delivered");
    note(1, Delivery::Delivered).await;
    assert!(!is_undelivered().await);
    // The first attempt to write it arrives late.
    append(store, key, turn(None, 1)).await;
    assert!(!is_undelivered().await);
    note(9, Delivery::Undelivered).await;
    assert!(!is_undelivered().await, "another turn was not delivered");
    note(1, Delivery::Undelivered).await;
    assert!(is_undelivered().await);
    // The retry has the same answer.
    append(store, key, Append { replaces: true, ..turn(Some(1), 1) }).await;
    assert!(is_undelivered().await);
    append(store, key, turn(Some(1), 2)).await;
    assert!(is_undelivered().await);
    note(1, Delivery::Delivered).await;
    assert!(is_undelivered().await);
    note(2, Delivery::Delivered).await;
    append(store, key, Append { replaces: true, ..turn(Some(2), 3) }).await;
    assert!(is_undelivered().await);
    // A deleted conversation stays empty.
    store.delete(key, next()).await.unwrap();
    for delivery in [Delivery::Undelivered, Delivery::Delivered] {
        assert_eq!(note(3, delivery).await, Written::Gone);
    }
    crate::suite::assert_empty(store, key).await;
}

async fn one_of_many_concurrent_turns_is_appended(store: &Arc<dyn Store>) {
    let key = key();
    let mut tasks = JoinSet::new();
    for number in 1..=32 {
        let store = store.clone();
        tasks.spawn(async move { append(&*store, key, turn(None, number)).await });
    }
    let done = tasks.join_all().await.into_iter().filter(|appended| *appended == Appended::Done);
    assert_eq!(done.count(), 1);
    assert_eq!(log(&**store, key).await.1.len(), 1);
}

async fn a_refused_turn_leaves_nothing(store: &dyn Store) {
    let key = key();
    assert_eq!(append(store, key, turn(Some(9), 1)).await, Appended::Conflict);
    crate::suite::assert_empty(store, key).await;
    assert!(!store.delete(key, next()).await.unwrap());
}

async fn kept_messages_replace_those_of_failed_attempts(store: &dyn Store) {
    let key = key();
    let failed = Journal { messages: vec![(id(1), "failed".into())], waypoint: None };
    store.journal(key, FIRST, failed.clone()).await.unwrap();
    append(store, key, turn(None, 1)).await;
    store.journal(key, FIRST, failed).await.unwrap();
    assert_eq!(messages(store, key).await, [(id(1), "message 1".into())]);
}

async fn the_end_of_a_log_can_be_read(store: &dyn Store) {
    let key = key();
    append(store, key, turn(None, 1)).await;
    append(store, key, turn(Some(1), 2)).await;
    for (from, expected) in [(1, vec![Bytes::from("turn 2\0")]), (2, vec![]), (9, vec![])] {
        let log = store.log(key, from).await.unwrap();
        assert_eq!((log.head, log.turns), (Some(id(2)), expected));
    }
}

pub(crate) async fn a_log_expires(store: &dyn Store) {
    let key = key();
    append(store, key, turn(None, 1)).await;
    until(async || log(store, key).await == (None, vec![])).await;
    // What follows is another conversation.
    assert_eq!(append(store, key, turn(Some(1), 2)).await, Appended::Conflict);
    assert_eq!(append(store, key, turn(None, 3)).await, Appended::Done);
    assert_eq!(log(store, key).await, (Some(id(3)), vec!["turn 3\0".into()]));
}
