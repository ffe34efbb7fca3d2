//! Chunked bodies whose end two parsers could see in different places.

use crate::support::client::{CHAT, Client, exchange, get};
use crate::support::reply::End;
use crate::support::tidegate::Tidegate;
use tidegate_testkit::{Arrival, MockUpstream, Recorded};

const SMUGGLED: &str = "POST /v1/smuggled HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n";

const TRICKS: &[(&str, &str)] = &[
    ("no size", "\r\nabc\r\n0\r\n\r\n"),
    ("a size that is not a number", "xyz\r\nabc\r\n0\r\n\r\n"),
    ("a size with a prefix", "0x3\r\nabc\r\n0\r\n\r\n"),
    ("a signed size", "+3\r\nabc\r\n0\r\n\r\n"),
    ("a negative size", "-3\r\nabc\r\n0\r\n\r\n"),
    ("a space before the size", " 3\r\nabc\r\n0\r\n\r\n"),
    ("a space after the size", "3 \r\nabc\r\n0\r\n\r\n"),
    ("an underscore", "0_3\r\nabc\r\n0\r\n\r\n"),
    ("a size that overflows", "fffffffffffffffff3\r\nabc\r\n0\r\n\r\n"),
    ("a size that ends in LF", "3\nabc\r\n0\r\n\r\n"),
    ("a size that ends in CR", "3\rabc\r\n0\r\n\r\n"),
    ("an extension with an LF", "3;a\nb\r\nabc\r\n0\r\n\r\n"),
    ("data that is longer than its size", "3\r\nabcd\r\n0\r\n\r\n"),
    ("data that ends in LF", "3\r\nabc\n0\r\n\r\n"),
    ("a trailer with an LF", "3\r\nabc\r\n0\r\nx: y\n\r\n"),
    ("a folded trailer", "3\r\nabc\r\n0\r\nx: y\r\n z\r\n\r\n"),
    ("an end in LF", "3\r\nabc\r\n0\r\n\n"),
];

fn head(path: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n")
}

#[tokio::test]
async fn a_chat_completion_with_ambiguous_chunks_is_refused() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    for (what, body) in TRICKS {
        let mut client = Client::connect(tidegate.address).await;
        client.send(head(CHAT) + body + SMUGGLED).await;
        let answer = String::from_utf8(client.until_closed().await).unwrap();
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400"), "{what}: {answer}");
        assert_eq!(upstream.received_bytes(), 0, "{what}: {:?}", upstream.requests());
    }
}

#[tokio::test]
async fn an_upload_with_ambiguous_chunks_never_completes_upstream() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    for (what, body) in TRICKS {
        let mut client = Client::connect(tidegate.address).await;
        let before = upstream.received_bytes();
        client.send(head("/v1/files")).await;
        // Sent only now, so that the call to the upstream has started.
        upstream.until_received_bytes(before + 1).await;
        client.send(body.to_string() + SMUGGLED).await;
        let answer = String::from_utf8(client.until_closed().await).unwrap();
        assert!(!answer.contains("HTTP/1.1 2"), "{what}: {answer}");
    }
    // The beginning reached the upstream, because it is forwarded as it arrives. An end or a second request never did.
    upstream.until_released().await;
    assert_eq!(upstream.requests().len(), TRICKS.len());
    for request in upstream.requests() {
        assert_eq!((request.target.as_str(), request.arrival), ("/v1/files", Arrival::Partial));
    }
}

#[tokio::test]
async fn the_client_and_the_log_get_the_reason() {
    let upstream = MockUpstream::start().await;
    let mut tidegate = Tidegate::start("", &upstream).await;
    let mut lines = 0;
    for path in [CHAT, "/v1/files"] {
        for (what, body) in TRICKS {
            let mut client = Client::connect(tidegate.address).await;
            client.send(head(path) + body + SMUGGLED).await;
            let answer = String::from_utf8(client.until_closed().await).unwrap();
            assert!(
                answer.starts_with("HTTP/1.1 400") && answer.contains("malformed_request"),
                "{path}, {what}: {answer:?}"
            );
            assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{path}, {what}: {answer:?}");
            lines += 1;
            assert_eq!(tidegate.access_log(lines).await[lines - 1]["status"], 400, "{path}, {what}");
        }
    }
}

#[tokio::test]
async fn broken_upload_framing_is_the_clients_fault() {
    let upstream = MockUpstream::start().await;
    let mut tidegate = Tidegate::start("", &upstream).await;
    let mut client = Client::connect(tidegate.address).await;
    client.send(head("/v1/files") + "3\r\nabc\r\n").await;
    upstream.until_received_bytes(1).await;
    client.send("xyz\r\n").await;
    let reply = client.reply().await;
    assert_eq!((reply.status, reply.error_code().as_str()), (400, "malformed_request"));
    assert_eq!(tidegate.access_log(1).await[0]["reason"], "malformed_request");
    assert!(!tidegate.output().contains("WARN"), "the upstream is not at fault: {}", tidegate.output());
}

/// Sending the rest of it again on a new connection would turn a broken upload into a complete, empty one.
#[tokio::test]
async fn a_broken_upload_is_never_sent_again() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("[server]\nworkers = 1\n", &upstream).await;
    for _ in 0..3 {
        // Leaves a connection to the upstream open.
        assert_eq!(exchange(tidegate.address, get("/v1/models")).await.status, 200);
        let mut client = Client::connect(tidegate.address).await;
        client.send(head("/v1/files") + "ZZ\r\n").await;
        let reply = client.reply().await;
        assert_eq!((reply.status, reply.error_code().as_str()), (400, "malformed_request"));
    }
    let complete = |request: &Recorded| request.arrival == Arrival::Complete;
    let complete: Vec<String> =
        upstream.requests().into_iter().filter(complete).map(|request| request.target).collect();
    assert_eq!(complete, ["/v1/models"; 3]);
}

#[tokio::test]
async fn unbounded_framing_is_refused() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    let extension = format!("3;{}\r\nabc\r\n0\r\n\r\n", "x".repeat(40_000));
    let trailers = format!("3\r\nabc\r\n0\r\n{}\r\n", "x-y: z\r\n".repeat(5_000));
    for body in [extension, trailers] {
        let mut client = Client::connect(tidegate.address).await;
        client.send(head(CHAT) + &body).await;
        let answer = String::from_utf8(client.until_closed().await).unwrap();
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400"), "{answer}");
    }
    assert_eq!(upstream.received_bytes(), 0);
}

#[tokio::test]
async fn valid_chunks_pass() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    for body in [
        "3\r\nabc\r\n0\r\n\r\n",
        "0003;a=\"b\"\r\nabc\r\n000\r\nx: y\r\n\r\n",
        "1\r\na\r\n2;x\r\nbc\r\n0\r\n\r\n",
    ] {
        let mut client = Client::connect(tidegate.address).await;
        client.send(head("/v1/files") + body).await;
        assert_eq!(client.reply().await.end, End::Complete);
        let arrived = upstream.next_request().await;
        assert_eq!((arrived.body.as_slice(), arrived.arrival), (b"abc".as_slice(), Arrival::Complete));
    }
}
