//! Concurrent processes and runtimes.

use super::*;
use std::thread;
use tidegate_testkit::RedisServer;
use tokio::runtime::Builder;

/// Runs on its own runtime, as each worker of the proxy does.
fn on_own_runtime(work: impl Future<Output = ()> + Send + 'static) -> thread::JoinHandle<()> {
    thread::spawn(move || Builder::new_current_thread().enable_all().build().unwrap().block_on(work))
}

#[tokio::test]
async fn counts_are_exact_when_two_processes_write_the_same_and_different_turns() {
    let server = RedisServer::start().await;
    let work = |store: RedisStore, process: u8| async move {
        let mut tasks = JoinSet::new();
        for number in 0..32u8 {
            let store = store.clone();
            tasks.spawn(async move {
                // Both processes write this one, as after a retry that reached another replica.
                store.journal(key(1), Generation(0), journal(number)).await.unwrap();
                store.count(key(1), Generation(0), turn(number)).await.unwrap();
                // Only this process writes this one.
                let own = 100 + number + 32 * process;
                store.journal(key(1), Generation(0), journal(own)).await.unwrap();
                store.count(key(1), Generation(0), turn(own)).await.unwrap();
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
    };
    let url = server.url();
    let with_long_timeout = || RedisStore::open(&url, HOUR, Duration::from_secs(10)).unwrap();
    let workers =
        [on_own_runtime(work(with_long_timeout(), 0)), on_own_runtime(work(with_long_timeout(), 1))];
    for worker in workers {
        tokio::task::spawn_blocking(|| worker.join().unwrap()).await.unwrap();
    }
    let store = open(&server.url());
    let head = store.head(key(1)).await.unwrap().unwrap();
    let counts = ["requests", "turns", "tokens"].map(|name| head.counts[name]);
    assert_eq!(counts, [96, 96, 960]);
    assert_eq!(store.messages(key(1)).await.unwrap().len(), 96);
    assert_eq!(store.turns(key(1)).await.unwrap().len(), 96);
    assert_eq!((head.first, head.last), (turn(0).at, turn(163).at));
    assert_eq!(store.recall(key(1)).await.unwrap().waypoints.len(), tidegate_store::WAYPOINTS);
}

#[tokio::test]
async fn a_runtime_that_ends_does_not_break_connections_of_others() {
    let server = RedisServer::start().await;
    let store = open(&server.url());
    let clone = store.clone();
    let other = on_own_runtime(async move { clone.probe().await.unwrap() });
    tokio::task::spawn_blocking(|| other.join().unwrap()).await.unwrap();
    store.probe().await.unwrap();
    let clone = store.clone();
    let third = on_own_runtime(async move { clone.probe().await.unwrap() });
    tokio::task::spawn_blocking(|| third.join().unwrap()).await.unwrap();
    store.probe().await.unwrap();
}

#[tokio::test]
async fn requests_of_a_runtime_share_a_connection() {
    let server = RedisServer::start().await;
    let store = open(&server.url());
    let mut tasks = JoinSet::new();
    for number in 0..64 {
        let store = store.clone();
        tasks.spawn(async move { store.recall(key(number)).await.unwrap() });
    }
    tasks.join_all().await;
    let clients = server.cli(&["client", "list"]).await;
    assert_eq!(clients.lines().filter(|line| !line.contains("cmd=client")).count(), 1, "{clients}");
}
