//! What Anthropic refuses as too long is shortened and sent once more.

use super::{HEADERS, MESSAGES, conversation};
use crate::support::client::{admin, exchange, post};
use crate::support::reply::{Reply, edited, figure};
use crate::support::tidegate::{Setup, Tidegate};
use serde_json::{Value, json};
use tidegate_testkit::{Answer, MockUpstream, RedisServer};

const WINDOW: u64 = 8_000;

fn tokens(body: &[u8]) -> u64 {
    body.len() as u64 / 4
}

fn too_long(body: &[u8]) -> String {
    let message = format!("prompt is too long: {} tokens > {WINDOW} maximum", tokens(body));
    let error = json!({"type": "invalid_request_error", "message": message});
    json!({"type": "error", "error": error, "request_id": "req_1"}).to_string()
}

async fn upstream() -> MockUpstream {
    let upstream = MockUpstream::start().await;
    upstream.script(|request| {
        if tokens(&request.body) > WINDOW {
            return Answer::json(400, too_long(&request.body));
        }
        let usage = json!({"input_tokens": tokens(&request.body), "output_tokens": 1});
        let message = json!({"id": "m", "type": "message", "role": "assistant", "model": "claude-next-9", "usage": usage,
            "content": [{"type": "text", "text": "It fits."}], "stop_reason": "end_turn"});
        if !String::from_utf8_lossy(&request.body).contains("\"stream\":true") {
            return Answer::json(200, message);
        }
        let events = [
            json!({"type": "message_start", "message": {"role": "assistant", "content": [], "usage": usage}}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "It fits."}}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}),
            json!({"type": "message_stop"}),
        ];
        Answer::sse(events.map(|event| event.to_string()))
    });
    upstream
}

/// A model whose window nobody knows, with explicit breakpoints, so that masking waits.
fn body(steps: usize, masked: usize, is_streamed: bool) -> String {
    let model = "\"model\":\"claude-next-9\",\"stream\":";
    let cached = r#"{"type":"text","text":"You are careful.","cache_control":{"type":"ephemeral"}}"#;
    conversation(steps, masked)
        .replace("\"model\":\"claude-sonnet-4-5\"", &format!("{model}{is_streamed}"))
        .replace(r#"{"type":"text","text":"You are careful."}"#, cached)
}

async fn ask(tidegate: &Tidegate, body: &str) -> Reply {
    let headers = [&HEADERS[..], &[("x-conversation-id", "c")]].concat();
    exchange(tidegate.address, post(MESSAGES, &headers, body)).await
}

const PATIENT: &str = "[context.mask]\nkeep = { turns = 2 }\npace = { batch = 1000 }\n";

#[tokio::test]
async fn an_overflow_of_messages_is_rescued_and_learnt_by_all() {
    for is_streamed in [false, true] {
        let (redis, upstream) = (RedisServer::start().await, upstream().await);
        let config = format!("[store]\nurl = \"{}\"\ntimeout = \"10s\"\n{PATIENT}", redis.url());
        let processes = [
            Setup::new(&config).before(&upstream).start().await,
            Setup::new(&config).before(&upstream).start().await,
        ];
        assert_eq!(ask(&processes[0], &body(3, 0, is_streamed)).await.status, 200);
        let sent = body(14, 0, is_streamed);
        assert!(tokens(sent.as_bytes()) > WINDOW);
        let reply = ask(&processes[0], &sent).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert_eq!(reply.header("x-tidegate-rescued"), Some("context_length_exceeded"));
        assert!(reply.text().contains("It fits.") && edited(&reply, "masked") >= 10, "{:?}", reply.headers);
        let requests = upstream.requests();
        assert_eq!(requests.len(), 3, "one rescue");
        // The oldest results are placeholders, and nothing else was touched.
        let rescued = String::from_utf8(requests[2].body.clone()).unwrap();
        assert!((5..14).any(|masked| rescued == body(14, masked, is_streamed)), "{rescued}");
        // The other process knows the window at once.
        let reply = ask(&processes[1], &body(15, 0, is_streamed)).await;
        assert_eq!((reply.status, reply.header("x-tidegate-rescued")), (200, None));
        assert!(figure(&reply, "x-tidegate-budget") < WINDOW);
        let windows: Value = admin(processes[1].admin, "/api/windows").await.json();
        assert_eq!(
            (&windows["windows"][0]["model"], &windows["windows"][0]["window"]),
            (&"claude-next-9".into(), &WINDOW.into())
        );
    }
}

#[tokio::test]
async fn an_overflow_of_messages_that_cannot_be_helped_passes_byte_for_byte() {
    let upstream = upstream().await;
    let tidegate = Tidegate::start("[store]\nurl = \"memory:\"\n", &upstream).await;
    let message = json!({"role": "user", "content": "x ".repeat(20_000)});
    let sent = json!({"model": "claude-next-9", "max_tokens": 10, "messages": [message]}).to_string();
    let reply = ask(&tidegate, &sent).await;
    assert_eq!((reply.status, reply.header("x-tidegate-rescued")), (400, None));
    assert_eq!(reply.text(), too_long(sent.as_bytes()));
    assert_eq!(upstream.requests().len(), 1);
}
