//! What becomes of summaries between processes, and when the store fails.

#![allow(clippy::unwrap_used, reason = "a panic in a test is its failure message")]

mod flaky;

use super::*;
use crate::MemoryStore;
use flaky::Flaky;
use tidegate_engine::{Digest, Timestamp};
use tokio::task::JoinSet;

const KEY: ConversationKey = ConversationKey([7; 16]);
const HOUR: Duration = Duration::from_secs(3600);

fn replica(store: &Arc<Flaky>, keyring: Option<&str>) -> Arc<Conversations> {
    let keyring = keyring.map(|key| key.repeat(32).parse().unwrap());
    let store: Arc<dyn Store> = store.clone();
    Conversations::new(store, Options { timeout: HOUR, raw: true, keyring })
}

fn fold(number: u8, state: &'static str) -> StoredFold {
    let state = Bytes::from_static(state.as_bytes());
    StoredFold { covers: Digest([number; 32]), covered: 3, at: Timestamp(u64::from(number)), state }
}

fn waypoint() -> Waypoint {
    Waypoint { end: Digest([9; 32]), at: Timestamp(5), fold: Some(Digest([1; 32])), ..Waypoint::default() }
}

async fn journal(replica: &Arc<Conversations>) -> Result<(), &'static str> {
    replica.journal(KEY, Entries { waypoint: Some(waypoint()), ..Entries::default() }).await
}

#[tokio::test]
async fn a_fold_of_one_process_is_that_of_all_and_stays_secret() {
    let store = Flaky::shared();
    let (one, two) = (replica(&store, Some("11")), replica(&store, Some("11")));
    assert_eq!(one.fold(KEY, fold(1, "the canary")).await, Ok(true));
    assert_eq!(two.fold(KEY, fold(1, "another")).await, Ok(false));
    journal(&one).await.unwrap();
    for replica in [&one, &two] {
        let recalled = replica.recall(KEY).await;
        assert_eq!((recalled.folds, recalled.degraded), (vec![fold(1, "the canary")], None));
        assert_eq!(recalled.memory.waypoints(), [waypoint()]);
    }
    let record = &store.recall(KEY).await.unwrap().folds[0];
    assert!(!record.windows(6).any(|window| window == b"canary"));
}

#[tokio::test]
async fn a_fold_that_could_not_be_stored_is_used_here_and_stored_later() {
    for store in [Flaky::shared(), Flaky::own()] {
        let (one, two) = (replica(&store, None), replica(&store, None));
        store.breaks();
        assert_eq!(one.fold(KEY, fold(1, "x")).await, Err("store_readonly"));
        assert_eq!(one.recall(KEY).await.folds, [fold(1, "x")]);
        assert_eq!(journal(&one).await, Err("store_readonly"));
        store.heals();
        assert_eq!(one.recall(KEY).await.folds, [fold(1, "x")]);
        assert_eq!(two.recall(KEY).await.folds, []);
        journal(&one).await.unwrap();
        assert_eq!(replica(&store, None).recall(KEY).await.folds, [fold(1, "x")]);
    }
}

#[tokio::test]
async fn a_store_that_has_lost_its_folds_is_told_them_again() {
    let store = Flaky::shared();
    let (one, two) = (replica(&store, None), replica(&store, None));
    one.fold(KEY, fold(1, "x")).await.unwrap();
    store.delete(KEY).await.unwrap();
    assert_eq!(one.recall(KEY).await.folds, [fold(1, "x")]);
    journal(&one).await.unwrap();
    assert_eq!(two.recall(KEY).await.folds, [fold(1, "x")]);
    // What is deleted on purpose is not known any more.
    one.delete(KEY).await.unwrap();
    assert_eq!(one.recall(KEY).await.folds, []);
}

#[tokio::test]
async fn what_others_folded_while_we_could_not_store_ours_is_what_counts() {
    let store = Flaky::shared();
    let (one, two) = (replica(&store, None), replica(&store, None));
    store.breaks();
    one.fold(KEY, fold(1, "mine")).await.unwrap_err();
    store.heals();
    two.fold(KEY, fold(1, "theirs")).await.unwrap();
    // Even if the first to notice is the one who tries to store it.
    journal(&one).await.unwrap();
    assert_eq!(one.recall(KEY).await.folds, [fold(1, "theirs")]);
}

