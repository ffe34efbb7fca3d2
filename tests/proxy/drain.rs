//! SIGTERM: open requests finish, and new ones are refused.

use crate::support::client::{CHAT, Client, QUESTION, chat, exchange, get};
use crate::support::http2::{Http2Client, next_text, whole_text};
use crate::support::reply::{End, error_code};
use crate::support::tidegate::Tidegate;
use crate::support::within;
use rustix::process::Signal;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tidegate_testkit::{Answer, Gate, MockUpstream};
use tokio::net::TcpStream;

async fn until_refused(address: SocketAddr) {
    let refused = async { while TcpStream::connect(address).await.is_ok() {} };
    within("new connections are refused", refused).await;
}

#[tokio::test]
async fn open_streams_finish_and_new_connections_are_refused() {
    let upstream = MockUpstream::start().await;
    let gate = Gate::new();
    upstream.answer(Answer::sse(["1"]).wait(&gate).event("[DONE]"));
    let mut tidegate = Tidegate::start("", &upstream).await;
    assert_eq!(exchange(tidegate.admin, get("/readyz")).await.status, 200);
    let mut client = Client::connect(tidegate.address).await;
    client.send(chat()).await;
    let mut reply = client.head().await;
    let http2 = Http2Client::connect(tidegate.address).await;
    let mut stream = http2.send("POST", CHAT, QUESTION).await.unwrap();
    next_text(stream.body_mut()).await.unwrap();

    tidegate.signal(Signal::TERM);
    tidegate.logged_message("draining").await;
    assert_eq!(exchange(tidegate.admin, get("/readyz")).await.status, 503);
    assert_eq!(exchange(tidegate.admin, get("/healthz")).await.status, 200);
    until_refused(tidegate.address).await;

    gate.open();
    client.rest(&mut reply).await;
    assert_eq!((reply.text().as_str(), reply.end), ("data: 1\n\ndata: [DONE]\n\n", End::Complete));
    assert_eq!(whole_text(stream).await, "data: [DONE]\n\n");
    assert_eq!(tidegate.ended().await.code(), Some(0));
    assert_eq!(tidegate.access_log(2).await[1]["outcome"], "answered");
}

#[tokio::test]
async fn idle_connections_do_not_delay_shutdown() {
    let upstream = MockUpstream::start().await;
    let mut tidegate = Tidegate::start("", &upstream).await;
    let mut used = Client::connect(tidegate.address).await;
    used.send(get("/v1/models")).await;
    used.reply().await;
    let mut fresh = Client::connect(tidegate.address).await;
    let http2 = Http2Client::connect(tidegate.address).await;
    http2.send("GET", "/v1/models", "").await.unwrap();
    let started = Instant::now();
    tidegate.signal(Signal::TERM);
    assert_eq!(used.until_closed().await, b"");
    assert_eq!(fresh.until_closed().await, b"");
    assert_eq!(tidegate.ended().await.code(), Some(0));
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}

#[tokio::test]
async fn requests_over_the_drain_timeout_end_with_an_error() {
    let upstream = MockUpstream::start().await;
    let mut tidegate = Tidegate::start("[server]\ndrain_timeout = \"300ms\"\n", &upstream).await;
    upstream.then(Answer::sse(["1"]).stall()).then(Answer::new(200).stall());
    let mut streaming = Client::connect(tidegate.address).await;
    streaming.send(chat()).await;
    let mut stream = streaming.head().await;
    stream.body = streaming.piece(&mut stream).await.unwrap();
    let mut waiting = Client::connect(tidegate.address).await;
    waiting.send(chat()).await;
    upstream.next_request().await;
    upstream.next_request().await;

    tidegate.signal(Signal::TERM);
    streaming.rest(&mut stream).await;
    let text = stream.text();
    let event = text.strip_prefix("data: 1\n\ndata: ").and_then(|event| event.strip_suffix("\n\n"));
    assert_eq!(error_code(&serde_json::from_str(event.expect(&text)).unwrap()), "shutting_down");
    assert_eq!(stream.end, End::Complete);
    let reply = waiting.reply().await;
    assert_eq!((reply.status, reply.error_code().as_str()), (503, "shutting_down"));
    // The upstream has done nothing wrong.
    let log = tidegate.access_log(2).await;
    assert!(log.iter().all(|line| line["outcome"] == "refused"), "{log:?}");
    assert_eq!(tidegate.ended().await.code(), Some(0));
}

#[tokio::test]
async fn a_second_signal_ends_the_process_at_once() {
    for (first, second) in [(Signal::TERM, Signal::TERM), (Signal::INT, Signal::TERM)] {
        let upstream = MockUpstream::start().await;
        upstream.answer(Answer::sse(["1"]).stall());
        let mut tidegate = Tidegate::start("", &upstream).await;
        let mut client = Client::connect(tidegate.address).await;
        client.send(chat()).await;
        client.head().await;
        tidegate.signal(first);
        tidegate.logged_message("draining").await;
        let started = Instant::now();
        tidegate.signal(second);
        assert_eq!(tidegate.ended().await.code(), Some(0));
        assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    }
}
