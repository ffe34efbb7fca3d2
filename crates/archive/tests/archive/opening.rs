//! Archives that cannot be opened or logged in to.

use super::*;
use crate::log::Log;
use tidegate_archive::ArchiveError;

#[tokio::test]
async fn a_wrong_password_is_reported_but_not_logged() {
    let server = PostgresServer::start().await;
    let log = Log::capture();
    let archive = open(&server.url_as("postgres", "hunter2"));
    record(&archive, 0..5);
    until("the archive reports the error", async || archive.stats().error == Some("archive_denied")).await;
    let stats = archive.stats();
    assert_eq!((stats.queued, stats.dropped, stats.connected), (5, 0, false));
    // The next attempt succeeds.
    server.psql("alter role postgres password 'hunter2'").await;
    drained(&archive).await;
    let text = log.text();
    assert!(text.contains("password authentication failed for user"), "{text}");
    assert!(text.contains(&format!("127.0.0.1:{}", server.port())), "{text}");
    assert!(text.contains("archive available again"), "{text}");
    assert!(!text.contains("hunter2") && !format!("{archive:?}").contains("hunter2"), "{text}");
}

#[tokio::test]
async fn a_missing_database_is_named() {
    let server = PostgresServer::start().await;
    let log = Log::capture();
    let archive = open(&format!("{}2", server.url()));
    until("the archive reports the error", async || archive.stats().error == Some("archive_schema")).await;
    let text = log.text();
    assert!(text.contains("postgres2") && !text.contains(server.password()), "{text}");
}

#[tokio::test]
async fn an_invalid_url_is_rejected_at_once() {
    let error = Archive::open("postgres://u:hunter2@db:none/x", ArchiveOptions::default()).unwrap_err();
    assert!(matches!(error, ArchiveError::Url(_)), "{error}");
    let text = error.to_string();
    assert!(text.starts_with("the archive URL has an invalid `port`"), "{text}");
    assert!(text.contains("hint:") && !text.contains("hunter2"), "{text}");
    let error =
        Archive::open("postgres://u@db/x?sslmode=verify-full&sslrootcert=/none", ArchiveOptions::default());
    let text = error.unwrap_err().to_string();
    assert!(text.contains("cannot use `/none`"), "{text}");
}

#[test]
fn opening_requires_a_runtime() {
    let error = Archive::open("postgres://u@db/x", ArchiveOptions::default()).unwrap_err();
    assert_eq!((&error, error.reason()), (&ArchiveError::NoRuntime, "archive_misconfigured"));
}