#[tokio::test]
async fn a_store_of_our_own_is_asked_about_what_this_process_has_not_seen() {
    let store = Flaky::own();
    replica(&store, None).fold(KEY, fold(1, "earlier")).await.unwrap();
    let later = replica(&store, None);
    // Something is known here before the store was ever asked.
    later.keep_here(KEY, waypoint());
    assert_eq!(later.recall(KEY).await.folds, [fold(1, "earlier")]);
    assert_eq!(later.fold(KEY, fold(1, "later")).await, Ok(false));
    assert_eq!(later.recall(KEY).await.folds, [fold(1, "earlier")]);
    assert_eq!(later.fold(KEY, fold(2, "more")).await, Ok(true));
    store.breaks();
    assert_eq!(later.recall(KEY).await.folds, [fold(1, "earlier"), fold(2, "more")]);
}

#[tokio::test]
async fn what_cannot_be_read_is_left_alone_and_said() {
    let sealed = record::encode_fold(KEY, &fold(1, "x"), Some(&"11".repeat(32).parse().unwrap()));
    let readable = record::encode_fold(KEY, &fold(2, "y"), None);
    for (record, reason) in [
        (Bytes::from_static(b"garbage"), "store_corrupt"),
        (Bytes::from_static(b"\x02later"), "store_newer_record"),
        (sealed, "store_no_key"),
    ] {
        let store = Flaky::shared();
        store.fold(KEY, MessageId([1; 32]), record).await.unwrap();
        store.fold(KEY, MessageId([2; 32]), readable.clone()).await.unwrap();
        let replica = replica(&store, None);
        let recalled = replica.recall(KEY).await;
        assert_eq!((recalled.folds, recalled.degraded), (vec![fold(2, "y")], Some(reason)));
        // In its place this process uses its own, and does not have to make it again.
        assert_eq!(replica.fold(KEY, fold(1, "mine")).await, Ok(true));
        assert_eq!(replica.recall(KEY).await.folds, [fold(1, "mine"), fold(2, "y")]);
    }
}

#[tokio::test]
async fn of_many_tasks_in_two_processes_one_may_fold() {
    let store = Flaky::shared();
    let replicas = [replica(&store, None), replica(&store, None)];
    let mut tasks = JoinSet::new();
    for number in 0..64 {
        let replica = Arc::clone(&replicas[number % 2]);
        tasks.spawn(async move { replica.claim(KEY, HOUR).await });
    }
    let mut claims: Vec<Claim> = tasks.join_all().await.into_iter().flatten().collect();
    let claim = claims.pop().unwrap();
    assert!(claims.is_empty());
    assert!(replicas[0].claim(ConversationKey([8; 16]), HOUR).await.is_some());
    claim.release().await;
    let claim = replicas[0].claim(KEY, HOUR).await.unwrap();
    assert!(replicas[1].claim(KEY, HOUR).await.is_none());
    // Whoever was refused by the store has left nothing behind.
    claim.release().await;
    assert!(replicas[1].claim(KEY, HOUR).await.is_some());
}

#[tokio::test]
async fn without_the_store_one_task_of_each_process_may_fold() {
    let store = Flaky::shared();
    let (one, two) = (replica(&store, None), replica(&store, None));
    store.breaks();
    let claims = (one.claim(KEY, HOUR).await.unwrap(), two.claim(KEY, HOUR).await.unwrap());
    assert!(one.claim(KEY, HOUR).await.is_none() && two.claim(KEY, HOUR).await.is_none());
    // A store that comes back does not let a second one in.
    store.heals();
    assert!(one.claim(KEY, HOUR).await.is_none());
    claims.0.release().await;
    assert!(one.claim(KEY, HOUR).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn whoever_is_gone_blocks_others_no_longer_than_the_lease() {
    let store = Flaky::shared();
    let (one, two) = (replica(&store, None), replica(&store, None));
    drop(one.claim(KEY, HOUR).await.unwrap());
    assert!(two.claim(KEY, HOUR).await.is_none());
    tokio::time::advance(HOUR).await;
    assert!(two.claim(KEY, HOUR).await.is_some());
}

#[tokio::test]
async fn a_conversation_cools_down_until_its_time() {
    let replica = replica(&Flaky::shared(), None);
    assert!(!replica.is_cooling(KEY, 0));
    replica.cool_down(KEY, 100);
    assert!(replica.is_cooling(KEY, 99) && !replica.is_cooling(KEY, 100));
    assert!(!replica.is_cooling(ConversationKey([8; 16]), 0));
}
