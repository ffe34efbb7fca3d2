use crate::{deletion, facts, folds, leases, log};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tidegate_store::{
    ConversationKey, Generation, Head, Journal, MessageId, Recollection, Store, Turn, WAYPOINTS, Written,
    wall_clock,
};
use tokio::task::JoinSet;
use tokio::time::{Instant, interval};

/// Nothing was deleted before.
pub(crate) const FIRST: Generation = Generation(0);

/// The base of all turn times.
static START: LazyLock<u64> = LazyLock::new(wall_clock);

const HOUR: Duration = Duration::from_secs(3600);

/// Runs the whole contract against stores that `open` opens with a given time to live. They may share one server: each check
/// uses its own conversations.
pub(crate) async fn everything(open: impl AsyncFn(Duration) -> Arc<dyn Store>) {
    let store = open(HOUR).await;
    a_new_conversation_is_empty(&*store).await;
    waypoints_are_returned_in_order_and_the_oldest_are_dropped(&*store).await;
    a_message_is_added_once(&*store).await;
    records_may_contain_any_bytes(&*store).await;
    concurrent_writes_lose_nothing(&store).await;
    a_turn_is_counted_once(&*store).await;
    a_turn_is_written_with_its_answer(&*store).await;
    a_retry_counts_as_a_request_but_not_as_a_turn(&*store).await;
    conversations_are_listed_by_their_last_turn(&*store).await;
    conversations_are_isolated(&*store).await;
    a_deleted_conversation_is_empty(&*store).await;
    folds::everything(&store).await;
    a_pin_stays_until_it_is_replaced_or_removed(&*store).await;
    an_exchange_belongs_to_its_conversation(&*store).await;
    leases::everything(&store).await;
    log::everything(&store).await;
    deletion::everything(&*store).await;
    log::a_log_expires(&*open(Duration::from_millis(400)).await).await;
    facts::everything(&*store).await;
    store.probe().await.unwrap();
    facts::facts_expire(&*open(Duration::from_millis(400)).await).await;
    a_conversation_expires_without_writes(&*open(Duration::from_millis(400)).await).await;
    writing_keeps_a_conversation_alive(&*open(Duration::from_millis(1500)).await).await;
    folds::folding_keeps_a_conversation_alive(&*open(Duration::from_millis(1500)).await).await;
}

async fn a_new_conversation_is_empty(store: &dyn Store) {
    let key = key();
    assert_eq!(store.recall(key).await.unwrap(), Recollection::default());
    assert_eq!(store.head(key).await.unwrap(), None);
    assert_eq!(store.turns(key).await.unwrap(), Vec::<Bytes>::new());
    assert_eq!(store.messages(key).await.unwrap(), []);
    assert!(!store.delete(key, next()).await.unwrap());
}

async fn waypoints_are_returned_in_order_and_the_oldest_are_dropped(store: &dyn Store) {
    let key = key();
    for number in 0..WAYPOINTS + 3 {
        store.journal(key, FIRST, waypoint(&format!("waypoint {number}"))).await.unwrap();
    }
    let expected: Vec<Bytes> = (3..WAYPOINTS + 3).map(|number| format!("waypoint {number}").into()).collect();
    assert_eq!(store.recall(key).await.unwrap().waypoints, expected);
}

async fn an_exchange_belongs_to_its_conversation(store: &dyn Store) {
    let (here, there) = (key(), key());
    let sorted = async |key| {
        let mut all = store.exchanges(key).await.unwrap();
        all.sort();
        all
    };
    assert_eq!(sorted(here).await, []);
    for (after, record) in [(1, "first"), (2, "other"), (1, "second\0")] {
        let written = store.save_exchange(here, FIRST, id(after), record.into()).await.unwrap();
        assert_eq!(written, Written::Done);
    }
    assert_eq!(sorted(here).await, [(id(1), "second\0".into()), (id(2), "other".into())]);
    assert_eq!((sorted(there).await.len(), messages(store, here).await.len()), (0, 0));
    store.save_exchange(there, FIRST, id(1), "x".into()).await.unwrap();
    let second = next();
    assert!(store.delete(here, second).await.unwrap());
    assert_eq!((sorted(here).await.len(), sorted(there).await.len()), (0, 1));
    let late = store.save_exchange(here, FIRST, id(1), "late".into()).await.unwrap();
    assert_eq!((late, sorted(here).await.len()), (Written::Gone, 0));
    assert_eq!(store.save_exchange(here, second, id(1), "new".into()).await.unwrap(), Written::Done);
    assert_eq!(sorted(here).await, [(id(1), "new".into())]);
}

