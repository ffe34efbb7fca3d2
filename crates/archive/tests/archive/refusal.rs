//! Archives that cannot be opened or logged in to, and what is said about that.

use super::*;
use crate::log::Log;
use tidegate_archive::ArchiveError;

#[tokio::test]
async fn a_wrong_password_is_said_and_never_which() {
    let server = PostgresServer::start().await;
    let log = Log::listen();
    let archive = open(&server.url_as("postgres", "hunter2"));
    record(&archive, 0..5);
    until("it is refused", async || archive.stats().error == Some("archive_denied")).await;
    let stats = archive.stats();
    assert_eq!((stats.queued, stats.dropped, stats.connected), (5, 0, false));
    // From the next attempt on, it is right.
    server.psql("alter role postgres password 'hunter2'").await;
    settled(&archive).await;
    let text = log.text();
    assert!(text.contains("password authentication failed for user"), "{text}");
    assert!(text.contains(&format!("127.0.0.1:{}", server.port())), "{text}");
    assert!(text.contains("is written to again"), "{text}");
    assert!(!text.contains("hunter2") && !format!("{archive:?}").contains("hunter2"), "{text}");
}

#[tokio::test]
async fn a_database_that_is_not_there_is_named() {
    let server = PostgresServer::start().await;
    let log = Log::listen();
    let archive = open(&format!("{}2", server.url()));
    until("it is refused", async || archive.stats().error == Some("archive_schema")).await;
    let text = log.text();
    assert!(text.contains("postgres2") && !text.contains(server.password()), "{text}");
}

#[tokio::test]
async fn a_url_that_cannot_be_one_is_refused_at_once() {
    let error = Archive::open("postgres://u:hunter2@db:none/x", ArchiveOptions::default()).unwrap_err();
    assert!(matches!(error, ArchiveError::Url(_)), "{error}");
    let text = error.to_string();
    assert!(text.starts_with("the archive's URL has a value for `port`"), "{text}");
    assert!(text.contains("hint:") && !text.contains("hunter2"), "{text}");
    let error =
        Archive::open("postgres://u@db/x?sslmode=verify-full&sslrootcert=/none", ArchiveOptions::default());
    let text = error.unwrap_err().to_string();
    assert!(text.contains("`/none` cannot be used"), "{text}");
}

#[test]
fn it_is_opened_on_a_runtime() {
    let error = Archive::open("postgres://u@db/x", ArchiveOptions::default()).unwrap_err();
    assert_eq!((&error, error.reason()), (&ArchiveError::NoRuntime, "archive_misconfigured"));
}
