//! A record is there once, however often it is written and by whom.

use super::*;
use tidegate_testkit::TcpProxy;

#[tokio::test]
async fn what_is_recorded_again_is_there_once() {
    let server = PostgresServer::start().await;
    let archive = open(&server.url());
    for _ in 0..3 {
        record(&archive, 0..100);
        archive.record(ArchiveRecord::Summary(summary(1)));
        archive.record(ArchiveRecord::Audit(audit(1)));
        settled(&archive).await;
    }
    assert_eq!((archive.stats().written, archive.stats().failed_batches), (306, 0));
    assert_eq!(turns(&server).await, (100, 100));
    let others = "select (select count(*) from session_summaries), (select count(*) from turn_context_audit)";
    assert_eq!(server.psql(others).await, "1|1");
}

#[tokio::test]
async fn two_that_write_the_same_in_another_order_do_not_stand_in_each_others_way() {
    let server = PostgresServer::start().await;
    let (one, other) = (open(&server.url()), open(&server.url()));
    for start in (0..4000).step_by(50) {
        record(&one, start..start + 50);
        (start..start + 50)
            .rev()
            .for_each(|number| other.record(ArchiveRecord::Turn(turn((number + 2000) % 4000))));
        tokio::task::yield_now().await;
    }
    settled(&one).await;
    settled(&other).await;
    for archive in [one, other] {
        let stats = archive.stats();
        assert_eq!((stats.written, stats.failed_batches, stats.dropped), (4000, 0, 0));
    }
    assert_eq!(turns(&server).await, (4000, 4000));
}

/// As seen through a proxy that can be cut off.
fn open_through(proxy: &TcpProxy, server: &PostgresServer) -> Archive {
    open(&format!("postgres://postgres:{}@{}/postgres", server.password(), proxy.address()))
}

#[tokio::test]
async fn connections_that_break_under_load_lose_nothing_and_repeat_nothing() {
    let server = PostgresServer::start().await;
    let proxy = TcpProxy::start(([127, 0, 0, 1], server.port()).into()).await;
    let archive = open_through(&proxy, &server);
    let mut next = 0;
    for _ in 0..10 {
        let before = archive.stats().written;
        record(&archive, next..next + 700);
        next += 700;
        until("some of it is written", async || archive.stats().written > before).await;
        proxy.cut();
    }
    settled(&archive).await;
    let stats = archive.stats();
    assert_eq!((stats.written, stats.dropped, stats.rejected), (next, 0, 0));
    assert_eq!(turns(&server).await, (7000, 7000));
}

#[tokio::test]
async fn a_batch_that_was_committed_and_whose_answer_was_lost_is_there_once() {
    let server = PostgresServer::start().await;
    let proxy = TcpProxy::start(([127, 0, 0, 1], server.port()).into()).await;
    let archive = open_through(&proxy, &server);
    until("it connects", async || archive.stats().connected).await;
    // A commit waits for whoever holds this lock.
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
        until("it commits", async || server.psql(commits).await == "1").await;
        proxy.pause();
    };
    tokio::select! {
        _ = lock => panic!("the lock was not held"),
        () = meanwhile => {}
    }
    server.psql("select pg_terminate_backend(pid) from pg_stat_activity where wait_event = 'PgSleep'").await;
    until("it is committed", async || turns(&server).await == (300, 300)).await;
    assert_eq!(archive.stats().written, 0);
    proxy.cut();
    // Only then: the answer that waits in the proxy must not come through after all.
    until("it has noticed", async || archive.stats().failed_batches == 1).await;
    proxy.resume();
    settled(&archive).await;
    assert_eq!((archive.stats().written, archive.stats().failed_batches), (300, 1));
    assert_eq!(turns(&server).await, (300, 300));
}
