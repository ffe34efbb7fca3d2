//! Unusual requests pass or are refused like any other request.

use crate::support::client::{CHAT, Client, QUESTION, exchange, get, post, request};
use crate::support::http2::Http2Client;
use crate::support::tidegate::Tidegate;
use std::time::Duration;
use tidegate_testkit::{Answer, MockUpstream};

#[tokio::test]
async fn more_than_a_hundred_headers_are_refused() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    let names: Vec<String> = (0..150).map(|number| format!("x-{number}")).collect();
    let headers: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "1")).collect();
    let reply = exchange(tidegate.address, post(CHAT, &headers, QUESTION)).await;
    assert_eq!(reply.status, 431, "{}", reply.text());
    assert!(reply.text().contains("request_head_too_large"), "{}", reply.text());
    assert!(upstream.requests().is_empty());
}

#[tokio::test]
async fn the_head_limit_is_configurable() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("[server]\nmax_header = \"2MiB\"\n", &upstream).await;
    let long = "x".repeat(1024 * 1024);
    let reply = exchange(tidegate.address, post(CHAT, &[("x-long", &long)], QUESTION)).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(upstream.next_request().await.header("x-long").map(str::len), Some(long.len()));
}

#[tokio::test]
async fn targets_that_are_not_uris_are_refused() {
    let upstream = MockUpstream::start().await;
    let mut tidegate = Tidegate::start("", &upstream).await;
    let targets = ["/v1/a<b>", "/v1/a`b", "/v1/a\u{1}b", "v1/models", "http://[/", "?x=1"];
    for (count, target) in targets.iter().enumerate() {
        let reply = exchange(tidegate.address, get(target)).await;
        assert_eq!(reply.status, 400, "{target}");
        assert!(["malformed_request", "invalid_path"].contains(&reply.error_code().as_str()), "{target}");
        assert_eq!(tidegate.access_log(count + 1).await[count]["status"], 400, "{target}");
    }
    assert_eq!(upstream.connections(), 0);
}

#[tokio::test]
async fn the_asterisk_target_passes() {
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::new(204).header("allow", "GET"));
    let tidegate = Tidegate::start("", &upstream).await;
    let reply = exchange(tidegate.address, request("OPTIONS", "*", &[], b"")).await;
    assert_eq!((reply.status, reply.header("allow")), (204, Some("GET")));
}

#[tokio::test]
async fn a_request_without_a_body_stays_without_one() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    let http2 = Http2Client::connect(tidegate.address).await;
    http2.send("GET", "/v1/models", "").await.unwrap();
    exchange(tidegate.address, get("/v1/models")).await;
    for _ in 0..2 {
        let arrived = upstream.next_request().await;
        assert_eq!((arrived.header("content-length"), arrived.header("transfer-encoding")), (None, None));
    }
}

#[tokio::test]
async fn empty_lines_before_a_request_are_ignored() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    let mut client = Client::connect(tidegate.address).await;
    for _ in 0..3 {
        client.send([b"\r\n".as_slice(), &get("/v1/models"), b"\r\n"].concat()).await;
        assert_eq!(client.reply().await.status, 200);
    }
}

/// Returns whether the upstream call ends when a client leaves after sending `more` behind its request.
async fn is_cancelled_after(more: &[u8]) -> bool {
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::new(200).stall());
    let tidegate = Tidegate::start("", &upstream).await;
    let mut client = Client::connect(tidegate.address).await;
    client.send([&post(CHAT, &[], QUESTION), more].concat()).await;
    upstream.next_request().await;
    drop(client);
    tokio::time::timeout(Duration::from_secs(1), upstream.disconnected()).await.is_ok()
}

#[tokio::test]
async fn leaving_after_a_trailing_line_break_ends_the_upstream_call() {
    assert!(is_cancelled_after(b"\r\n").await);
}

#[tokio::test]
async fn leaving_after_a_partial_next_request_ends_the_upstream_call() {
    assert!(is_cancelled_after(b"GET /v1/mod").await);
}
