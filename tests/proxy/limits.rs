//! Requests that are too large or too slow are refused before anything reaches the upstream.

use crate::support::client::{CHAT, Client, QUESTION, chat, exchange, get, post, request};
use crate::support::cores::quiet;
use crate::support::http2::Http2Client;
use crate::support::reply::Reply;
use crate::support::tidegate::Tidegate;
use std::time::Duration;
use tidegate_testkit::{Answer, Arrival, MockUpstream, filler};
use tokio::io::AsyncWriteExt;

const SMALL: &str = "[server]\nmax_body = \"64KiB\"\n";
const LIMIT: usize = 64 * 1024;

/// A chat completion request of exactly this many bytes, few of them in messages.
fn sized(bytes: usize) -> String {
    let frame = r#"{"model":"gpt-4o","padding":"","messages":[{"role":"user","content":"hi"}]}"#;
    frame.replace(r#""padding":"""#, &format!(r#""padding":"{}""#, "x".repeat(bytes - frame.len())))
}

/// Sends a request while reading the response, like a client that does not expect a refusal. The request need not be
/// sent completely.
async fn send_while_reading(tidegate: &Tidegate, bytes: Vec<u8>) -> Reply {
    let mut client = Client::connect(tidegate.address).await;
    let mut to = client.take_sender();
    let sending = tokio::spawn(async move { to.write_all(&bytes).await });
    let reply = client.reply().await;
    sending.abort();
    reply
}

#[tokio::test]
async fn a_head_over_the_limit_is_refused() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("[server]\nmax_header = \"16KiB\"\n", &upstream).await;
    let long = "x".repeat(17 * 1024);
    let many: Vec<(String, String)> = (0..500).map(|n| (format!("x-{n}"), "y".repeat(40))).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let cases = [
        request("GET", "/v1/models", &[("x-long", &long)], b""),
        get(&format!("/v1/{long}")),
        request("GET", "/v1/models", &many, b""),
        // It never ends, so that only the limit can stop it.
        format!("GET /v1/models HTTP/1.1\r\nhost: a\r\nx-open: {}", "x".repeat(200_000)).into_bytes(),
    ];
    for bytes in cases {
        let reply = send_while_reading(&tidegate, bytes).await;
        assert_eq!((reply.status, reply.error_code().as_str()), (431, "request_head_too_large"));
        assert_eq!(reply.header("connection"), Some("close"));
    }
    let fits = "x".repeat(15 * 1024);
    assert_eq!(
        exchange(tidegate.address, request("GET", "/v1/models", &[("x-long", &fits)], b"")).await.status,
        200
    );
    assert_eq!(upstream.requests().len(), 1);
}

#[tokio::test]
async fn a_declared_body_over_the_limit_is_refused() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start(SMALL, &upstream).await;
    // From just above the limit to more than the socket buffers can hold.
    for size in [LIMIT + 1, 4 * LIMIT, 20 * 1024 * 1024] {
        let reply = send_while_reading(&tidegate, post(CHAT, &[], sized(size))).await;
        assert_eq!((reply.status, reply.error_code().as_str()), (413, "request_too_large"), "{size}");
        assert!(reply.text().contains("65536"), "the message names the limit: {}", reply.text());
        assert_eq!(reply.header("connection"), Some("close"));
    }
    assert_eq!(upstream.connections(), 0);
}

#[tokio::test]
async fn a_chunked_body_over_the_limit_is_refused() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start(SMALL, &upstream).await;
    let chunk = format!("1000\r\n{}\r\n", "x".repeat(0x1000));
    let headers = [("transfer-encoding", "chunked")];
    for count in [17, 1000] {
        let body = chunk.repeat(count) + "0\r\n\r\n";
        let reply = send_while_reading(&tidegate, request("POST", CHAT, &headers, body.as_bytes())).await;
        assert_eq!((reply.status, reply.error_code().as_str()), (413, "request_too_large"), "{count} chunks");
    }
    assert_eq!(upstream.connections(), 0);
}

#[tokio::test]
async fn a_body_at_the_limit_passes() {
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::json(200, "{}"));
    let tidegate = Tidegate::start(SMALL, &upstream).await;
    let reply = exchange(tidegate.address, post(CHAT, &[], sized(LIMIT))).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(upstream.next_request().await.body, sized(LIMIT).as_bytes());
}

