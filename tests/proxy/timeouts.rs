//! An upstream that is unreachable or too slow.

use crate::support::client::{CHAT, Client, QUESTION, chat, exchange, get, post, request};
use crate::support::cores::quiet;
use crate::support::http2::{Http2Client, whole_text};
use crate::support::reply::{End, error_code};
use crate::support::tidegate::{Setup, Tidegate};
use std::time::{Duration, Instant};
use tidegate_testkit::{Answer, Gate, MockUpstream, TcpProxy, Unreachable};

#[tokio::test]
async fn a_refused_connection_is_upstream_unreachable() {
    let upstream = MockUpstream::start_http1().await;
    let proxy = TcpProxy::start(upstream.address()).await;
    let tidegate = Setup::new("").upstream(&proxy.url()).start().await;
    proxy.refuse().await;
    for request in [chat(), get("/v1/models")] {
        let reply = exchange(tidegate.address, request).await;
        assert_eq!((reply.status, reply.error_code().as_str()), (502, "upstream_unreachable"));
        let port = proxy.address().port().to_string();
        assert!(
            !reply.text().contains(&port),
            "the response reveals the upstream's address: {}",
            reply.text()
        );
    }
    proxy.accept();
    assert_eq!(exchange(tidegate.address, chat()).await.status, 200);
}

#[tokio::test]
async fn a_connect_timeout_is_upstream_unreachable() {
    let nowhere = Unreachable::start();
    let config = "[upstreams.default]\nconnect_timeout = \"200ms\"\n";
    let tidegate = Setup::new(config).upstream(&nowhere.url()).start().await;
    // One that takes less than the default of five seconds shows that ours counts. A busy machine may need another try.
    for tries_left in (0..10).rev() {
        let started = Instant::now();
        let reply = exchange(tidegate.address, get("/v1/models")).await;
        assert_eq!((reply.status, reply.error_code().as_str()), (502, "upstream_unreachable"));
        if started.elapsed() < Duration::from_secs(4) {
            return;
        }
        assert!(tries_left > 0, "{:?}", started.elapsed());
    }
}

#[tokio::test]
async fn an_unknown_host_is_unreachable() {
    let tidegate = Setup::new("").upstream("http://nobody.invalid:1").start().await;
    let reply = exchange(tidegate.address, chat()).await;
    assert_eq!((reply.status, reply.error_code().as_str()), (502, "upstream_unreachable"));
}

/// Longer than a busy machine takes to connect.
const FIRST_BYTE_TIMEOUT: &str = "[upstreams.default]\nfirst_byte_timeout = \"2s\"\n";

#[tokio::test]
async fn a_missing_first_byte_is_upstream_timeout() {
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::new(200).stall());
    let tidegate = Tidegate::start(FIRST_BYTE_TIMEOUT, &upstream).await;
    for request in [chat(), get("/v1/models")] {
        let reply = exchange(tidegate.address, request).await;
        assert_eq!((reply.status, reply.error_code().as_str()), (504, "upstream_timeout"));
        upstream.disconnected().await;
    }
    upstream.until_released().await;
}

#[tokio::test]
async fn a_long_upload_does_not_time_out_the_upstream() {
    let _quiet = quiet().await;
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start(FIRST_BYTE_TIMEOUT, &upstream).await;
    let mut client = Client::connect(tidegate.address).await;
    client.send(request("POST", "/v1/files", &[("transfer-encoding", "chunked")], b"")).await;
    let mut ticks = tokio::time::interval(Duration::from_millis(400));
    for _ in 0..7 {
        ticks.tick().await;
        client.send("3\r\nabc\r\n").await;
    }
    client.send("0\r\n\r\n").await;
    assert_ne!(client.reply().await.status, 504);
    assert_eq!(upstream.next_request().await.body, b"abc".repeat(7));
}