async fn a_pin_stays_until_it_is_replaced_or_removed(store: &dyn Store) {
    let (here, there) = (key(), key());
    store.pin(here, Some("first".into())).await.unwrap();
    store.journal(here, FIRST, waypoint("one")).await.unwrap();
    assert_eq!(store.recall(here).await.unwrap().pinned, Some("first".into()));
    store.pin(here, Some(Bytes::from_static(b"second\0"))).await.unwrap();
    assert_eq!(store.recall(here).await.unwrap().pinned, Some(Bytes::from_static(b"second\0")));
    assert_eq!(store.recall(there).await.unwrap(), Recollection::default());
    store.pin(here, None).await.unwrap();
    assert_eq!(store.recall(here).await.unwrap().pinned, None);
    // It is deleted with its conversation.
    store.pin(here, Some("third".into())).await.unwrap();
    assert!(store.delete(here, next()).await.unwrap());
    assert_empty(store, here).await;
}

async fn a_message_is_added_once(store: &dyn Store) {
    let key = key();
    store.journal(key, FIRST, message(1, "first")).await.unwrap();
    store.journal(key, FIRST, message(1, "second")).await.unwrap();
    let both = Journal {
        messages: [message(1, "third").messages, message(2, "x").messages].concat(),
        waypoint: None,
    };
    store.journal(key, FIRST, both).await.unwrap();
    assert_eq!(messages(store, key).await, [(id(1), "first".into()), (id(2), "x".into())]);
}

async fn records_may_contain_any_bytes(store: &dyn Store) {
    let key = key();
    let odd: Bytes = (0..=255).chain([0, 13, 10, 0]).collect();
    let long = Bytes::from(vec![7; 1 << 20]);
    let messages = vec![(id(0), odd.clone()), (id(10), Bytes::new()), (id(255), long.clone())];
    store.journal(key, FIRST, Journal { messages, waypoint: Some(odd.clone()) }).await.unwrap();
    store.count(key, FIRST, Turn { record: odd.clone(), ..turn(1, None, 1) }).await.unwrap();
    store.fold(key, FIRST, id(0), odd.clone()).await.unwrap();
    store.fold(key, FIRST, id(10), Bytes::new()).await.unwrap();
    store.fold(key, FIRST, id(255), long.clone()).await.unwrap();
    assert_eq!(
        self::messages(store, key).await,
        [(id(0), odd.clone()), (id(10), Bytes::new()), (id(255), long.clone())]
    );
    let recollection = Recollection {
        waypoints: vec![odd.clone()],
        folds: vec![odd.clone(), Bytes::new(), long],
        ..Recollection::default()
    };
    assert_eq!(store.recall(key).await.unwrap(), recollection);
    assert_eq!(store.turns(key).await.unwrap(), [odd]);
}

