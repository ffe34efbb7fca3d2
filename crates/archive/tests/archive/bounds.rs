//! A queue that is full.

use super::*;
use crate::log::Log;
use std::thread;

#[tokio::test]
async fn what_there_is_no_room_for_is_counted_and_the_rest_arrives() {
    let server = PostgresServer::start().await;
    server.kill();
    let log = Log::listen();
    let archive =
        Archive::open(&server.url(), ArchiveOptions { max_records: 100, ..ArchiveOptions::default() })
            .unwrap();
    record(&archive, 0..250);
    let stats = archive.stats();
    assert_eq!((stats.queued, stats.dropped), (100, 150));
    server.restart().await;
    settled(&archive).await;
    // The newest were refused.
    assert_eq!(server.psql("select count(*), max(position) from agent_context_turns").await, "100|99");
    record(&archive, 250..350);
    settled(&archive).await;
    let stats = archive.stats();
    assert_eq!((stats.written, stats.dropped, stats.queued_bytes), (200, 150, 0));
    assert_eq!(turns(&server).await, (200, 200));
    for line in ["the archive's queue is full", "there is room in the archive's queue again"] {
        assert_eq!(log.text().matches(line).count(), 1, "{}", log.text());
    }
}

#[tokio::test]
async fn large_records_fill_the_queue_sooner() {
    let server = PostgresServer::start().await;
    server.kill();
    let archive =
        Archive::open(&server.url(), ArchiveOptions { max_bytes: 1_000_000, ..ArchiveOptions::default() })
            .unwrap();
    for number in 0..20 {
        let message = format!("\"{}\"", "x".repeat(100_000));
        archive.record(ArchiveRecord::Turn(ArchivedTurn { message, ..turn(number) }));
    }
    let stats = archive.stats();
    assert_eq!((stats.queued, stats.dropped), (9, 11));
    assert!((900_000..1_000_000).contains(&stats.queued_bytes), "{stats:?}");
    // A small one still finds a place.
    record(&archive, 20..21);
    assert_eq!((archive.stats().queued, archive.stats().dropped), (10, 11));
    server.restart().await;
    settled(&archive).await;
    assert_eq!(server.psql("select count(*), sum(length(raw_message)) from agent_context_turns").await, {
        let small = turn(20).message.len();
        format!("10|{}", 9 * 100_002 + small)
    });
}

#[tokio::test]
async fn those_who_fill_it_together_are_all_counted() {
    let server = PostgresServer::start().await;
    server.kill();
    let archive =
        Archive::open(&server.url(), ArchiveOptions { max_records: 500, ..ArchiveOptions::default() })
            .unwrap();
    let workers: Vec<_> = (0..4)
        .map(|worker| {
            let archive = archive.clone();
            thread::spawn(move || record(&archive, worker * 1000..worker * 1000 + 1000))
        })
        .collect();
    workers.into_iter().for_each(|worker| worker.join().unwrap());
    let stats = archive.stats();
    assert_eq!((stats.queued, stats.dropped), (500, 3500));
    server.restart().await;
    settled(&archive).await;
    assert_eq!(turns(&server).await, (500, 500));
}
