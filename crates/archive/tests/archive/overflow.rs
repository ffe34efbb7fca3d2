//! A full queue.

use super::*;
use crate::log::Log;
use std::thread;

#[tokio::test]
async fn records_beyond_the_limit_are_dropped_and_counted() {
    let server = PostgresServer::start().await;
    server.kill();
    let log = Log::capture();
    let archive =
        Archive::open(&server.url(), ArchiveOptions { max_records: 100, ..ArchiveOptions::default() })
            .unwrap();
    record(&archive, 0..250);
    let stats = archive.stats();
    assert_eq!((stats.queued, stats.dropped), (100, 150));
    server.restart().await;
    drained(&archive).await;
    // The newest were dropped.
    assert_eq!(server.psql("select count(*), max(position) from agent_context_turns").await, "100|99");
    record(&archive, 250..350);
    drained(&archive).await;
    let stats = archive.stats();
    assert_eq!((stats.written, stats.dropped, stats.queued_bytes), (200, 150, 0));
    assert_eq!(turns(&server).await, (200, 200));
    for line in ["archive queue full", "archive queue no longer full"] {
        assert_eq!(log.text().matches(line).count(), 1, "{}", log.text());
    }
}

#[tokio::test]
async fn the_queue_is_limited_in_bytes() {
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
    // A small record still fits.
    record(&archive, 20..21);
    assert_eq!((archive.stats().queued, archive.stats().dropped), (10, 11));
    server.restart().await;
    drained(&archive).await;
    assert_eq!(server.psql("select count(*), sum(length(raw_message)) from agent_context_turns").await, {
        let small = turn(20).message.len();
        format!("10|{}", 9 * 100_002 + small)
    });
}

#[tokio::test]
async fn concurrent_records_are_all_counted() {
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
    drained(&archive).await;
    assert_eq!(turns(&server).await, (500, 500));
}
