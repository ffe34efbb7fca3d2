//! What an archive's user must be allowed to do.

use super::*;

const GUEST: &str = "create role guest login password 'guest'";

/// With tables that somebody else has made.
async fn prepared() -> PostgresServer {
    let server = PostgresServer::start().await;
    let owner = open(&server.url());
    until("it connects", async || owner.stats().connected).await;
    assert_eq!(owner.close(Duration::from_secs(30)).await, 0);
    server.psql(GUEST).await;
    server
}

const INSERT: &str = "grant insert on agent_context_turns, session_summaries, turn_context_audit to guest";

#[tokio::test]
async fn the_right_to_insert_is_enough_where_the_tables_are_there() {
    let server = prepared().await;
    server.psql(INSERT).await;
    for more in ["select", "grant select on tidegate_schema to guest", "drop table tidegate_schema"] {
        server.psql(more).await;
        let archive = open(&server.url_as("guest", "guest"));
        // Some of them twice: to leave a row alone takes no right to read it.
        record(&archive, 0..5);
        record(&archive, 0..5);
        archive.record(ArchiveRecord::Summary(summary(1)));
        archive.record(ArchiveRecord::Audit(audit(1)));
        settled(&archive).await;
        let stats = archive.stats();
        assert_eq!((stats.written, stats.failed_batches, stats.error), (12, 0, None), "{more}");
    }
    assert_eq!(turns(&server).await, (5, 5));
}

#[tokio::test]
async fn records_wait_until_the_right_to_insert_is_given() {
    let server = prepared().await;
    let archive = open(&server.url_as("guest", "guest"));
    record(&archive, 0..5);
    until("it is refused", async || archive.stats().error == Some("archive_denied")).await;
    let stats = archive.stats();
    assert_eq!((stats.queued, stats.dropped, stats.connected), (5, 0, true));
    server.psql(INSERT).await;
    settled(&archive).await;
    assert_eq!(archive.stats().error, None);
    assert_eq!(turns(&server).await, (5, 5));
}

#[tokio::test]
async fn records_wait_until_somebody_makes_the_tables() {
    let server = PostgresServer::start().await;
    server.psql(GUEST).await;
    let archive = open(&server.url_as("guest", "guest"));
    record(&archive, 0..5);
    until("it is refused", async || archive.stats().error == Some("archive_denied")).await;
    assert!(!archive.stats().connected);
    server.psql("grant create on schema public to guest").await;
    settled(&archive).await;
    assert_eq!(turns(&server).await, (5, 5));
}
