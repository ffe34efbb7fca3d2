//! The contract of deletion: what is under way cannot bring a deleted conversation back.

use crate::suite::{FIRST, assert_empty, id, key, message, messages, next, turn, waypoint};
use tidegate_store::{Append, Appended, FoldWritten, Generation, Store, Written};

pub(crate) async fn everything(store: &dyn Store) {
    writes_of_a_deleted_generation_have_no_effect(store).await;
    a_conversation_can_be_deleted_again(store).await;
}

fn append(head: u8) -> Append {
    let record = "turn".into();
    Append { expected: None, head: id(head), replaces: false, record, messages: vec![], waypoint: None }
}

/// Writes one of everything, and returns whether it was written.
async fn write_all(store: &dyn Store, key: tidegate_store::ConversationKey, generation: Generation) -> bool {
    let written = [
        store.journal(key, generation, waypoint("w")).await.unwrap() == Written::Done,
        store.journal(key, generation, message(1, "m")).await.unwrap() == Written::Done,
        store.count(key, generation, turn(1, Some(1), 10)).await.unwrap() == Written::Done,
        store.save_exchange(key, generation, id(1), "x".into()).await.unwrap() == Written::Done,
        store.fold(key, generation, id(1), "f".into()).await.unwrap() == FoldWritten::Stored,
        store.append(key, generation, append(1)).await.unwrap() == Appended::Done,
    ];
    assert!(written.iter().all(|one| *one == written[0]), "{written:?}");
    written[0]
}

async fn writes_of_a_deleted_generation_have_no_effect(store: &dyn Store) {
    let key = key();
    assert!(write_all(store, key, FIRST).await);
    let second = next();
    assert!(store.delete(key, second).await.unwrap());
    assert!(!write_all(store, key, FIRST).await);
    assert_empty(store, key).await;
    assert_eq!(store.recall(key).await.unwrap().generation, second);
    assert_eq!(store.log(key, 0).await.unwrap().generation, second);
    assert!(write_all(store, key, second).await);
    assert_eq!(messages(store, key).await.len(), 1);
    assert_eq!(store.log(key, 0).await.unwrap().head, Some(id(1)));
}

async fn a_conversation_can_be_deleted_again(store: &dyn Store) {
    let key = key();
    let (second, third) = (next(), next());
    assert!(!store.delete(key, second).await.unwrap(), "there was nothing");
    assert!(!write_all(store, key, FIRST).await, "it was under way all the same");
    assert!(write_all(store, key, second).await);
    assert!(store.delete(key, third).await.unwrap());
    assert!(!write_all(store, key, second).await);
    assert_empty(store, key).await;
    assert!(write_all(store, key, third).await);
}
