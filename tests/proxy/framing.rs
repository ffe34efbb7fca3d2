//! Requests of ambiguous length are refused, and so is everything after them on the connection.

use crate::support::client::{CHAT, Client, QUESTION, chat, exchange, request};
use crate::support::tidegate::Tidegate;
use tidegate_testkit::{Answer, MockUpstream};

/// A request that an attacker hides in a body, for the next server to take it for a request.
const SMUGGLED: &str = "POST /v1/smuggled HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n";

/// Heads without their empty line, each with the reason to refuse it.
const AMBIGUOUS: &[(&str, &str)] = &[
    ("a length and a coding", "Content-Length: 6\r\nTransfer-Encoding: chunked"),
    ("a coding and a length", "Transfer-Encoding: chunked\r\nContent-Length: 6"),
    ("two lengths", "Content-Length: 6\r\nContent-Length: 7"),
    ("the same length twice", "Content-Length: 6\r\ncontent-length: 6"),
    ("a list of lengths", "Content-Length: 6, 6"),
    ("a signed length", "Content-Length: +6"),
    ("a negative length", "Content-Length: -6"),
    ("a hexadecimal length", "Content-Length: 0x6"),
    ("a length with a space inside", "Content-Length: 1 6"),
    ("an empty length", "Content-Length: "),
    ("a length that overflows", "Content-Length: 99999999999999999999999999"),
    ("a coding that is not chunked", "Transfer-Encoding: gzip"),
    ("a coding before chunked", "Transfer-Encoding: gzip, chunked"),
    ("a coding after chunked", "Transfer-Encoding: chunked, identity"),
    ("chunked twice", "Transfer-Encoding: chunked, chunked"),
    ("two codings", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity"),
    ("identity", "Transfer-Encoding: identity"),
    ("a misspelt coding", "Transfer-Encoding: xchunked"),
    ("a quoted coding", "Transfer-Encoding: \"chunked\""),
    ("a coding with a vertical tab", "Transfer-Encoding: \x0bchunked"),
    ("an empty coding", "Transfer-Encoding: "),
    ("a space before the colon", "Transfer-Encoding : chunked"),
    ("a length with a space before the colon", "Content-Length : 6"),
    ("a folded coding", "Transfer-Encoding:\r\n chunked"),
    ("a folded header", "X-Folded: a\r\n\tb\r\nContent-Length: 6"),
    ("a fold first", " Content-Length: 6"),
    ("a bare LF", "X-A: b\nTransfer-Encoding: chunked"),
    ("a bare CR", "X-A: b\rTransfer-Encoding: chunked"),
    ("a NUL", "X-A: b\0\r\nContent-Length: 6"),
    ("no colon", "Content-Length 6"),
    ("no name", ": 6"),
    ("a name with a strange character", "Content(Length: 6"),
    ("a second host", "Host: b\r\nContent-Length: 6"),
];

async fn assert_refused(tidegate: &Tidegate, upstream: &MockUpstream, what: &str, bytes: &[u8]) {
    let mut client = Client::connect(tidegate.address).await;
    client.send(bytes).await;
    let reply = client.reply().await;
    assert_eq!((reply.status, reply.error_code().as_str()), (400, "malformed_request"), "{what}");
    assert_eq!(reply.header("connection"), Some("close"), "{what}");
    assert_eq!(client.until_closed().await, b"", "{what}: the rest of the connection was answered");
    assert_eq!(upstream.received_bytes(), 0, "{what}: {:?}", upstream.requests());
}

#[tokio::test]
async fn ambiguous_heads_are_refused() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    for path in [CHAT, "/v1/embeddings"] {
        for (what, lines) in AMBIGUOUS {
            let head = format!("POST {path} HTTP/1.1\r\nHost: a\r\n{lines}\r\n\r\n");
            assert_refused(&tidegate, &upstream, what, (head + "0\r\n\r\n" + SMUGGLED).as_bytes()).await;
        }
    }
}

