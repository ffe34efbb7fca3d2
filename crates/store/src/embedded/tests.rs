//! What is specific to this store: opening, failing disks and expiry.

#![allow(clippy::unwrap_used, reason = "a panic in a test is its failure message")]

mod disk;
mod size;

use super::*;
use redb::{Database, ReadableTableMetadata};
use std::fs;
use std::future::ready;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tables::{
    BY_LAST, BY_TOUCHED, END, FOLD, HEAD, LOG, LOG_HEAD, MESSAGE, META, PIN, TOUCHED, TURN, UNDELIVERED,
    WAYPOINT,
};
use tempfile::{TempDir, tempdir};

/// Nothing was deleted before.
const FIRST: Generation = Generation(0);

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn a_database_cannot_be_opened_twice() {
    let directory = tempdir().unwrap();
    let first = EmbeddedStore::open(directory.path(), HOUR).unwrap();
    let error = EmbeddedStore::open(directory.path(), HOUR).unwrap_err().to_string();
    assert!(error.contains("conversations.redb` is in use by another process"), "{error}");
    drop(first);
    EmbeddedStore::open(directory.path(), HOUR).unwrap();
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_the_files() {
    use std::os::unix::fs::PermissionsExt;
    let parent = tempdir().unwrap();
    let directory = parent.path().join("data");
    drop(EmbeddedStore::open(&directory, HOUR).unwrap());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&directory), 0o700);
    assert_eq!(mode(&database_path(&directory)), 0o600);
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
}

#[test]
fn a_file_in_place_of_the_directory_is_named() {
    let parent = tempdir().unwrap();
    let file = parent.path().join("data");
    fs::write(&file, "notes").unwrap();
    let error = EmbeddedStore::open(&file, HOUR).unwrap_err().to_string();
    assert!(error.contains("cannot create `") && error.contains("data`"), "{error}");
}

#[test]
fn a_file_that_is_not_a_database_is_left_alone() {
    let directory = tempdir().unwrap();
    let file = database_path(directory.path());
    fs::write(&file, "dear diary").unwrap();
    let error = EmbeddedStore::open(directory.path(), HOUR).unwrap_err();
    assert!(matches!(error, StoreError::Corrupt(_)), "{error:?}");
    assert!(error.to_string().contains("is not a database of conversations"), "{error}");
    assert_eq!(fs::read(&file).unwrap(), b"dear diary");
}

#[test]
fn an_unrelated_database_is_left_alone() {
    let directory = tempdir().unwrap();
    drop(Database::create(database_path(directory.path())).unwrap());
    let error = EmbeddedStore::open(directory.path(), HOUR).unwrap_err().to_string();
    assert!(error.contains("is not a database of conversations"), "{error}");
}

#[test]
fn a_newer_format_is_left_alone() {
    let directory = tempdir().unwrap();
    drop(EmbeddedStore::open(directory.path(), HOUR).unwrap());
    edit_database(directory.path(), |transaction| {
        transaction.open_table(META).unwrap().insert("format", 2).unwrap();
    });
    let error = EmbeddedStore::open(directory.path(), HOUR).unwrap_err().to_string();
    assert!(error.contains("has format 2 and this version reads 1"), "{error}");
}

#[tokio::test]
async fn dropping_the_store_writes_what_is_queued() {
    let directory = tempdir().unwrap();
    let store = EmbeddedStore::open(directory.path(), HOUR).unwrap();
    for number in 0..100 {
        // Polled once and dropped, as by a caller whose deadline has passed.
        tokio::select! { biased; _ = store.journal(key(number), FIRST, journal("x")) => {}, () = ready(()) => {} }
    }
    drop(store);
    let store = EmbeddedStore::open(directory.path(), HOUR).unwrap();
    for number in 0..100 {
        assert_eq!(store.recall(key(number)).await.unwrap().waypoints, ["x"]);
    }
}

#[tokio::test]
#[allow(clippy::await_holding_lock, reason = "only the writer thread waits for it, on purpose")]
async fn concurrent_writes_share_one_commit() {
    const DISK: usize = 0;
    let switches = disk::switches::<DISK>();
    let directory = tempdir().unwrap();
    let store =
        EmbeddedStore::open_with(directory.path(), HOUR, u64::MAX, wall_clock, disk::open::<DISK>).unwrap();
    store.probe().await.unwrap();
    let before = switches.syncs.load(Ordering::Relaxed);
    store.probe().await.unwrap();
    let for_one = switches.syncs.load(Ordering::Relaxed) - before;
    let store = Arc::new(store);
    let gate = switches.gate.lock().unwrap();
    let mut waiting = tokio::task::JoinSet::new();
    for number in 0..64 {
        let store = Arc::clone(&store);
        waiting.spawn(async move { store.journal(key(number), FIRST, journal("x")).await });
    }
    // On this runtime, all tasks have queued their change when this one runs again.
    tokio::task::yield_now().await;
    drop(gate);
    while let Some(written) = waiting.join_next().await {
        written.unwrap().unwrap();
    }
    let for_all = switches.syncs.load(Ordering::Relaxed) - before - for_one;
    // The first may have been committed alone before the others arrived.
    assert!((for_one..=2 * for_one).contains(&for_all), "{for_all} syncs, {for_one} for a single write");
}

