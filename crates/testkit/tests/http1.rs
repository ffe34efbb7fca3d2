//! The mock upstream on HTTP/1.1, seen from a raw socket.

#![allow(clippy::unwrap_used, reason = "a panic in a test is its failure message")]

use std::time::{Duration, Instant};

use tidegate_testkit::{Answer, Arrival, Ending, Gate, MockUpstream, Step, filler};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const GET: &[u8] = b"GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n";

async fn send(upstream: &MockUpstream, request: &[u8]) -> TcpStream {
    let mut client = TcpStream::connect(upstream.address()).await.unwrap();
    client.write_all(request).await.unwrap();
    client
}

/// Reads until the end of the connection.
async fn read_all(mut client: TcpStream) -> String {
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).await.unwrap();
    String::from_utf8(answer).unwrap()
}

async fn read_until(client: &mut TcpStream, end: &str) -> String {
    let mut answer = Vec::new();
    while !answer.ends_with(end.as_bytes()) {
        answer.push(client.read_u8().await.unwrap());
    }
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn a_request_is_recorded_byte_for_byte() {
    let upstream = MockUpstream::start().await;
    let head = b"POST /v1/embeddings?a=%2f HTTP/1.1\r\nhOsT: x\r\nX-Two:  b \r\nx-two: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let body = b"3;ext=1\r\nabc\r\n02\r\nde\r\n0\r\nX-Trailer: t\r\n\r\n";
    let _client = send(&upstream, &[head.as_slice(), body].concat()).await;

    let request = upstream.next_request().await;
    assert_eq!(request.raw_head, head);
    assert_eq!(request.raw_body, body);
    assert_eq!(request.body, b"abcde");
    assert_eq!(request.target, "/v1/embeddings?a=%2f");
    let headers: Vec<_> = request.headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    assert_eq!(headers, [("hOsT", "x"), ("X-Two", "b"), ("x-two", "a"), ("Transfer-Encoding", "chunked")]);
    assert_eq!(request.headers_named("X-TWO"), ["b", "a"]);
    assert_eq!(request.arrival, Arrival::Complete);
    assert_eq!(upstream.received_bytes(), (head.len() + body.len()) as u64);
}

#[tokio::test]
async fn a_truncated_request_is_recorded_as_partial() {
    let upstream = MockUpstream::start().await;
    drop(send(&upstream, b"POST / HTTP/1.1\r\ncontent-length: 10\r\n\r\nabc").await);
    let request = upstream.next_request().await;
    assert_eq!((request.body.as_slice(), request.arrival), (b"abc".as_slice(), Arrival::Partial));
}

#[tokio::test]
async fn answers_keep_their_order_headers_and_connection() {
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::new(204));
    upstream
        .then(Answer::json(418, "1").header("X-Odd", "a"))
        .then(Answer::new(200).chunk("ab").chunk("c").chunked());
    let mut client = send(&upstream, GET).await;
    let first = "HTTP/1.1 418 I'm a teapot\r\ncontent-type: application/json\r\nX-Odd: a\r\ncontent-length: 1\r\n\r\n1";
    assert_eq!(read_until(&mut client, "\r\n\r\n1").await, first);
    client.write_all(GET).await.unwrap();
    let second = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n";
    assert_eq!(read_until(&mut client, "0\r\n\r\n").await, second);
    client.write_all(GET).await.unwrap();
    assert_eq!(read_until(&mut client, "\r\n\r\n").await, "HTTP/1.1 204 No Content\r\n\r\n");
    assert_eq!((upstream.connections(), upstream.open_connections()), (1, 1));
    assert_eq!(upstream.requests().len(), 3);
    drop(client);
    upstream.until_open_connections(0).await;
}

#[tokio::test]
async fn pipelined_requests_are_both_answered() {
    let upstream = MockUpstream::start().await;
    upstream.then(Answer::new(200)).then(Answer::new(201).close_delimited().chunk("end"));
    let both = read_all(send(&upstream, &[GET, GET].concat()).await).await;
    assert!(
        both.starts_with("HTTP/1.1 200") && both.contains("HTTP/1.1 201") && both.ends_with("\r\n\r\nend")
    );
}

