//! A record is stored once, however often it is written and by whichever replica.

use super::*;
use tidegate_testkit::TcpProxy;

#[tokio::test]
async fn a_record_written_again_is_stored_once() {
    let server = PostgresServer::start().await;
    let archive = open(&server.url());
    for _ in 0..3 {
        record(&archive, 0..100);
        archive.record(ArchiveRecord::Summary(summary(1)));
        archive.record(ArchiveRecord::Audit(audit(1)));
        drained(&archive).await;
    }
    assert_eq!((archive.stats().written, archive.stats().failed_batches), (306, 0));
    assert_eq!(turns(&server).await, (100, 100));
    let others = "select (select count(*) from session_summaries), (select count(*) from turn_context_audit)";
    assert_eq!(server.psql(others).await, "1|1");
}

#[tokio::test]
async fn two_archives_that_write_the_same_rows_in_different_orders_do_not_deadlock() {
    let server = PostgresServer::start().await;
    let (one, other) = (open(&server.url()), open(&server.url()));
    for start in (0..4000).step_by(50) {
        record(&one, start..start + 50);
        (start..start + 50)
            .rev()
            .for_each(|number| other.record(ArchiveRecord::Turn(turn((number + 2000) % 4000))));
        tokio::task::yield_now().await;
    }
    drained(&one).await;
    drained(&other).await;
    for archive in [one, other] {
        let stats = archive.stats();
        assert_eq!((stats.written, stats.failed_batches, stats.dropped), (4000, 0, 0));
    }
    assert_eq!(turns(&server).await, (4000, 4000));
}

/// Opens an archive through a proxy that can cut its connections.
fn open_through(proxy: &TcpProxy, server: &PostgresServer) -> Archive {
    open(&format!("postgres://postgres:{}@{}/postgres", server.password(), proxy.address()))
}

#[tokio::test]
async fn broken_connections_under_load_neither_lose_nor_duplicate_records() {
    let server = PostgresServer::start().await;
    let proxy = TcpProxy::start(([127, 0, 0, 1], server.port()).into()).await;
    let archive = open_through(&proxy, &server);
    let mut next = 0;
    for _ in 0..10 {
        let before = archive.stats().written;
        record(&archive, next..next + 700);
        next += 700;
        until("a batch is written", async || archive.stats().written > before).await;
        proxy.cut();
    }
    drained(&archive).await;
    let stats = archive.stats();
    assert_eq!((stats.written, stats.dropped, stats.rejected), (next, 0, 0));
    assert_eq!(turns(&server).await, (7000, 7000));
}

#[tokio::test]
async fn a_committed_batch_whose_acknowledgement_was_lost_is_stored_once() {
    let server = PostgresServer::start().await;
    let proxy = TcpProxy::start(([127, 0, 0, 1], server.port()).into()).await;
    let archive = open_through(&proxy, &server);
    until("the archive connects", async || archive.stats().connected).await;
    // A commit waits until nobody holds this lock.
    server
        .psql(
            "create function wait() returns trigger language plpgsql as \
             $$ begin perform pg_advisory_xact_lock_shared(5); return null; end $$; \
             create constraint trigger wait after insert on agent_context_turns \
             deferrable initially deferred for each row execute function wait()",
        )
        .await;
    let lock = server.psql("select pg_advisory_lock(5), pg_sleep(3600)");
    let meanwhile = async {
        let held = "select count(*) from pg_locks where locktype = 'advisory' and granted";
        until("the lock is held", async || server.psql(held).await == "1").await;
        record(&archive, 0..300);
        let commits = "select count(*) from pg_stat_activity where application_name = 'tidegate' \
                       and query = 'COMMIT' and wait_event = 'advisory'";
        until("the batch is being committed", async || server.psql(commits).await == "1").await;
        proxy.pause();
    };
    tokio::select! {
        _ = lock => panic!("the lock was not held"),
        () = meanwhile => {}
    }
    server.psql("select pg_terminate_backend(pid) from pg_stat_activity where wait_event = 'PgSleep'").await;
    until("the batch is committed", async || turns(&server).await == (300, 300)).await;
    assert_eq!(archive.stats().written, 0);
    proxy.cut();
    // Resume only then: the acknowledgement held by the proxy must not arrive after all.
    until("the archive notices", async || archive.stats().failed_batches == 1).await;
    proxy.resume();
    drained(&archive).await;
    assert_eq!((archive.stats().written, archive.stats().failed_batches), (300, 1));
    assert_eq!(turns(&server).await, (300, 300));
}
