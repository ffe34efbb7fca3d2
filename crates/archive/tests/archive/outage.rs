//! Databases that crash, stop or freeze, and come back.

use super::*;
use std::time::Instant;

#[tokio::test]
async fn killing_the_database_under_load_loses_nothing() {
    let server = PostgresServer::start().await;
    let archive = open(&server.url());
    let mut next = 0;
    for _ in 0..3 {
        let before = archive.stats().written;
        record(&archive, next..next + 1500);
        until("a batch is written", async || archive.stats().written > before).await;
        server.kill();
        record(&archive, next + 1500..next + 2000);
        next += 2000;
        until("the outage is noticed", async || !archive.stats().connected).await;
        server.restart().await;
    }
    drained(&archive).await;
    let stats = archive.stats();
    assert_eq!((stats.written, stats.dropped, stats.rejected), (next, 0, 0));
    assert_eq!((stats.connected, stats.error), (true, None));
    assert_eq!(turns(&server).await, (6000, 6000));
}

#[tokio::test]
async fn records_wait_for_a_database_that_starts_late() {
    let server = PostgresServer::start().await;
    server.kill();
    let archive = open(&server.url());
    record(&archive, 0..1000);
    until("it has retried", async || archive.stats().failed_batches > 1).await;
    let stats = archive.stats();
    assert_eq!((stats.queued, stats.connected, stats.error), (1000, false, Some("archive_unreachable")));
    server.restart().await;
    drained(&archive).await;
    assert_eq!(turns(&server).await, (1000, 1000));
}

#[tokio::test]
async fn an_idle_archive_notices_that_its_database_stops_and_returns() {
    let server = PostgresServer::start().await;
    let archive = open(&server.url());
    until("the archive connects", async || archive.stats().connected).await;
    server.stop().await;
    until("the outage is noticed", async || archive.stats().error == Some("archive_unreachable")).await;
    assert!(!archive.stats().connected);
    server.restart().await;
    until("the archive connects", async || archive.stats().connected).await;
    assert_eq!(archive.stats().error, None);
}

#[tokio::test]
async fn a_frozen_database_blocks_no_caller_and_gets_everything_after_it_thaws() {
    let server = PostgresServer::start().await;
    let archive = open_with_short_timeout(&server.url());
    record(&archive, 0..10);
    drained(&archive).await;
    server.freeze();
    let begun = Instant::now();
    record(&archive, 10..5000);
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(1), "{took:?}");
    until("a write times out", async || archive.stats().error == Some("archive_timeout")).await;
    assert_eq!((archive.stats().queued, archive.stats().dropped), (4990, 0));
    server.thaw();
    drained(&archive).await;
    assert_eq!((archive.stats().written, archive.stats().error), (5000, None));
    assert_eq!(turns(&server).await, (5000, 5000));
}

#[tokio::test]
async fn a_locked_table_leaks_no_connections() {
    let server = PostgresServer::start().await;
    let archive = open_with_short_timeout(&server.url());
    record(&archive, 0..1);
    drained(&archive).await;
    // Held until the session is terminated below.
    let lock = server.psql("begin; lock table agent_context_turns; select pg_sleep(3600)");
    let meanwhile = async {
        let held = "select count(*) from pg_locks where mode = 'AccessExclusiveLock' and granted \
                    and relation = 'agent_context_turns'::regclass";
        until("the table is locked", async || server.psql(held).await == "1").await;
        record(&archive, 1..200);
        until("a write times out", async || archive.stats().error == Some("archive_timeout")).await;
    };
    tokio::select! {
        _ = lock => panic!("the lock was not held"),
        () = meanwhile => {}
    }
    server.psql("select pg_terminate_backend(pid) from pg_stat_activity where wait_event = 'PgSleep'").await;
    drained(&archive).await;
    assert_eq!(turns(&server).await, (200, 200));
    // Every attempt that timed out has ended on the server too.
    let ours = "select count(*) from pg_stat_activity where application_name = 'tidegate'";
    until("one connection is left", async || server.psql(ours).await == "1").await;
}
