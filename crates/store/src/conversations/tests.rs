//! Folds and leases across processes, and while the store fails.

#![allow(clippy::unwrap_used, reason = "a panic in a test is its failure message")]

mod branches;
mod flaky;

use super::*;
use crate::MemoryStore;
use crate::record::StoredFold;
use crate::store::{Append, Appended, Delivery, FoldWritten, Lease, LogRead};
use flaky::Flaky;
use tidegate_engine::{Digest, Timestamp};
use tokio::task::JoinSet;

/// Nothing was deleted before.
const FIRST: Generation = Generation(0);
const KEY: ConversationKey = ConversationKey([7; 16]);
const HOUR: Duration = Duration::from_secs(3600);

fn replica(store: &Arc<Flaky>, keyring: Option<&str>) -> Arc<Conversations> {
    let keyring = keyring.map(|key| key.repeat(32).parse().unwrap());
    let store: Arc<dyn Store> = store.clone();
    Conversations::new(store, Options { timeout: HOUR, ttl: HOUR, raw: true, keyring })
}

fn fold(number: u8, state: &'static str) -> StoredFold {
    let state = Bytes::from_static(state.as_bytes());
    StoredFold { covers: Digest([number; 32]), covered: 3, at: Timestamp(u64::from(number)), state }
}

fn waypoint() -> Waypoint {
    Waypoint { end: Digest([9; 32]), at: Timestamp(5), fold: Some(Digest([1; 32])), ..Waypoint::default() }
}

async fn journal(replica: &Arc<Conversations>) -> Result<(), Degraded> {
    replica.journal(KEY, Entries { waypoint: Some(waypoint()), ..Entries::default() }).await
}

