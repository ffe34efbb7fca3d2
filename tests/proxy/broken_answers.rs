//! An upstream that breaks off its response at any byte, or sends an invalid one.

use crate::support::client::{CHAT, Client, QUESTION, chat, exchange, get};
use crate::support::http2::{Http2Client, whole_text};
use crate::support::reply::{End, Reply, error_code};
use crate::support::tidegate::Tidegate;
use http_body_util::BodyExt;
use tidegate_testkit::{Answer, Ending, MockUpstream};

const EVENTS: [&str; 3] = [r#"{"n":1}"#, r#"{"n":2}"#, "[DONE]"];

fn body() -> String {
    EVENTS.map(|event| format!("data: {event}\n\n")).concat()
}

/// Asserts that a broken stream has what the upstream sent, the end of that event, one error event and a complete end.
fn assert_ended_by_event(reply: &Reply, sent: &str) {
    assert_eq!((reply.status, reply.end), (200, End::Complete), "after {sent:?}");
    let text = reply.text();
    let (before, event) =
        text.rsplit_once("data: {\"error\"").unwrap_or_else(|| panic!("after {sent:?}: {text:?}"));
    assert_eq!(before.trim_end_matches('\n'), sent.trim_end_matches('\n'));
    assert!(before.is_empty() || before.ends_with("\n\n"), "{text:?}");
    assert!(event.ends_with("\n\n"), "{text:?}");
    let payload = format!("{{\"error\"{}", event.trim_end());
    assert_eq!(error_code(&serde_json::from_str(&payload).unwrap()), "upstream_unreachable");
}

#[tokio::test]
async fn a_stream_broken_after_any_byte_of_its_body_ends_with_one_error_event() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    let body = body();
    let mut client = Client::connect(tidegate.address).await;
    for position in 0..body.len() {
        upstream.then(Answer::sse(EVENTS).break_after_body_bytes(position as u64, Ending::Close));
        client.send(chat()).await;
        assert_ended_by_event(&client.reply().await, &body[..position]);
    }
}

#[tokio::test]
async fn a_stream_cut_at_any_wire_byte_never_looks_complete() {
    let upstream = MockUpstream::start_http1().await;
    let tidegate = Tidegate::start("", &upstream).await;
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n".len();
    let chunk = |event: &str| format!("{:x}\r\ndata: {event}\n\n\r\n", event.len() + 8).len();
    let wire = head + EVENTS.map(chunk).iter().sum::<usize>() + "0\r\n\r\n".len();
    for position in 0..wire {
        upstream.then(Answer::sse(EVENTS).cut_at(position as u64, Ending::Close));
        let reply = exchange(tidegate.address, chat()).await;
        if position < head {
            assert_eq!(
                (reply.status, reply.error_code().as_str()),
                (502, "upstream_unreachable"),
                "{position}"
            );
        } else {
            let sent = reply.text();
            let sent = sent.split("data: {\"error\"").next().unwrap();
            assert!(body().starts_with(sent.trim_end_matches('\n')), "{position}: {sent:?}");
            assert_ended_by_event(&reply, sent);
        }
    }
}

#[tokio::test]
async fn a_reset_also_ends_with_one_error_event() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    let gate = tidegate_testkit::Gate::new();
    upstream.then(Answer::sse(["1"]).wait(&gate).break_off(Ending::Reset));
    let mut client = Client::connect(tidegate.address).await;
    client.send(chat()).await;
    let mut reply = client.head().await;
    reply.body = client.piece(&mut reply).await.unwrap();
    gate.open();
    client.rest(&mut reply).await;
    assert_ended_by_event(&reply, "data: 1\n\n");
}

#[tokio::test]
async fn an_http2_upstream_reset_becomes_an_error_event_or_a_502() {
    let upstream = MockUpstream::start_h2c().await;
    let tidegate = Tidegate::start("[upstreams.default]\nprotocol = \"http2\"\n", &upstream).await;
    upstream
        .then(Answer::sse(["1"]).break_off(Ending::Reset))
        .then(Answer::new(200).break_off(Ending::Reset));
    let reply = exchange(tidegate.address, chat()).await;
    assert_eq!(reply.status, 200);
    assert!(reply.text().ends_with("\n\n") && reply.text().contains("data: {\"error\""), "{}", reply.text());
    let reply = exchange(tidegate.address, chat()).await;
    assert_eq!((reply.status, reply.error_code().as_str()), (502, "upstream_unreachable"));
}

#[tokio::test]
async fn a_broken_response_that_is_not_a_stream_stays_incomplete() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    for answer in [Answer::chat("hello"), Answer::chat("hello").chunked()] {
        for request in [chat(), get("/v1/models")] {
            upstream.then(answer.clone().break_after_body_bytes(30, Ending::Close));
            let reply = exchange(tidegate.address, request).await;
            assert_eq!((reply.status, reply.body.len(), reply.end), (200, 30, End::BrokenOff));
        }
    }
}

#[tokio::test]
async fn no_error_event_is_added_to_compressed_or_sized_streams() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    let compressed = Answer::sse(EVENTS).header("content-encoding", "gzip");
    let counted = Answer::sse(EVENTS).declared_length(1000);
    for answer in [compressed, counted] {
        upstream.then(answer.break_after_body_bytes(10, Ending::Close));
        let reply = exchange(tidegate.address, chat()).await;
        assert_eq!((reply.text(), reply.end), (body()[..10].to_owned(), End::BrokenOff));
    }
}

#[tokio::test]
async fn an_http2_client_gets_the_error_event_or_a_reset() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    let client = Http2Client::connect(tidegate.address).await;
    upstream.then(Answer::sse(EVENTS).break_after_body_bytes(20, Ending::Close));
    let text = whole_text(client.send("POST", CHAT, QUESTION).await.unwrap()).await;
    assert!(text.starts_with(&body()[..20]) && text.contains("\n\ndata: {\"error\""), "{text}");
    upstream.then(Answer::chat("hello").break_after_body_bytes(20, Ending::Close));
    let response = client.send("POST", CHAT, QUESTION).await.unwrap();
    assert!(response.into_body().collect().await.is_err(), "the stream is reset");
}

#[tokio::test]
async fn an_invalid_response_is_a_bad_gateway() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    let endless = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(2_000_000));
    for nonsense in [
        "",
        "\r\n\r\n",
        "220 mail.example ESMTP\r\n",
        "HTTP/1.1 abc OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        "\u{16}\u{3}\u{1}\u{2}\u{0}",
        &endless,
    ] {
        upstream.then(Answer::raw(nonsense.to_owned()));
        let reply = exchange(tidegate.address, chat()).await;
        let what = &nonsense[..nonsense.len().min(60)];
        assert_eq!((reply.status, reply.error_code().as_str()), (502, "upstream_unreachable"), "{what:?}");
    }
}

#[tokio::test]
async fn a_connection_closed_while_idle_is_replaced() {
    let upstream = MockUpstream::start_http1().await;
    let tidegate = Tidegate::start("[server]\nworkers = 1\n", &upstream).await;
    for _ in 0..10 {
        // The response does not announce that the connection will close.
        upstream.then(Answer::raw("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"));
        let reply = exchange(tidegate.address, chat()).await;
        assert_eq!((reply.status, reply.text().as_str()), (200, "ok"));
        upstream.until_open_connections(0).await;
    }
}
