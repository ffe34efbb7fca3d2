//! Encrypted or not, and with whom.

use super::*;
use crate::log::Log;

/// Whether our connection is encrypted, as the server sees it.
async fn is_encrypted(server: &PostgresServer) -> bool {
    let sql =
        "select ssl from pg_stat_ssl join pg_stat_activity using (pid) where application_name = 'tidegate'";
    match server.psql(sql).await.as_str() {
        "t" => true,
        "f" => false,
        other => panic!("there is not one connection: {other:?}"),
    }
}

async fn connected(url: &str) -> Archive {
    let archive = open(url);
    until("it connects", async || archive.stats().connected).await;
    archive
}

#[tokio::test]
async fn any_certificate_is_taken_where_the_url_asks_for_encryption_alone() {
    let server = PostgresServer::with_tls(&[]).await;
    for (mode, expected) in [("?sslmode=require", true), ("", true), ("?sslmode=disable", false)] {
        let archive = connected(&format!("{}{mode}", server.url())).await;
        assert_eq!(is_encrypted(&server).await, expected, "{mode}");
        record(&archive, 0..3);
        assert_eq!(archive.close(Duration::from_secs(30)).await, 0);
        let gone = "select count(*) from pg_stat_activity where application_name = 'tidegate'";
        until("it is gone", async || server.psql(gone).await == "0").await;
    }
    assert_eq!(turns(&server).await, (3, 3));
}

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_refused_where_the_url_asks_who_it_is() {
    let server = PostgresServer::with_tls(&[]).await;
    // A stranger's certificate, so that the test needs no authority that the system trusts.
    let stranger = PostgresServer::with_tls(&[]).await;
    let log = Log::listen();
    let url = |ca: &PostgresServer| {
        format!("{}?sslmode=verify-full&sslrootcert={}", server.url(), ca.certificate().display())
    };
    let refused = open(&url(&stranger));
    record(&refused, 0..3);
    until("it is refused", async || refused.stats().error == Some("archive_unreachable")).await;
    assert_eq!((refused.stats().queued, refused.stats().connected), (3, false));
    let text = log.text();
    assert!(text.contains("invalid peer certificate"), "{text}");
    assert!(!text.contains(server.password()), "{text}");

    let archive = connected(&url(&server)).await;
    assert!(is_encrypted(&server).await);
    record(&archive, 0..3);
    settled(&archive).await;
    assert_eq!(turns(&server).await, (3, 3));
}

#[tokio::test]
async fn a_certificate_in_another_name_is_refused() {
    let server = PostgresServer::with_tls(&["listen_addresses = '127.0.0.1,127.0.0.2'"]).await;
    let log = Log::listen();
    let (port, password, ca) = (server.port(), server.password(), server.certificate());
    let rest = format!("/postgres?sslmode=verify-full&sslrootcert={}", ca.display());
    let archive = open(&format!("postgres://postgres:{password}@127.0.0.2:{port}{rest}"));
    until("it is refused", async || archive.stats().error == Some("archive_unreachable")).await;
    assert!(log.text().contains("certificate not valid for name"), "{}", log.text());
    let by_name = connected(&format!("postgres://postgres:{password}@localhost:{port}{rest}")).await;
    assert!(by_name.stats().connected && !archive.stats().connected);
}

#[tokio::test]
async fn a_server_without_tls_is_used_only_where_the_url_allows_it() {
    let server = PostgresServer::start().await;
    let refused = open(&format!("{}?sslmode=require", server.url()));
    until("it is refused", async || refused.stats().error == Some("archive_unreachable")).await;
    assert!(!refused.stats().connected);
    connected(&format!("{}?sslmode=prefer", server.url())).await;
}
