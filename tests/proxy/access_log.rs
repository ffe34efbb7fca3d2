//! The access log has one line per request with its outcome and without its content.

use crate::support::chat::{body, chat as messages};
use crate::support::client::{CHAT, Client, QUESTION, chat, exchange, get, post};
use crate::support::http2::Http2Client;
use crate::support::tidegate::{Setup, Tidegate};
use crate::support::within;
use serde_json::json;
use std::net::SocketAddr;
use std::time::Duration;
use tidegate_testkit::{Answer, Ending, MockUpstream};
use tokio::io::{AsyncBufReadExt, BufReader};

#[tokio::test]
async fn an_entry_records_the_request_and_its_outcome() {
    let upstream = MockUpstream::start().await;
    let mut tidegate = Tidegate::start("", &upstream).await;
    upstream.then(Answer::json(200, "0123456789"));
    exchange(tidegate.address, post(&format!("{CHAT}?x=1"), &[("x-request-id", "id-1")], QUESTION)).await;
    let line = tidegate.access_log(1).await.remove(0);
    let expected = json!({
        "level": "INFO", "target": "access", "request_id": "id-1", "method": "POST", "path": CHAT, "status": 200,
        "outcome": "answered", "route": "default", "upstream": "default", "bytes_in": QUESTION.len(), "bytes_out": 10,
    });
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(&line[key], value, "{key}");
    }
    assert!(
        line["duration_ms"].as_f64() >= line["first_byte_ms"].as_f64()
            && line["first_byte_ms"].as_f64() > Some(0.0)
    );
    assert!(line["timestamp"].as_str().unwrap().ends_with('Z'));
}