#[tokio::test]
async fn a_full_disk_fails_writes_until_there_is_space() {
    const DISK: usize = 1;
    let is_full = &disk::switches::<DISK>().is_full;
    let directory = tempdir().unwrap();
    let store =
        EmbeddedStore::open_with(directory.path(), HOUR, u64::MAX, wall_clock, disk::open::<DISK>).unwrap();
    store.journal(key(1), FIRST, journal("before")).await.unwrap();
    for _ in 0..3 {
        is_full.store(true, Ordering::Relaxed);
        let error = store.journal(key(1), FIRST, journal("lost")).await.unwrap_err();
        assert!(matches!(error, StoreError::Full(_)), "{error:?}");
        assert!(store.probe().await.is_err());
        is_full.store(false, Ordering::Relaxed);
        store.probe().await.unwrap();
        assert_eq!(store.recall(key(1)).await.unwrap().waypoints, ["before"]);
    }
    store.journal(key(1), FIRST, journal("after")).await.unwrap();
    assert_eq!(store.recall(key(1)).await.unwrap().waypoints, ["before", "after"]);
}

#[tokio::test]
async fn a_refused_change_does_not_affect_others_in_the_same_commit() {
    let directory = tempdir().unwrap();
    let store = EmbeddedStore::open(directory.path(), HOUR).unwrap();
    store.count(key(1), FIRST, turn(1)).await.unwrap();
    drop(store);
    edit_database(directory.path(), |transaction| {
        transaction.open_table(HEAD).unwrap().insert(&key(1).0[..], &b"no head"[..]).unwrap();
    });
    let store = EmbeddedStore::open(directory.path(), HOUR).unwrap();
    let (bad, good) = tokio::join!(store.count(key(1), FIRST, turn(2)), store.count(key(2), FIRST, turn(1)));
    assert!(matches!(bad, Err(StoreError::Corrupt(_))), "{bad:?}");
    good.unwrap();
    assert_eq!(store.turns(key(1)).await.unwrap().len(), 1);
    // Deleting it repairs the store, including the listing.
    assert!(store.delete(key(1), Generation(1)).await.unwrap());
    let listing = store.list(0, 10).await.unwrap();
    assert_eq!((listing.total, listing.conversations[0].0), (1, key(2)));
}

#[tokio::test]
async fn the_writer_sweeps_expired_conversations() {
    static NOW: AtomicU64 = AtomicU64::new(1);
    let directory = tempdir().unwrap();
    let clock = || NOW.load(Ordering::Relaxed);
    let store = EmbeddedStore::open_with_clock(directory.path(), HOUR, clock).unwrap();
    for number in 0..20 {
        store.journal(key(number), FIRST, journal("x")).await.unwrap();
        store.count(key(number), FIRST, turn(1)).await.unwrap();
    }
    assert_eq!(store.list(0, 50).await.unwrap().total, 20);
    NOW.fetch_add(3_600_000, Ordering::Relaxed);
    assert_eq!(store.list(0, 50).await.unwrap(), Listing::default());
    let deadline = Instant::now() + Duration::from_secs(10);
    while rows(&store) > 0 {
        assert!(Instant::now() < deadline, "{} rows are left", rows(&store));
        store.probe().await.unwrap();
    }
}

#[tokio::test]
async fn a_clock_set_back_does_not_shorten_the_time_to_live() {
    static NOW: AtomicU64 = AtomicU64::new(10_000_000);
    let directory: TempDir = tempdir().unwrap();
    let clock = || NOW.load(Ordering::Relaxed);
    let store = EmbeddedStore::open_with_clock(directory.path(), HOUR, clock).unwrap();
    store.journal(key(1), FIRST, journal("x")).await.unwrap();
    NOW.store(1, Ordering::Relaxed);
    store.journal(key(1), FIRST, journal("y")).await.unwrap();
    NOW.store(10_000_000 + 3_599_999, Ordering::Relaxed);
    assert_eq!(store.recall(key(1)).await.unwrap().waypoints, ["x", "y"]);
    NOW.fetch_add(1, Ordering::Relaxed);
    assert_eq!(store.recall(key(1)).await.unwrap().waypoints, Vec::<Bytes>::new());
}

pub(super) fn key(number: u8) -> ConversationKey {
    ConversationKey([number; 16])
}

pub(super) fn journal(waypoint: &str) -> Journal {
    let messages = (0..10).map(|number| (MessageId([number; 32]), "message".into())).collect();
    Journal { messages, waypoint: Some(waypoint.to_owned().into()) }
}

pub(super) fn turn(number: u8) -> Turn {
    Turn {
        id: [number; 16],
        end: Some(MessageId([number; 32])),
        at: 1_000,
        record: "turn".into(),
        counts: vec![("tokens", 1)],
        labels: Vec::new(),
    }
}

/// The number of rows in all tables of conversations.
pub(super) fn rows_in(database: &Database) -> u64 {
    let transaction = database.begin_read().unwrap();
    [WAYPOINT, FOLD, LOG, LOG_HEAD, UNDELIVERED, PIN, MESSAGE, TURN, END, HEAD, TOUCHED, BY_LAST, BY_TOUCHED]
        .into_iter()
        .map(|table| transaction.open_table(table).unwrap().len().unwrap())
        .sum()
}

fn rows(store: &EmbeddedStore) -> u64 {
    store.file.with(|database| Ok(rows_in(database))).unwrap()
}

fn database_path(directory: &Path) -> std::path::PathBuf {
    directory.join("conversations.redb")
}

fn edit_database(directory: &Path, change: impl FnOnce(&redb::WriteTransaction)) {
    let database = Database::open(database_path(directory)).unwrap();
    let transaction = database.begin_write().unwrap();
    change(&transaction);
    transaction.commit().unwrap();
}
