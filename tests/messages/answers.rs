//! What is read of an answer, whatever its compression and status.

use super::{HEADERS, MESSAGES};
use crate::support::client::{admin, exchange, post};
use crate::support::reply::Reply;
use crate::support::tidegate::Tidegate;
use crate::support::until;
use serde_json::{Value, json};
use std::time::Duration;
use tidegate_testkit::{Answer, Coding, Ending, MockUpstream};

/// 2.50 USD per answer, and the next one is refused.
const LIMITED: &str = "[store]\nurl = \"memory:\"\n[context.limits]\nmax_cost_usd = 1.0\n\
    [models.m]\nwindow = 2000000\nencoding = \"o200k_base\"\ninput = 2.5\ncached_input = 2.5\noutput = 10.0\n";

fn usage() -> Value {
    json!({"input_tokens": 100_000, "cache_read_input_tokens": 900_000, "cache_creation_input_tokens": 0, "output_tokens": 1})
}

fn document() -> Answer {
    let message = json!({"id": "m", "type": "message", "role": "assistant", "model": "m", "usage": usage(), "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "ok"}]});
    Answer::json(200, message)
}

fn events() -> Answer {
    let started = json!({"id": "m", "type": "message", "role": "assistant", "content": [], "usage": usage()});
    let events = [
        json!({"type": "message_start", "message": started}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "ok"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}),
        json!({"type": "message_stop"}),
    ];
    let head = Answer::new(200).header("content-type", "text/event-stream").chunked();
    events.iter().fold(head, |answer, event| {
        answer.chunk(format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default()))
    })
}

async fn ask(tidegate: &Tidegate) -> Reply {
    let body = r#"{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"hi"}]}"#;
    let more = [("x-conversation-id", "c"), ("accept-encoding", "gzip, deflate, br, zstd")];
    exchange(tidegate.address, post(MESSAGES, &[&HEADERS[..], &more].concat(), body)).await
}

/// The turns of the conversation, once there are this many requests.
async fn turns(tidegate: &Tidegate, requests: usize) -> Vec<Value> {
    let read = async || admin(tidegate.admin, "/api/conversations/c").await.json();
    let is_complete = |page: &Value| page["turns"].as_array().is_some_and(|turns| turns.len() == requests);
    let page = until("the turns are counted", Duration::from_secs(10), read, is_complete).await;
    page["turns"].as_array().cloned().unwrap_or_default()
}

#[tokio::test]
async fn usage_is_read_through_every_compression() {
    let upstream = MockUpstream::start().await;
    for coding in [None].into_iter().chain(Coding::ALL.map(Some)) {
        for is_chunked in [false, true] {
            upstream.encode(coding, is_chunked);
            for answer in [document(), events()] {
                let tidegate = Tidegate::start(LIMITED, &upstream).await;
                upstream.answer(answer);
                let reply = ask(&tidegate).await;
                assert_eq!(reply.status, 200, "{coding:?}: {}", reply.text());
                let turn = turns(&tidegate, 1).await.remove(0);
                let read = [
                    &turn["prompt_tokens"],
                    &turn["cached_tokens"],
                    &turn["completion_tokens"],
                    &turn["cost_estimated"],
                ];
                assert_eq!(
                    read,
                    [&json!(1_000_000), &json!(900_000), &json!(1), &json!(false)],
                    "{coding:?}: {turn}"
                );
                let refused = ask(&tidegate).await;
                assert_eq!(
                    (refused.status, &refused.json()["error"]["code"]),
                    (422, &json!("max_cost_exceeded")),
                    "{coding:?}"
                );
            }
        }
    }
}

/// The path is managed in every spelling, so its answer is read in every spelling.
#[tokio::test]
async fn usage_is_read_whatever_the_spelling_of_the_path() {
    let upstream = MockUpstream::start().await;
    for path in ["/v1/messages/", "/v1//messages", "/V1/Messages"] {
        let tidegate = Tidegate::start(LIMITED, &upstream).await;
        upstream.answer(events());
        let body = r#"{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"hi"}]}"#;
        let headers = [&HEADERS[..], &[("x-conversation-id", "c")]].concat();
        assert_eq!(exchange(tidegate.address, post(path, &headers, body)).await.status, 200, "{path}");
        let turn = turns(&tidegate, 1).await.remove(0);
        assert_eq!(turn["prompt_tokens"], 1_000_000, "{path}: {turn}");
    }
}

/// A stream reports at its beginning that it has written one token.
#[tokio::test]
async fn an_answer_that_breaks_off_costs_what_it_has_written() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start(LIMITED, &upstream).await;
    let started = json!({"id": "m", "type": "message", "role": "assistant", "content": [],
        "usage": {"input_tokens": 10, "output_tokens": 1}});
    let events = [
        json!({"type": "message_start", "message": started}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "one two ".repeat(50)}}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "one two ".repeat(100)}}),
    ];
    let head = Answer::new(200).header("content-type", "text/event-stream").chunked();
    let stream = events.iter().fold(head, |answer, event| answer.chunk(format!("data: {event}\n\n")));
    upstream.then(stream.break_off(Ending::Close));
    ask(&tidegate).await;
    let turn = turns(&tidegate, 1).await.remove(0);
    let written = turn["completion_tokens"].as_u64().unwrap();
    assert!((290..320).contains(&written), "{turn}");
    assert_eq!((&turn["prompt_tokens"], &turn["cost_estimated"]), (&json!(10), &json!(true)), "{turn}");
    assert_eq!(turn["outcome"], "upstream_broke");
    let page: Value = admin(tidegate.admin, "/api/conversations?trouble=errors").await.json();
    assert_eq!(page["conversations"][0]["name"], "c", "{page}");
}

#[tokio::test]
async fn every_error_has_a_turn_and_passes_unchanged() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start(LIMITED, &upstream).await;
    let error = |kind: &str| json!({"type": "error", "error": {"type": kind, "message": "no"}}).to_string();
    for (status, kind) in [(429, "rate_limit_error"), (529, "overloaded_error"), (500, "api_error")] {
        upstream.then(Answer::json(status, error(kind)).header("retry-after", "7"));
        let reply = ask(&tidegate).await;
        assert_eq!(
            (reply.status, reply.text(), reply.header("retry-after")),
            (status, error(kind), Some("7"))
        );
    }
    let turns = turns(&tidegate, 3).await;
    assert!(
        turns.iter().all(|turn| turn["outcome"] == "upstream_error" && turn["retry_after_s"] == 7),
        "{turns:?}"
    );
    let mut statuses: Vec<u64> = turns.iter().filter_map(|turn| turn["status"].as_u64()).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [429, 500, 529]);
}
