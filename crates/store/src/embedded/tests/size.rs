//! The maximum size of the store.

use super::*;

const MIB: u64 = 1 << 20;

fn open(directory: &Path, max_size: u64, clock: Clock) -> EmbeddedStore {
    EmbeddedStore::open_with(directory, HOUR, max_size, clock, file::open_database).unwrap()
}

/// Two messages of about this many bytes, and a waypoint. Ids are as random as digests.
fn turn_of(bytes: usize, conversation: u64, number: u64) -> Journal {
    let message = |side: u64| {
        let seed = [conversation, number, side].map(u64::to_le_bytes).concat();
        let id = MessageId(*blake3::hash(&seed).as_bytes());
        (id, Bytes::from(vec![b'x'; bytes + usize::from(id.0[0])]))
    };
    Journal { messages: vec![message(0), message(1)], waypoint: Some(vec![1; 400].into()) }
}

fn number(key: u64) -> ConversationKey {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&blake3::hash(&key.to_le_bytes()).as_bytes()[..16]);
    ConversationKey(bytes)
}

/// What the database itself says that it uses of its file.
async fn allocated(store: &EmbeddedStore) -> u64 {
    // Pages are freed by the commits after the one that no longer needs them.
    for _ in 0..3 {
        store.probe().await.unwrap();
    }
    let measured = |database: &Database| {
        let transaction = database.begin_write()?;
        let stats = transaction.stats()?;
        transaction.abort()?;
        Ok(stats.allocated_pages() * stats.page_size() as u64)
    };
    store.file.with(measured).unwrap()
}

#[tokio::test]
async fn the_oldest_conversations_go_when_the_store_is_full() {
    static NOW: AtomicU64 = AtomicU64::new(1);
    let directory = tempdir().unwrap();
    let store = open(directory.path(), 2 * MIB, || NOW.fetch_add(1, Ordering::Relaxed));
    for conversation in 0..200 {
        for turn in 0..10 {
            store.journal(number(conversation), FIRST, turn_of(1_000, conversation, turn)).await.unwrap();
            let size = store.size().unwrap();
            assert!(size.bytes <= size.limit, "{size:?}");
        }
    }
    let evicted = store.take_evicted();
    assert_eq!(store.size().unwrap().evicted, evicted.len() as u64);
    assert!((120..200).contains(&evicted.len()), "{}", evicted.len());
    assert_eq!(evicted, (0..evicted.len() as u64).map(number).collect::<Vec<_>>(), "the oldest first");
    assert_eq!(store.take_evicted(), []);
    // Nothing is left of them, and all of the others, but for the one that is being removed.
    for (conversation, key) in (0..200).map(|key| (key, number(key))) {
        let messages = if conversation < evicted.len() as u64 { 0 } else { 20 };
        assert_eq!(store.messages(key).await.unwrap().len(), messages, "{conversation}");
        assert_eq!(store.recall(key).await.unwrap().waypoints.is_empty(), messages == 0);
    }
    // Freed pages are used again: twenty times as much was written.
    let bytes = allocated(&store).await;
    assert!(bytes < 3 * MIB, "{bytes}");
}

#[tokio::test]
async fn an_evicted_conversation_begins_anew() {
    static NOW: AtomicU64 = AtomicU64::new(1);
    let directory = tempdir().unwrap();
    let store = open(directory.path(), MIB, || NOW.fetch_add(1, Ordering::Relaxed));
    for turn in 0..3_000 {
        store.journal(number(0), FIRST, turn_of(10, 0, turn)).await.unwrap();
    }
    // It alone is too large, so its rows are removed over several commits; it is never seen in part.
    let (count, size) = (store.messages(number(0)).await.unwrap().len(), store.size().unwrap());
    assert!(count < 6_000 && size.evicted > 0 && size.bytes <= size.limit, "{count} messages, {size:?}");
    store.journal(number(1), FIRST, turn_of(10, 1, 0)).await.unwrap();
    assert_eq!(store.messages(number(1)).await.unwrap().len(), 2);
}

#[tokio::test]
async fn the_space_in_use_is_about_what_the_pages_take() {
    for bytes in [20, 300, 900, 1_500, 2_500, 5_000, 40_000] {
        let directory = tempdir().unwrap();
        let store = Arc::new(open(directory.path(), u64::MAX, wall_clock));
        let empty = allocated(&store).await;
        let mut writes = tokio::task::JoinSet::new();
        for (conversation, turn) in (0..40).flat_map(|one| (0..10).map(move |turn| (one, turn))) {
            let store = Arc::clone(&store);
            writes.spawn(async move {
                let journal = turn_of(bytes, conversation, turn);
                store.journal(number(conversation), FIRST, journal).await
            });
        }
        while let Some(written) = writes.join_next().await {
            written.unwrap().unwrap();
        }
        let counted = store.size().unwrap().bytes as f64;
        let pages = (allocated(&store).await - empty) as f64;
        assert!((0.8..1.25).contains(&(counted / pages)), "{bytes}: counted {counted}, takes {pages}");
    }
}

#[tokio::test]
async fn the_space_is_known_after_a_restart_and_measured_where_it_was_not_counted() {
    let directory = tempdir().unwrap();
    let store = open(directory.path(), u64::MAX, wall_clock);
    for conversation in 0..20 {
        store.journal(number(conversation), FIRST, turn_of(700, conversation, 0)).await.unwrap();
        store.count(number(conversation), FIRST, turn(1)).await.unwrap();
    }
    store.delete(number(3), Generation(1)).await.unwrap();
    let size = store.size();
    drop(store);
    let store = open(directory.path(), u64::MAX, wall_clock);
    assert_eq!(store.size(), size);
    drop(store);
    edit_database(directory.path(), |transaction| {
        transaction.open_table(META).unwrap().remove("bytes").unwrap();
    });
    assert_eq!(open(directory.path(), u64::MAX, wall_clock).size(), size);
}

#[tokio::test]
async fn a_lower_limit_removes_what_is_too_much_without_a_write() {
    let directory = tempdir().unwrap();
    let store = open(directory.path(), u64::MAX, wall_clock);
    for conversation in 0..100 {
        store.journal(number(conversation), FIRST, turn_of(5_000, conversation, 0)).await.unwrap();
    }
    drop(store);
    let store = open(directory.path(), MIB, wall_clock);
    let deadline = Instant::now() + Duration::from_secs(10);
    while store.size().unwrap().bytes > MIB {
        assert!(Instant::now() < deadline, "{:?}", store.size());
        store.probe().await.unwrap();
    }
    assert_eq!(store.messages(number(99)).await.unwrap().len(), 2);
}