#[tokio::test]
async fn an_http2_body_over_the_limit_is_refused() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start(SMALL, &upstream).await;
    let client = Http2Client::connect(tidegate.address).await;
    let response = client.send("POST", CHAT, &sized(4 * LIMIT)).await.unwrap();
    assert_eq!(response.status(), 413);
    // Only that request ends, not the connection.
    assert_eq!(client.send("POST", CHAT, QUESTION).await.unwrap().status(), 200);
    assert_eq!(upstream.requests().len(), 1);
}

#[tokio::test]
async fn bodies_of_other_calls_have_no_limit() {
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::json(200, "{}"));
    let tidegate = Tidegate::start(SMALL, &upstream).await;
    let reply = exchange(tidegate.address, post("/v1/files", &[], filler(4 * LIMIT))).await;
    assert_eq!(reply.status, 200);
    assert!(upstream.next_request().await.body == filler(4 * LIMIT));
}

#[tokio::test]
async fn a_slow_head_is_refused() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("[server]\nheader_timeout = \"200ms\"\n", &upstream).await;
    for start in ["G", "POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\nx-sl"] {
        let reply = exchange(tidegate.address, start).await;
        assert_eq!((reply.status, reply.error_code().as_str()), (408, "request_timeout"), "{start:?}");
        assert_eq!(reply.header("connection"), Some("close"));
    }
    assert_eq!(upstream.connections(), 0);
}

#[tokio::test]
async fn a_trickling_head_is_refused() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("[server]\nheader_timeout = \"300ms\"\n", &upstream).await;
    let mut client = Client::connect(tidegate.address).await;
    client.send("GET /v1/models HTTP/1.1\r\nhost: a\r\nx-slow: ").await;
    // One byte at a time, without end: each would restart a timeout that only measures pauses.
    let mut to = client.take_sender();
    let trickle = tokio::spawn(async move {
        let mut ticks = tokio::time::interval(Duration::from_millis(50));
        while to.write_all(b"x").await.is_ok() {
            ticks.tick().await;
        }
    });
    assert_eq!(client.reply().await.status, 408);
    trickle.abort();
    assert_eq!(upstream.connections(), 0);
}

#[tokio::test]
async fn a_slow_body_is_refused() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("[server]\nbody_timeout = \"200ms\"\n", &upstream).await;
    let chunked = request("POST", CHAT, &[("transfer-encoding", "chunked")], b"5\r\nhello\r\n");
    let counted = post(CHAT, &[("content-length", "1000")], "{\"model\":");
    for start in [chunked, counted] {
        let reply = exchange(tidegate.address, start).await;
        assert_eq!((reply.status, reply.error_code().as_str()), (408, "request_timeout"));
        assert_eq!(reply.header("connection"), Some("close"));
    }
    assert_eq!(upstream.connections(), 0);
}

#[tokio::test]
async fn a_stalled_upload_ends_both_calls() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("[server]\nbody_timeout = \"200ms\"\n", &upstream).await;
    let mut client = Client::connect(tidegate.address).await;
    client.send(post("/v1/files", &[("content-length", "1000")], "the beginning")).await;
    let reply = client.reply().await;
    assert_eq!((reply.status, reply.error_code().as_str()), (408, "request_timeout"));
    assert_eq!(upstream.next_request().await.arrival, Arrival::Partial);
    upstream.until_released().await;
}

#[tokio::test]
async fn slow_but_steady_bodies_pass() {
    let _quiet = quiet().await;
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("[server]\nbody_timeout = \"400ms\"\n", &upstream).await;
    let mut client = Client::connect(tidegate.address).await;
    let (head, body) = (chat().len() - QUESTION.len(), chat());
    client.send(&body[..head]).await;
    let mut ticks = tokio::time::interval(Duration::from_millis(100));
    for piece in body[head..].chunks(QUESTION.len() / 7) {
        ticks.tick().await;
        client.send(piece).await;
    }
    assert_eq!(client.reply().await.status, 200);
    assert_eq!(upstream.next_request().await.body, QUESTION.as_bytes());
}