async fn concurrent_writes_lose_nothing(store: &Arc<dyn Store>) {
    let key = key();
    let mut tasks = JoinSet::new();
    for number in 0..64u8 {
        let store = store.clone();
        tasks.spawn(async move {
            // Pairs of tasks write the same message.
            store.journal(key, FIRST, message(number / 2, "m")).await.unwrap();
            store.count(key, FIRST, turn(number, Some(number / 2), 10)).await.unwrap();
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    assert_eq!(messages(&**store, key).await.len(), 32);
    assert_eq!(store.turns(key).await.unwrap().len(), 64);
    let head = store.head(key).await.unwrap().unwrap();
    assert_eq!(counts(&head), [("requests", 64), ("tokens", 640), ("turns", 32)]);
}

async fn a_turn_is_counted_once(store: &dyn Store) {
    let key = key();
    for _ in 0..3 {
        store.count(key, FIRST, turn(1, Some(1), 10)).await.unwrap();
    }
    let labels = vec![("model", "gpt-5 \"ü\"\n".to_owned()), ("route", "b".to_owned())];
    store.count(key, FIRST, Turn { at: *START - 100, labels, ..turn(2, Some(2), 5) }).await.unwrap();
    let head = store.head(key).await.unwrap().unwrap();
    assert_eq!(counts(&head), [("requests", 2), ("tokens", 15), ("turns", 2)]);
    assert_eq!((head.first, head.last), (*START - 100, *START + 1));
    let labels: Vec<_> = head.labels.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(labels, [("model", "gpt-5 \"ü\"\n"), ("route", "b")]);
    assert_eq!(store.turns(key).await.unwrap().len(), 2);
}

async fn a_turn_is_written_with_its_answer(store: &dyn Store) {
    let key = key();
    store.journal(key, FIRST, message(1, "question")).await.unwrap();
    let answer = || vec![(id(1), "another".into()), (id(2), "answer".into())];
    for _ in 0..2 {
        let turn = turn(1, Some(1), 10);
        assert_eq!(store.conclude(key, FIRST, turn, answer()).await.unwrap(), Written::Done);
    }
    assert_eq!(messages(store, key).await, [(id(1), "question".into()), (id(2), "answer".into())]);
    let head = store.head(key).await.unwrap().unwrap();
    assert_eq!(counts(&head), [("requests", 1), ("tokens", 10), ("turns", 1)]);
    assert_eq!(head.labels.get("model").map(String::as_str), Some("gpt-4o"));
    assert_eq!(store.turns(key).await.unwrap(), ["turn 1"]);
    // A message that is new comes with a turn that is not.
    store.conclude(key, FIRST, turn(1, Some(1), 10), vec![(id(3), "late".into())]).await.unwrap();
    assert_eq!(messages(store, key).await.len(), 3);
    let gone = store.conclude(key, Generation(7), turn(2, None, 1), answer()).await.unwrap();
    assert_eq!((gone, store.turns(key).await.unwrap().len()), (Written::Gone, 1));
}

async fn a_retry_counts_as_a_request_but_not_as_a_turn(store: &dyn Store) {
    let key = key();
    store.count(key, FIRST, turn(1, Some(1), 10)).await.unwrap();
    store.count(key, FIRST, turn(2, Some(1), 10)).await.unwrap();
    store.count(key, FIRST, turn(3, None, 10)).await.unwrap();
    let head = store.head(key).await.unwrap().unwrap();
    assert_eq!(counts(&head), [("requests", 3), ("tokens", 30), ("turns", 1)]);
}

async fn conversations_are_listed_by_their_last_turn(store: &dyn Store) {
    let before = store.list(0, 1).await.unwrap().total;
    let keys = [key(), key(), key()];
    // Later than anything already in the store.
    let late = |number: u64| *START + 100_000 + number;
    for (number, key) in keys.into_iter().enumerate() {
        store.count(key, FIRST, Turn { at: late(number as u64), ..turn(1, Some(1), 1) }).await.unwrap();
    }
    store.count(keys[0], FIRST, Turn { at: late(9), ..turn(2, Some(2), 1) }).await.unwrap();
    // An old turn that is written late changes nothing.
    store.count(keys[2], FIRST, Turn { at: late(0) - 5, ..turn(3, Some(3), 1) }).await.unwrap();
    // Only conversations with a turn are listed.
    store.journal(key(), FIRST, message(1, "x")).await.unwrap();

    let listing = store.list(0, 3).await.unwrap();
    assert_eq!(listing.total, before + 3);
    let listed: Vec<ConversationKey> = listing.conversations.iter().map(|(key, _)| *key).collect();
    assert_eq!(listed, [keys[0], keys[2], keys[1]]);
    assert_eq!(listing.conversations[0].1, store.head(keys[0]).await.unwrap().unwrap());
    let second: Vec<_> =
        store.list(1, 1).await.unwrap().conversations.into_iter().map(|(key, _)| key).collect();
    assert_eq!(second, [keys[2]]);
    assert_eq!(store.list(before + 3, 5).await.unwrap().conversations, []);
}

async fn conversations_are_isolated(store: &dyn Store) {
    let (one, other) = (key(), key());
    store.journal(one, FIRST, waypoint("one")).await.unwrap();
    store.journal(one, FIRST, message(1, "one")).await.unwrap();
    store.count(one, FIRST, turn(1, Some(1), 10)).await.unwrap();
    store.fold(one, FIRST, id(1), "one".into()).await.unwrap();
    store.journal(other, FIRST, message(1, "other")).await.unwrap();
    assert_eq!(messages(store, one).await, [(id(1), "one".into())]);
    assert_eq!(messages(store, other).await, [(id(1), "other".into())]);
    assert_eq!(store.recall(other).await.unwrap(), Recollection::default());
    assert_eq!(store.head(other).await.unwrap(), None);
    assert_eq!(store.turns(other).await.unwrap(), Vec::<Bytes>::new());
}

async fn a_deleted_conversation_is_empty(store: &dyn Store) {
    let (deleted, kept) = (key(), key());
    for key in [deleted, kept] {
        store.journal(key, FIRST, Journal { waypoint: Some("w".into()), ..message(1, "x") }).await.unwrap();
        store.count(key, FIRST, turn(1, Some(1), 10)).await.unwrap();
        store.fold(key, FIRST, id(1), "f".into()).await.unwrap();
    }
    let before = store.list(0, 1).await.unwrap().total;
    assert!(store.delete(deleted, next()).await.unwrap());
    assert_empty(store, deleted).await;
    assert_eq!(store.list(0, 1).await.unwrap().total, before - 1);
    let recollection =
        Recollection { waypoints: vec!["w".into()], folds: vec!["f".into()], ..Recollection::default() };
    assert_eq!(store.recall(kept).await.unwrap(), recollection);
    // It can be used again, and a turn with an earlier id counts again.
    let generation = store.recall(deleted).await.unwrap().generation;
    store.count(deleted, generation, turn(1, Some(1), 10)).await.unwrap();
    let head = store.head(deleted).await.unwrap().unwrap();
    assert_eq!(counts(&head), [("requests", 1), ("tokens", 10), ("turns", 1)]);
}

async fn a_conversation_expires_without_writes(store: &dyn Store) {
    let key = key();
    store.journal(key, FIRST, Journal { waypoint: Some("w".into()), ..message(1, "x") }).await.unwrap();
    store.count(key, FIRST, turn(1, Some(1), 10)).await.unwrap();
    store.fold(key, FIRST, id(1), "f".into()).await.unwrap();
    store.save_exchange(key, FIRST, id(1), "x".into()).await.unwrap();
    until(async || {
        store.recall(key).await.unwrap() == Recollection::default()
            && store.head(key).await.unwrap().is_none()
    })
    .await;
    until(async || !store.list(0, 500).await.unwrap().conversations.iter().any(|(listed, _)| *listed == key))
        .await;
    assert_empty(store, key).await;
}

async fn writing_keeps_a_conversation_alive(store: &dyn Store) {
    let key = key();
    let begun = Instant::now();
    store.journal(key, FIRST, message(1, "old")).await.unwrap();
    store.count(key, FIRST, turn(1, Some(1), 10)).await.unwrap();
    store.fold(key, FIRST, id(1), "old".into()).await.unwrap();
    // Written to for longer than the time to live, without a gap of that length.
    let mut pace = interval(Duration::from_millis(100));
    let mut number = 2;
    while begun.elapsed() < Duration::from_millis(2500) {
        store.journal(key, FIRST, waypoint("w")).await.unwrap();
        store.count(key, FIRST, turn(number, Some(1), 10)).await.unwrap();
        number += 1;
        pace.tick().await;
    }
    assert_eq!(messages(store, key).await, [(id(1), "old".into())]);
    assert_eq!(store.recall(key).await.unwrap().folds, ["old"]);
    assert_eq!(store.head(key).await.unwrap().unwrap().counts["turns"], 1);
}

pub(crate) async fn assert_empty(store: &dyn Store, key: ConversationKey) {
    let recollection = store.recall(key).await.unwrap();
    let generation = recollection.generation;
    assert_eq!(recollection, Recollection { generation, ..Recollection::default() });
    assert_eq!(store.head(key).await.unwrap(), None);
    assert_eq!(store.turns(key).await.unwrap(), Vec::<Bytes>::new());
    assert_eq!(store.messages(key).await.unwrap(), []);
    assert_eq!(store.exchanges(key).await.unwrap(), []);
    let log = store.log(key, 0).await.unwrap();
    assert_eq!((log.head, log.turns.len()), (None, 0));
}

/// A generation that no other deletion begins.
pub(crate) fn next() -> Generation {
    static NEXT: AtomicU64 = AtomicU64::new(1 << 60);
    Generation(NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Waits until a condition holds, and fails if it does not hold in time.
pub(crate) async fn until(condition: impl AsyncFn() -> bool) {
    tidegate_testkit::until("the store reaches the expected state", condition).await;
}

/// A conversation that no other check uses.
pub(crate) fn key() -> ConversationKey {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let mut key = [0xab; 16];
    key[..8].copy_from_slice(&NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    ConversationKey(key)
}

pub(crate) fn id(number: u8) -> MessageId {
    MessageId([number; 32])
}

pub(crate) fn waypoint(record: &str) -> Journal {
    Journal { messages: Vec::new(), waypoint: Some(record.to_owned().into()) }
}

pub(crate) fn message(number: u8, record: &str) -> Journal {
    Journal { messages: vec![(id(number), record.to_owned().into())], waypoint: None }
}

pub(crate) fn turn(number: u8, end: Option<u8>, tokens: u64) -> Turn {
    Turn {
        id: [number; 16],
        end: end.map(id),
        at: *START + u64::from(number),
        record: format!("turn {number}").into(),
        counts: vec![("tokens", tokens)],
        labels: vec![("model", "gpt-4o".to_owned())],
    }
}

pub(crate) async fn messages(store: &dyn Store, key: ConversationKey) -> Vec<(MessageId, Bytes)> {
    let mut messages = store.messages(key).await.unwrap();
    messages.sort();
    messages
}

fn counts(head: &Head) -> Vec<(&str, u64)> {
    head.counts.iter().map(|(name, count)| (name.as_str(), *count)).collect()
}
