//! Closing an archive.

use super::*;
use std::time::Instant;

#[tokio::test]
async fn closing_writes_the_queue_and_drops_later_records() {
    let server = PostgresServer::start().await;
    let archive = open(&server.url());
    record(&archive, 0..2000);
    assert_eq!(archive.close(Duration::from_secs(30)).await, 0);
    assert_eq!(turns(&server).await, (2000, 2000));
    record(&archive, 2000..2003);
    let stats = archive.stats();
    assert_eq!((stats.written, stats.dropped, stats.connected), (2000, 3, false));
    assert_eq!(archive.clone().close(Duration::from_secs(30)).await, 0);
    let ours = "select count(*) from pg_stat_activity where application_name = 'tidegate'";
    until("no connection is left", async || server.psql(ours).await == "0").await;
}

#[tokio::test]
async fn closing_stops_at_its_deadline_and_returns_what_was_left() {
    let server = PostgresServer::start().await;
    let archive = open(&server.url());
    until("the archive connects", async || archive.stats().connected).await;
    server.freeze();
    record(&archive, 0..20);
    let begun = Instant::now();
    assert_eq!(archive.close(Duration::from_millis(300)).await, 20);
    let took = begun.elapsed();
    assert!((Duration::from_millis(300)..Duration::from_secs(5)).contains(&took), "{took:?}");
    assert_eq!((archive.stats().queued, archive.stats().dropped), (0, 20));
    server.thaw();
}

#[tokio::test]
async fn closing_an_empty_archive_does_not_wait_for_the_database() {
    let server = PostgresServer::start().await;
    server.kill();
    let archive = open(&server.url());
    let begun = Instant::now();
    assert_eq!(archive.close(Duration::from_secs(60)).await, 0);
    assert!(begun.elapsed() < Duration::from_secs(30));
}

#[tokio::test]
async fn dropping_the_last_handle_still_writes_the_queue() {
    let server = PostgresServer::start().await;
    let archive = open(&server.url());
    record(&archive, 0..50);
    drop(archive);
    let ours = "select count(*) from pg_stat_activity where application_name = 'tidegate'";
    let count = "select coalesce((select count(*) from agent_context_turns), 0)";
    until("the tables exist", async || {
        server.psql("select to_regclass('agent_context_turns') is not null").await == "t"
    })
    .await;
    until("everything is written", async || server.psql(count).await == "50").await;
    until("no connection is left", async || server.psql(ours).await == "0").await;
}
