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

#[tokio::test]
async fn a_batch_whose_answer_was_lost_is_there_once() {
    let server = PostgresServer::start().await;
    let proxy = TcpProxy::start(([127, 0, 0, 1], server.port()).into()).await;
    let password = server.password();
    let archive = open(&format!("postgres://postgres:{password}@{}/postgres", proxy.address()));
    let mut next = 0;
    for _ in 0..10 {
        // Cut off somewhere between the first row and the last answer.
        let before = archive.stats().written;
        record(&archive, next..next + 700);
        next += 700;
        until("some of it is written", async || archive.stats().written > before).await;
        proxy.cut();
    }
    settled(&archive).await;
    let stats = archive.stats();
    assert_eq!((stats.written, stats.dropped, stats.rejected), (next, 0, 0));
    assert!(stats.failed_batches > 0, "{stats:?}");
    assert_eq!(turns(&server).await, (7000, 7000));
}