#[tokio::test]
async fn an_answer_can_be_cut_at_every_byte() {
    let upstream = MockUpstream::start().await;
    let answer = || Answer::new(200).chunked().chunk("abc").trailer("t", "1").header("connection", "close");
    upstream.then(answer());
    let whole = read_all(send(&upstream, GET).await).await;
    assert!(whole.ends_with("3\r\nabc\r\n0\r\nt: 1\r\n\r\n"), "{whole}");
    for length in 0..whole.len() {
        upstream.then(answer().cut_at(length as u64, Ending::Close));
        assert_eq!(read_all(send(&upstream, GET).await).await, whole[..length]);
    }
}

#[tokio::test]
async fn a_break_can_be_a_reset() {
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::new(200).declared_length(100).chunk("abc").break_off(Ending::Reset));
    let mut client = send(&upstream, GET).await;
    let error = client.read_to_end(&mut Vec::new()).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn a_truncated_body_keeps_its_declared_length() {
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::new(200).chunk("abc").chunk("def").break_after_body_bytes(4, Ending::Close));
    let broken = read_all(send(&upstream, GET).await).await;
    assert!(broken.contains("content-length: 6\r\n") && broken.ends_with("\r\n\r\nabcd"), "{broken}");
}

#[tokio::test]
async fn raw_bytes_replace_the_head() {
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::raw("HTTP/9 nonsense\n\n").pause(Duration::ZERO).step(Step::Raw("more".into())));
    assert_eq!(read_all(send(&upstream, GET).await).await, "HTTP/9 nonsense\n\nmore");
}

#[tokio::test]
async fn a_gate_holds_the_stream_until_it_opens() {
    let upstream = MockUpstream::start().await;
    let gate = Gate::new();
    upstream.answer(Answer::sse(["one"]).wait(&gate).event("two").header("connection", "close"));
    let mut client = send(&upstream, GET).await;
    assert!(read_until(&mut client, "\r\n\r\nb\r\ndata: one\n\n\r\n").await.starts_with("HTTP/1.1 200"));
    let nothing = client.try_read(&mut [0; 1]).unwrap_err();
    assert_eq!(nothing.kind(), std::io::ErrorKind::WouldBlock);
    gate.open();
    assert_eq!(read_all(client).await, "b\r\ndata: two\n\n\r\n0\r\n\r\n");
}

#[tokio::test]
async fn a_client_that_leaves_is_noticed_before_the_first_byte_and_in_the_stream() {
    let upstream = MockUpstream::start().await;
    upstream.then(Answer::new(200).stall()).then(Answer::sse(["one"]).stall());

    let client = send(&upstream, GET).await;
    upstream.next_request().await;
    let left = Instant::now();
    drop(client);
    assert!(upstream.disconnected().await >= left);

    let mut client = send(&upstream, GET).await;
    read_until(&mut client, "one\n\n\r\n").await;
    let left = Instant::now();
    drop(client);
    assert!(upstream.disconnected().await >= left);
    upstream.until_open_connections(0).await;
}

#[tokio::test]
async fn an_early_answer_does_not_wait_for_the_body() {
    let upstream = MockUpstream::start().await;
    upstream.then(Answer::json(413, "{}").before_body());
    let client = send(&upstream, b"POST / HTTP/1.1\r\ncontent-length: 1000000\r\n\r\nabc").await;
    assert!(read_all(client).await.starts_with("HTTP/1.1 413"));
    assert_eq!(upstream.next_request().await.arrival, Arrival::Partial);
}

#[tokio::test]
async fn expect_continue_is_answered() {
    let upstream = MockUpstream::start().await;
    let head = b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
    let mut client = send(&upstream, head).await;
    assert_eq!(read_until(&mut client, "\r\n\r\n").await, "HTTP/1.1 100 Continue\r\n\r\n");
    client.write_all(b"ab").await.unwrap();
    assert_eq!(upstream.next_request().await.body, b"ab");
}

#[tokio::test]
async fn filler_is_the_same_at_any_length() {
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::new(200).fill(200_000).close_delimited());
    let mut client = send(&upstream, GET).await;
    read_until(&mut client, "\r\n\r\n").await;
    let mut body = Vec::new();
    client.read_to_end(&mut body).await.unwrap();
    assert!(body == filler(200_000));
}

#[tokio::test]
async fn head_and_no_content_have_no_body() {
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::json(200, "{}").header("connection", "close"));
    let answer = read_all(send(&upstream, b"HEAD / HTTP/1.1\r\n\r\n").await).await;
    assert!(answer.contains("content-length: 2\r\n") && answer.ends_with("\r\n\r\n"), "{answer}");
}