#[tokio::test]
async fn malformed_request_lines_are_refused() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    for line in [
        "POST  /v1/chat/completions HTTP/1.1",
        "POST /v1/chat/completions",
        "POST /v1/chat/completions HTTP/1.1 ",
        "POST /v1/chat/completions HTTP/1.2",
        "POST /v1/chat/completions HTTP/2.0",
        "POST /v1/chat/completions http/1.1",
        "POST /v1/chat completions HTTP/1.1",
        "PO\tST /v1/chat/completions HTTP/1.1",
        " POST /v1/chat/completions HTTP/1.1",
    ] {
        let bytes = format!("{line}\r\nhost: a\r\ncontent-length: 0\r\n\r\n{SMUGGLED}");
        assert_refused(&tidegate, &upstream, line, bytes.as_bytes()).await;
    }
}

#[tokio::test]
async fn a_request_without_a_host_is_refused() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    let bytes = format!("GET /v1/models HTTP/1.1\r\n\r\n{SMUGGLED}");
    assert_refused(&tidegate, &upstream, "no host", bytes.as_bytes()).await;
}

#[tokio::test]
async fn http_1_0_with_chunks_is_refused() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    let bytes =
        format!("POST {CHAT} HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{SMUGGLED}");
    assert_refused(&tidegate, &upstream, "HTTP/1.0 with chunks", bytes.as_bytes()).await;
}

#[tokio::test]
async fn http_1_0_is_answered_and_closed() {
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::chat_stream(["a", "b"]));
    let tidegate = Tidegate::start("", &upstream).await;
    let mut client = Client::connect(tidegate.address).await;
    client
        .send(format!("POST {CHAT} HTTP/1.0\r\ncontent-length: {}\r\n\r\n{QUESTION}", QUESTION.len()))
        .await;
    let answer = String::from_utf8(client.until_closed().await).unwrap();
    assert!(
        answer.starts_with("HTTP/1.0 200 OK\r\n") || answer.starts_with("HTTP/1.1 200 OK\r\n"),
        "{answer}"
    );
    assert!(answer.ends_with("data: [DONE]\n\n") && !answer.to_lowercase().contains("chunked"), "{answer}");
}

#[tokio::test]
async fn a_valid_request_before_an_ambiguous_one_is_answered() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    let mut client = Client::connect(tidegate.address).await;
    let ambiguous = format!(
        "POST {CHAT} HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\ncontent-length: 0\r\n\r\n{SMUGGLED}"
    );
    client.send([chat(), ambiguous.into_bytes()].concat()).await;
    assert_eq!(client.reply().await.status, 200);
    assert_eq!(client.reply().await.status, 400);
    assert_eq!(client.until_closed().await, b"");
    assert_eq!(upstream.requests().len(), 1);
}

#[tokio::test]
async fn a_body_that_looks_like_a_request_is_a_body() {
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::json(200, "{}"));
    let tidegate = Tidegate::start("", &upstream).await;
    let length = SMUGGLED.len();
    for path in [CHAT, "/v1/embeddings"] {
        let bytes = format!("POST {path} HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n{SMUGGLED}");
        assert_eq!(exchange(tidegate.address, bytes).await.status, 200);
        assert_eq!(upstream.next_request().await.body, SMUGGLED.as_bytes());
    }
    assert_eq!(upstream.requests().len(), 2);
}

#[tokio::test]
async fn an_unread_body_is_not_parsed_as_a_request() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    let length = SMUGGLED.len();
    // Refused before its body is read: the body must not be parsed as a request.
    let refused = format!("POST /v1/../x HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n{SMUGGLED}");
    let mut client = Client::connect(tidegate.address).await;
    let last = request("GET", "/v1/models", &[("connection", "close")], b"");
    client.send([refused.as_bytes(), &last].concat()).await;
    assert_eq!(client.reply().await.status, 400);
    client.until_closed().await;
    assert!(
        upstream.requests().iter().all(|request| request.target == "/v1/models"),
        "{:?}",
        upstream.requests()
    );
}

#[tokio::test]
async fn a_client_may_use_the_method_name_refused() {
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::json(200, "{}"));
    let tidegate = Tidegate::start("", &upstream).await;
    let bytes = "REFUSED / HTTP/1.1\r\nhost: refused\r\nconnection: close\r\n\r\n";
    assert_eq!(exchange(tidegate.address, bytes).await.status, 200);
    assert_eq!(upstream.next_request().await.method, "REFUSED");
}
