//! The privileges that the archive's role needs.

use super::*;

const GUEST: &str = "create role guest login password 'guest'";

/// Starts a server whose tables belong to another role.
async fn with_tables_of_another_role() -> PostgresServer {
    let server = PostgresServer::start().await;
    let owner = open(&server.url());
    until("the archive connects", async || owner.stats().connected).await;
    assert_eq!(owner.close(Duration::from_secs(30)).await, 0);
    server.psql(GUEST).await;
    server
}

const INSERT: &str = "grant insert on agent_context_turns, session_summaries, turn_context_audit to guest";

#[tokio::test]
async fn insert_is_enough_once_the_tables_exist() {
    let server = with_tables_of_another_role().await;
    server.psql(INSERT).await;
    for more in ["select", "grant select on tidegate_schema to guest", "drop table tidegate_schema"] {
        server.psql(more).await;
        let archive = open(&server.url_as("guest", "guest"));
        // Twice: skipping existing rows must not require `SELECT`.
        record(&archive, 0..5);
        record(&archive, 0..5);
        archive.record(ArchiveRecord::Summary(summary(1)));
        archive.record(ArchiveRecord::Audit(audit(1)));
        drained(&archive).await;
        let stats = archive.stats();
        assert_eq!((stats.written, stats.failed_batches, stats.error), (12, 0, None), "{more}");
    }
    assert_eq!(turns(&server).await, (5, 5));
}

#[tokio::test]
async fn records_wait_until_insert_is_granted() {
    let server = with_tables_of_another_role().await;
    let archive = open(&server.url_as("guest", "guest"));
    record(&archive, 0..5);
    until("the archive reports the error", async || archive.stats().error == Some("archive_denied")).await;
    let stats = archive.stats();
    assert_eq!((stats.queued, stats.dropped, stats.connected), (5, 0, true));
    server.psql(INSERT).await;
    drained(&archive).await;
    assert_eq!(archive.stats().error, None);
    assert_eq!(turns(&server).await, (5, 5));
}

#[tokio::test]
async fn records_wait_until_the_tables_can_be_created() {
    let server = PostgresServer::start().await;
    server.psql(GUEST).await;
    let archive = open(&server.url_as("guest", "guest"));
    record(&archive, 0..5);
    until("the archive reports the error", async || archive.stats().error == Some("archive_denied")).await;
    assert!(!archive.stats().connected);
    server.psql("grant create on schema public to guest").await;
    drained(&archive).await;
    assert_eq!(turns(&server).await, (5, 5));
}