#[tokio::test]
async fn a_fold_is_shared_between_processes_and_encrypted() {
    let store = Flaky::shared();
    let (one, two) = (replica(&store, Some("11")), replica(&store, Some("11")));
    assert_eq!(one.fold(KEY, FIRST, fold(1, "the canary")).await, Ok(FoldWritten::Stored));
    assert_eq!(two.fold(KEY, FIRST, fold(1, "another")).await, Ok(FoldWritten::Other));
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
async fn a_fold_that_could_not_be_stored_is_used_locally_and_stored_later() {
    for store in [Flaky::shared(), Flaky::unshared()] {
        let (one, two) = (replica(&store, None), replica(&store, None));
        store.fail();
        assert_eq!(one.fold(KEY, FIRST, fold(1, "x")).await, Err(Degraded::ReadOnly));
        assert_eq!(one.recall(KEY).await.folds, [fold(1, "x")]);
        assert_eq!(journal(&one).await, Err(Degraded::ReadOnly));
        store.recover();
        assert_eq!(one.recall(KEY).await.folds, [fold(1, "x")]);
        assert_eq!(two.recall(KEY).await.folds, []);
        journal(&one).await.unwrap();
        assert_eq!(replica(&store, None).recall(KEY).await.folds, [fold(1, "x")]);
    }
}

#[tokio::test]
async fn what_another_process_deleted_is_gone_here_too() {
    for is_saved in [true, false] {
        let store = Flaky::shared();
        let (one, two) = (replica(&store, None), replica(&store, None));
        one.fold(KEY, FIRST, fold(1, "x")).await.unwrap();
        if !is_saved {
            store.fail();
            one.fold(KEY, FIRST, fold(2, "y")).await.unwrap_err();
            store.recover();
        }
        journal(&two).await.unwrap();
        two.delete(KEY).await.unwrap();
        // What began before has no effect.
        journal(&one).await.unwrap();
        assert_eq!(one.fold(KEY, FIRST, fold(3, "late")).await, Ok(FoldWritten::Gone));
        for replica in [&one, &two] {
            let recalled = replica.recall(KEY).await;
            assert_eq!((recalled.folds.len(), recalled.memory.waypoints().len()), (0, 0));
            assert_ne!(recalled.generation, FIRST);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_expired_conversation_is_not_served_from_the_cache() {
    let store = Flaky::shared();
    let one = replica(&store, None);
    one.fold(KEY, FIRST, fold(1, "x")).await.unwrap();
    store.fail();
    assert_eq!(one.recall(KEY).await.folds.len(), 1);
    tokio::time::advance(HOUR).await;
    assert_eq!(one.recall(KEY).await.folds.len(), 0);
}

#[tokio::test]
async fn a_fold_that_another_process_stored_first_wins() {
    let store = Flaky::shared();
    let (one, two) = (replica(&store, None), replica(&store, None));
    store.fail();
    one.fold(KEY, FIRST, fold(1, "ours")).await.unwrap_err();
    store.recover();
    two.fold(KEY, FIRST, fold(1, "theirs")).await.unwrap();
    // Even if the conflict shows only when ours is stored later.
    journal(&one).await.unwrap();
    assert_eq!(one.recall(KEY).await.folds, [fold(1, "theirs")]);
}

#[tokio::test]
async fn an_unshared_store_is_read_even_if_the_cache_has_newer_entries() {
    let store = Flaky::unshared();
    replica(&store, None).fold(KEY, FIRST, fold(1, "earlier")).await.unwrap();
    let later = replica(&store, None);
    // The cache has an entry before the store was read.
    later.keep_locally(KEY, FIRST, waypoint());
    assert_eq!(later.recall(KEY).await.folds, [fold(1, "earlier")]);
    assert_eq!(later.fold(KEY, FIRST, fold(1, "later")).await, Ok(FoldWritten::Other));
    assert_eq!(later.recall(KEY).await.folds, [fold(1, "earlier")]);
    assert_eq!(later.fold(KEY, FIRST, fold(2, "more")).await, Ok(FoldWritten::Stored));
    store.fail();
    assert_eq!(later.recall(KEY).await.folds, [fold(1, "earlier"), fold(2, "more")]);
}

#[tokio::test]
async fn unreadable_folds_are_reported_and_kept() {
    let sealed = record::encode_fold(KEY, &fold(1, "x"), Some(&"11".repeat(32).parse().unwrap()));
    let readable = record::encode_fold(KEY, &fold(2, "y"), None);
    for (record, degraded) in [
        (Bytes::from_static(b"garbage"), Degraded::Corrupt),
        (Bytes::from_static(b"\x02later"), Degraded::NewerRecord),
        (sealed, Degraded::NoKey),
    ] {
        let store = Flaky::shared();
        store.fold(KEY, FIRST, MessageId([1; 32]), record).await.unwrap();
        store.fold(KEY, FIRST, MessageId([2; 32]), readable.clone()).await.unwrap();
        let replica = replica(&store, None);
        let recalled = replica.recall(KEY).await;
        assert_eq!((recalled.folds, recalled.degraded), (vec![fold(2, "y")], Some(degraded)));
        // This process uses its own fold instead, and does not make it again.
        assert_eq!(replica.fold(KEY, FIRST, fold(1, "ours")).await, Ok(FoldWritten::Stored));
        assert_eq!(replica.recall(KEY).await.folds, [fold(1, "ours"), fold(2, "y")]);
    }
}

#[tokio::test]
async fn one_of_many_tasks_in_two_processes_gets_the_lease() {
    let store = Flaky::shared();
    let replicas = [replica(&store, None), replica(&store, None)];
    let mut tasks = JoinSet::new();
    for number in 0..64 {
        let replica = Arc::clone(&replicas[number % 2]);
        tasks.spawn(async move { replica.claim(KEY, HOUR).await });
    }
    let mut leases: Vec<FoldLease> = tasks.join_all().await.into_iter().flatten().collect();
    let lease = leases.pop().unwrap();
    assert!(leases.is_empty());
    assert!(replicas[0].claim(ConversationKey([8; 16]), HOUR).await.is_some());
    lease.release().await;
    let lease = replicas[0].claim(KEY, HOUR).await.unwrap();
    assert!(replicas[1].claim(KEY, HOUR).await.is_none());
    // A task that the store refused has left no lease in its process.
    lease.release().await;
    assert!(replicas[1].claim(KEY, HOUR).await.is_some());
}

#[tokio::test]
async fn without_the_store_one_task_per_process_gets_the_lease() {
    let store = Flaky::shared();
    let (one, two) = (replica(&store, None), replica(&store, None));
    store.fail();
    let leases = (one.claim(KEY, HOUR).await.unwrap(), two.claim(KEY, HOUR).await.unwrap());
    assert!(one.claim(KEY, HOUR).await.is_none() && two.claim(KEY, HOUR).await.is_none());
    // A store that recovers does not hand out a second lease.
    store.recover();
    assert!(one.claim(KEY, HOUR).await.is_none());
    leases.0.release().await;
    assert!(one.claim(KEY, HOUR).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_dropped_lease_expires_for_other_processes() {
    let store = Flaky::shared();
    let (one, two) = (replica(&store, None), replica(&store, None));
    drop(one.claim(KEY, HOUR).await.unwrap());
    assert!(two.claim(KEY, HOUR).await.is_none());
    tokio::time::advance(HOUR).await;
    assert!(two.claim(KEY, HOUR).await.is_some());
}

#[tokio::test]
async fn folding_is_suspended_until_the_given_time() {
    let replica = replica(&Flaky::shared(), None);
    assert_eq!(replica.fold_backoff(KEY), FoldBackoff::default());
    let backoff = FoldBackoff::default().after_failure(Timestamp(100));
    replica.set_fold_backoff(KEY, backoff);
    assert_eq!(replica.fold_backoff(KEY), backoff);
    assert_eq!(replica.fold_backoff(ConversationKey([8; 16])), FoldBackoff::default());
}

#[tokio::test]
async fn an_evicted_conversation_is_recorded_anew() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::bounded(HOUR, 4_096));
    let replica = Conversations::new(store, Options { timeout: HOUR, ttl: HOUR, raw: true, keyring: None });
    journal(&replica).await.unwrap();
    replica.recall(KEY).await;
    assert_eq!(replica.recall(KEY).await.memory.waypoints(), [waypoint()]);
    // Does not compress.
    let mut noise = vec![0; 3_900];
    blake3::Hasher::new().finalize_xof().fill(&mut noise);
    let large = RawMessage {
        id: MessageId([1; 32]),
        parent: MessageId([0; 32]),
        position: 0,
        at: u64::MAX,
        json: noise.into(),
        standing: record::Standing::Kept,
    };
    let entries = Entries { messages: vec![large], ..Entries::default() };
    let other = ConversationKey([8; 16]);
    replica.journal(other, entries).await.unwrap();
    // If the cache still said that the messages up to the waypoint are in the store, they would never be written again.
    assert_eq!(replica.head(KEY).await.unwrap(), None);
    assert_eq!(replica.recall(KEY).await.memory.waypoints(), []);
    assert_eq!(replica.store_size().map(|size| size.evicted), Some(1));
}

#[test]
fn a_history_of_many_megabytes_is_cached() {
    let long = RawMessage {
        id: MessageId([1; 32]),
        parent: MessageId([0; 32]),
        position: 0,
        at: 0,
        json: vec![b'x'; 32 << 20].into(),
        standing: record::Standing::Kept,
    };
    let turn = record::LoggedTurn {
        parent: None,
        head: long.id,
        request: [0; 32],
        idempotency: None,
        instructions: Vec::new(),
        messages: vec![([0; 32], long)],
    };
    let logs = log_cache(Conversations::CACHE_BYTES / 3);
    logs.insert(KEY, Arc::new(Log { turns: vec![Arc::new(turn)], ..Log::default() }));
    assert!(logs.get(&KEY).is_some());
}

/// The state of a request is stored once. Its other places say where.
#[tokio::test]
async fn the_state_of_a_branch_is_stored_whole_in_one_place() {
    let key = |number| ConversationKey([number; 16]);
    let branch = Branch {
        own: vec![key(1), key(2)],
        previous: vec![],
        stems: vec![],
        anchors: vec![Anchor { key: key(3), distance: Some(2) }],
        note: BranchNote::default(),
        is_changed: false,
    };
    let store = Flaky::shared();
    let one = replica(&store, None);
    for at in [5, 6] {
        let waypoint = Some(Waypoint { at: Timestamp(at), ..waypoint() });
        one.save_branch(&branch, BranchState { waypoint, ..BranchState::default() }).await.unwrap();
    }
    for place in [1, 2, 3] {
        let stored = store.recall(key(place)).await.unwrap().waypoints;
        assert_eq!(stored.len(), 2);
        assert!(place == 1 || stored.iter().all(|record| record.len() < 20), "{stored:?}");
        let recalled = replica(&store, None).recall(key(place)).await;
        assert_eq!(recalled.memory.waypoints().last(), Some(&Waypoint { at: Timestamp(6), ..waypoint() }));
        assert_eq!(recalled.degraded, None);
    }
    store.delete(key(1), Generation(1)).await.unwrap();
    let recalled = replica(&store, None).recall(key(2)).await;
    assert_eq!((recalled.memory.waypoints(), recalled.degraded), (&[][..], None));
}

/// Blocking threads may all wait for something else, such as a name server.
#[test]
fn large_messages_do_not_wait_for_a_thread_for_ever() {
    let runtime = tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).enable_all().build();
    let (release, held) = std::sync::mpsc::channel::<()>();
    runtime.unwrap().block_on(async {
        let busy = tokio::task::spawn_blocking(move || held.recv());
        let options = Options { timeout: Duration::from_millis(50), ttl: HOUR, raw: true, keyring: None };
        let one = Conversations::new(Arc::new(MemoryStore::new(HOUR)), options);
        let message = RawMessage {
            id: MessageId([1; 32]),
            parent: MessageId([0; 32]),
            position: 0,
            at: 1,
            json: vec![b'x'; 2 * INLINE_ENCODE_BYTES].into(),
            standing: record::Standing::Kept,
        };
        let entries = Entries { messages: vec![message], waypoint: Some(waypoint()), ..Entries::default() };
        let written = timeout(HOUR, one.journal(KEY, entries)).await;
        assert_eq!(written, Ok(Err(Degraded::Timeout)));
        // The decision stays in this process, and the messages are written by the next request.
        assert_eq!(one.recall(KEY).await.recorded([waypoint().end].into_iter()), 0);
        release.send(()).unwrap();
        busy.await.unwrap().unwrap();
    });
}