#[tokio::test]
async fn each_outcome_has_its_own_label() {
    let upstream = MockUpstream::start().await;
    let mut tidegate = Tidegate::start("[upstreams.default]\nfirst_byte_timeout = \"2s\"\n", &upstream).await;
    let address = tidegate.address;
    let mut outcomes = Vec::new();
    let mut line = async |outcomes: &mut Vec<_>| {
        let line = tidegate.access_log(outcomes.len() + 1).await.remove(outcomes.len());
        outcomes.push((line["status"].clone(), line["outcome"].clone(), line["reason"].clone()));
    };
    for answer in [
        Answer::error(429, "slow_down", "later"),
        Answer::chat_stream(["a", "b"]),
        Answer::sse(["{}"]).break_off(Ending::Close),
        Answer::chat("hello").break_after_body_bytes(10, Ending::Close),
        Answer::json(200, r#"{"error":{"message":"busy"}}"#),
        Answer::sse([r#"{"error":{"message":"busy"}}"#]),
        Answer::new(200).break_off(Ending::Close),
        Answer::new(200).stall(),
    ] {
        upstream.then(answer);
        exchange(address, chat()).await;
        line(&mut outcomes).await;
    }
    for request in [
        get("/v1/../x"),
        post(CHAT, &[("x-conversation-id", "a b")], QUESTION),
        b"GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n".to_vec(),
    ] {
        exchange(address, request).await;
        line(&mut outcomes).await;
    }
    upstream.then(Answer::sse(["{}"]).stall());
    let mut client = Client::connect(address).await;
    client.send(chat()).await;
    client.head().await;
    drop(client);
    line(&mut outcomes).await;
    let expected = [
        (429, "upstream_error", None),
        (200, "answered", None),
        (200, "upstream_broke", Some("upstream_closed")),
        (200, "upstream_broke", Some("upstream_closed")),
        (200, "upstream_error", Some("upstream_error")),
        (200, "upstream_error", Some("upstream_error")),
        (502, "upstream_error", Some("upstream_unreachable")),
        (504, "upstream_error", Some("upstream_timeout")),
        (400, "refused", Some("invalid_path")),
        (400, "refused", Some("invalid_conversation_id")),
        (400, "refused", Some("malformed_request")),
        (200, "client_closed", None),
    ];
    assert_eq!(
        outcomes,
        expected.map(|(status, outcome, reason)| (json!(status), json!(outcome), json!(reason)))
    );
}

#[tokio::test]
async fn every_request_logs_exactly_one_line() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    let mut client = Client::connect(tidegate.address).await;
    for _ in 0..20 {
        client.send([chat(), get("/v1/models")].concat()).await;
        client.reply().await;
        client.reply().await;
    }
    let http2 = Http2Client::connect(tidegate.address).await;
    for _ in 0..10 {
        http2.send("POST", CHAT, QUESTION).await.unwrap();
    }
    drop((client, http2));
    let output = tidegate.stop().await;
    assert_eq!(output.lines().filter(|line| line.contains(r#""target":"access""#)).count(), 50);
}

/// Must not be in the log: one word for each place that it could come from.
const SECRETS: [&str; 8] = [
    "SKCLIENT",
    "AZUREKEY",
    "COOKIEVALUE",
    "PROMPTTEXT",
    "COMPLETIONTEXT",
    "QUERYVALUE",
    "SKCONFIG",
    "HEADERVALUE",
];

fn secret(path: &str, extra: &[(&str, &str)]) -> Vec<u8> {
    let mut headers = vec![
        ("authorization", "Bearer SKCLIENT"),
        ("api-key", "AZUREKEY"),
        ("cookie", "session=COOKIEVALUE"),
        ("x-mine", "HEADERVALUE"),
    ];
    headers.extend_from_slice(extra);
    post(path, &headers, r#"{"model":"gpt-4o","messages":[{"role":"user","content":"PROMPTTEXT"}]}"#)
}

#[tokio::test]
async fn no_content_or_credentials_are_logged_at_any_level() {
    let upstream = MockUpstream::start().await;
    let config = "[log]\nlevel = \"trace\"\n[upstreams.default]\napi_key_env = \"THE_KEY\"\nfirst_byte_timeout = \"2s\"\n";
    let setup = Setup::new(config).before(&upstream).env("THE_KEY", "SKCONFIG").env("RUST_LOG", "trace");
    let mut tidegate = setup.start().await;
    let address = tidegate.address;
    let path = format!("{CHAT}?api_key=QUERYVALUE");
    let answers = [
        Answer::chat("COMPLETIONTEXT"),
        Answer::chat_stream(["COMPLETIONTEXT"]),
        Answer::error(401, "invalid_api_key", "COMPLETIONTEXT"),
        Answer::sse(["COMPLETIONTEXT"]).break_off(Ending::Close),
        Answer::chat("COMPLETIONTEXT").break_after_body_bytes(200, Ending::Close),
        Answer::raw("COMPLETIONTEXT is not HTTP\r\n\r\n"),
        Answer::raw("HTTP/1.1 200 OK\r\nCOMPLETIONTEXT\r\n\r\n"),
        Answer::new(200).stall(),
    ];
    for answer in answers {
        upstream.then(answer);
        exchange(address, secret(&path, &[])).await;
    }
    for request in [
        secret(&path, &[("x-conversation-id", "HEADERVALUE x")]),
        secret(&path, &[("content-encoding", "gzip")]),
        secret("/v1/../x?api_key=QUERYVALUE", &[]),
        secret(&path, &[("content-length", "1"), ("x-bad name", "HEADERVALUE")]),
        secret("/v1/embeddings?api_key=QUERYVALUE", &[]),
    ] {
        exchange(address, request).await;
    }
    upstream.then(Answer::sse(["COMPLETIONTEXT"]).stall());
    let mut client = Client::connect(address).await;
    client.send(secret(&path, &[])).await;
    client.head().await;
    drop(client);
    tidegate.access_log(14).await;
    let output = tidegate.stop().await;
    for secret in SECRETS {
        let line = output.lines().find(|line| line.contains(secret));
        assert_eq!(line, None, "{secret} is in the log");
    }
}

#[tokio::test]
async fn the_access_log_can_be_turned_off() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("[log]\naccess = false\n", &upstream).await;
    exchange(tidegate.address, chat()).await;
    assert!(!tidegate.stop().await.contains(r#""target":"access""#));
}

#[tokio::test]
async fn lines_for_people_fit_the_terminal_and_say_only_what_happened() {
    let upstream = MockUpstream::start().await;
    let config = "[log]\nformat = \"human\"\n[store]\nurl = \"memory:\"\n[context.mask]\nkeep = { turns = 1 }\npace = \"every_turn\"\n";
    let (mut child, _directory) = Setup::new(config).before(&upstream).spawn();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut line = async || within("a line of the log", lines.next_line()).await.unwrap().unwrap();
    assert!(line().await.ends_with(" is listening"));
    let base_url = line().await;
    let address = base_url.split_once("base URL   http://").unwrap().1.split_once("/v1 ").unwrap().0;
    let address: SocketAddr = address.parse().unwrap();
    for rest in
        ["dashboard  http://127.0.0.1:", "upstream   http", "store      memory:", "config     proxy.toml"]
    {
        let line = line().await;
        assert!(line.trim_start().starts_with(rest), "{line}");
    }
    let headers = [("x-conversation-id", "build-7"), ("x-request-id", "r-1"), ("authorization", "Bearer k")];
    for (request, wanted) in [
        (post(CHAT, &headers, body(&messages(1))), &[" 200 chat gpt-4o build-7 ", " tokens "][..]),
        (post(CHAT, &headers, body(&messages(4))), &[" 200 chat gpt-4o build-7 ", "→", " masked 4 "]),
        (get("/v1/models"), &[" 200 GET /v1/models "]),
    ] {
        upstream.then(Answer::chat("hello"));
        exchange(address, request).await;
        let line = line().await;
        assert!(line.chars().count() <= 120 && !line.contains("=0"), "{line}");
        assert!(line.rsplit(' ').next().unwrap().starts_with("id="), "{line}");
        assert!(wanted.iter().all(|part| line.contains(part)), "{wanted:?} in {line}");
    }
}

/// The latency of an upstream ends with its head, also where its answer is read before it is passed on.
#[tokio::test]
async fn reading_an_answer_ahead_is_not_the_upstreams_latency() {
    let upstream = MockUpstream::start().await;
    let mut tidegate = Tidegate::start("", &upstream).await;
    let error = r#"{"error":{"message":"This model's maximum context length is 8 tokens."}}"#;
    let (begin, end) = error.split_at(20);
    let answer = Answer::new(400).header("content-type", "application/json").chunked();
    upstream.answer(answer.head().chunk(begin).pause(Duration::from_secs(2)).chunk(end));
    assert_eq!(exchange(tidegate.address, chat()).await.status, 400);
    let line = tidegate.access_log(1).await.remove(0);
    let (latency, first) = (line["upstream_ms"].as_f64().unwrap(), line["first_byte_ms"].as_f64().unwrap());
    assert!(first - latency > 500.0, "{line}");
}
