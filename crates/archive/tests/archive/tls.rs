//! TLS and certificate verification.

use super::*;
use crate::log::Log;

/// Whether our connection is encrypted, according to the server.
async fn is_encrypted(server: &PostgresServer) -> bool {
    let sql =
        "select ssl from pg_stat_ssl join pg_stat_activity using (pid) where application_name = 'tidegate'";
    match server.psql(sql).await.as_str() {
        "t" => true,
        "f" => false,
        other => panic!("expected one connection, got {other:?}"),
    }
}

async fn connected(url: &str) -> Archive {
    let archive = open(url);
    until("the archive connects", async || archive.stats().connected).await;
    archive
}

#[tokio::test]
async fn require_and_prefer_accept_any_certificate() {
    let server = PostgresServer::with_tls(&[]).await;
    for (mode, expected) in [("?sslmode=require", true), ("", true), ("?sslmode=disable", false)] {
        let archive = connected(&format!("{}{mode}", server.url())).await;
        assert_eq!(is_encrypted(&server).await, expected, "{mode}");
        record(&archive, 0..3);
        assert_eq!(archive.close(Duration::from_secs(30)).await, 0);
        let open = "select count(*) from pg_stat_activity where application_name = 'tidegate'";
        until("the connection is closed", async || server.psql(open).await == "0").await;
    }
    assert_eq!(turns(&server).await, (3, 3));
}

#[tokio::test]
async fn verify_full_rejects_a_certificate_of_an_unknown_authority() {
    let server = PostgresServer::with_tls(&[]).await;
    // Trusting another server's certificate makes the test independent of the system's authorities.
    let other = PostgresServer::with_tls(&[]).await;
    let log = Log::capture();
    let url = |ca: &PostgresServer| {
        format!("{}?sslmode=verify-full&sslrootcert={}", server.url(), ca.certificate().display())
    };
    let refused = open(&url(&other));
    record(&refused, 0..3);
    until("the archive reports the error", async || refused.stats().error == Some("archive_unreachable"))
        .await;
    assert_eq!((refused.stats().queued, refused.stats().connected), (3, false));
    let text = log.text();
    assert!(text.contains("invalid peer certificate"), "{text}");
    assert!(!text.contains(server.password()), "{text}");

    let archive = connected(&url(&server)).await;
    assert!(is_encrypted(&server).await);
    record(&archive, 0..3);
    drained(&archive).await;
    assert_eq!(turns(&server).await, (3, 3));
}

#[tokio::test]
async fn verify_full_rejects_a_certificate_for_another_host() {
    let server = PostgresServer::with_tls(&["listen_addresses = '127.0.0.1,127.0.0.2'"]).await;
    let log = Log::capture();
    let (port, password, ca) = (server.port(), server.password(), server.certificate());
    let rest = format!("/postgres?sslmode=verify-full&sslrootcert={}", ca.display());
    let archive = open(&format!("postgres://postgres:{password}@127.0.0.2:{port}{rest}"));
    until("the archive reports the error", async || archive.stats().error == Some("archive_unreachable"))
        .await;
    assert!(log.text().contains("certificate not valid for name"), "{}", log.text());
    let by_name = connected(&format!("postgres://postgres:{password}@localhost:{port}{rest}")).await;
    assert!(by_name.stats().connected && !archive.stats().connected);
}

#[tokio::test]
async fn require_rejects_a_server_without_tls() {
    let server = PostgresServer::start().await;
    let refused = open(&format!("{}?sslmode=require", server.url()));
    until("the archive reports the error", async || refused.stats().error == Some("archive_unreachable"))
        .await;
    assert!(!refused.stats().connected);
    connected(&format!("{}?sslmode=prefer", server.url())).await;
}