#[tokio::test]
async fn a_timeout_does_not_close_a_shared_http2_connection() {
    let upstream = MockUpstream::start_h2c().await;
    let config =
        "[upstreams.default]\nfirst_byte_timeout = \"2s\"\nprotocol = \"http2\"\n[server]\nworkers = 1\n";
    let tidegate = Tidegate::start(config, &upstream).await;
    let gate = Gate::new();
    upstream.then(Answer::sse(["1"]).wait(&gate).event("2")).then(Answer::new(200).stall());
    let mut open = Client::connect(tidegate.address).await;
    open.send(chat()).await;
    let mut stream = open.head().await;
    assert_eq!(exchange(tidegate.address, chat()).await.status, 504);
    gate.open();
    open.rest(&mut stream).await;
    assert_eq!((stream.text().as_str(), stream.end), ("data: 1\n\ndata: 2\n\n", End::Complete));
    assert_eq!(upstream.connections(), 1);
}

/// Longer than a busy machine takes between two frames.
const IDLE_TIMEOUT: &str = "[upstreams.default]\nidle_timeout = \"1500ms\"\n";

/// Asserts that a stream ends with one error event of this code after what the upstream sent.
fn assert_ended_by(text: &str, sent: &str, code: &str) {
    let added = text.strip_prefix(sent).unwrap_or_else(|| panic!("{text:?} does not begin with {sent:?}"));
    let event = added.trim_start_matches('\n');
    let finished = sent.to_owned() + &added[..added.len() - event.len()];
    let is_finished = ["\n\n", "\r\n\r\n"].iter().any(|end| finished.ends_with(end));
    assert!(sent.is_empty() || is_finished, "the previous event is not finished: {text:?}");
    let payload = event.strip_prefix("data: ").and_then(|event| event.strip_suffix("\n\n"));
    let payload = payload.unwrap_or_else(|| panic!("not exactly one event: {text:?}"));
    assert_eq!(error_code(&serde_json::from_str(payload).unwrap()), code);
}

#[tokio::test]
async fn a_stalled_stream_ends_with_one_error_event() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start(IDLE_TIMEOUT, &upstream).await;
    for sent in
        ["data: {\"a\":1}\n\n", "data: {\"a\":1}\n\ndata: {\"b\"", "data: {}\n", "data: {}\r\n\r\n", ""]
    {
        let answer = Answer::new(200).header("content-type", "text/event-stream; charset=utf-8").chunked();
        upstream.then(answer.head().chunk(sent).stall());
        let reply = exchange(tidegate.address, chat()).await;
        assert_eq!((reply.status, reply.end), (200, End::Complete));
        assert_ended_by(&reply.text(), sent, "upstream_timeout");
        assert!(!reply.text().contains("[DONE]"));
        upstream.disconnected().await;
    }
}

#[tokio::test]
async fn an_http2_client_gets_the_error_event() {
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::sse(["{}"]).stall());
    let tidegate = Tidegate::start(IDLE_TIMEOUT, &upstream).await;
    let client = Http2Client::connect(tidegate.address).await;
    let text = whole_text(client.send("POST", CHAT, QUESTION).await.unwrap()).await;
    assert_ended_by(&text, "data: {}\n\n", "upstream_timeout");
}

#[tokio::test]
async fn a_stalled_response_that_is_not_a_stream_is_cut_off() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start(IDLE_TIMEOUT, &upstream).await;
    let json = || Answer::new(200).header("content-type", "application/json");
    for answer in [json().declared_length(100), json().chunked()] {
        upstream.then(answer.chunk("{\"half\":").stall());
        let reply = exchange(tidegate.address, chat()).await;
        assert_eq!((reply.text().as_str(), reply.end), ("{\"half\":", End::BrokenOff));
    }
}

#[tokio::test]
async fn a_slow_but_steady_stream_does_not_time_out() {
    let _quiet = quiet().await;
    let upstream = MockUpstream::start().await;
    let mut answer = Answer::sse(["0"]);
    for number in 1..6 {
        answer = answer.pause(Duration::from_millis(400)).event(&number.to_string());
    }
    upstream.answer(answer);
    let tidegate = Tidegate::start(IDLE_TIMEOUT, &upstream).await;
    let reply = exchange(tidegate.address, post(CHAT, &[], QUESTION)).await;
    assert_eq!(reply.end, End::Complete);
    assert!(reply.text().ends_with("data: 5\n\n"), "{}", reply.text());
}
