//! A request for a response that is refused as too long is shortened and sent once more.

use super::{HEADERS, RESPONSES, conversation, response};
use crate::support::client::{exchange, post};
use crate::support::reply::{Reply, edited, figure};
use crate::support::tidegate::{Setup, Tidegate};
use serde_json::json;
use tidegate_testkit::{Answer, MockUpstream, RedisServer};

const STEPS: usize = 30;

const PATIENT: &str = "[context.mask]\nkeep = { turns = 2 }\npace = { batch = 1000 }\n";

fn tokens(body: &[u8]) -> usize {
    body.len() / 4
}

/// Where most of the old results have to go.
fn limit() -> usize {
    tokens(body(STEPS, 15, false).as_bytes())
}

/// A model whose window nobody knows.
fn body(steps: usize, masked: usize, is_streamed: bool) -> String {
    let model = format!("\"model\":\"fresh-model\",\"stream\":{is_streamed}");
    conversation(steps, masked).replace("\"model\":\"gpt-5\"", &model)
}

/// How an upstream tells that a request is too long.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Telling {
    Status,
    /// In a stream that has begun.
    Event,
    Failure,
}

fn overflow(telling: Telling, used: usize) -> Answer {
    let message = format!(
        "This model's maximum context length is {} tokens. However, your messages resulted in {used} tokens.",
        limit()
    );
    let error = json!({"code": "context_length_exceeded", "message": message});
    let created = json!({"type": "response.created", "sequence_number": 0, "response": {"id": "r", "error": null, "output": []}});
    let event = match telling {
        Telling::Status => return Answer::json(400, json!({"error": error})),
        Telling::Event => {
            json!({"type": "error", "code": "context_length_exceeded", "message": message, "param": null})
        }
        Telling::Failure => {
            json!({"type": "response.failed", "response": {"id": "r", "status": "failed", "error": error}})
        }
    };
    Answer::sse([created.to_string(), event.to_string()])
}

async fn upstream(telling: Telling) -> MockUpstream {
    let upstream = MockUpstream::start().await;
    upstream.script(move |request| match tokens(&request.body) {
        used if used > limit() => overflow(telling, used),
        _ if String::from_utf8_lossy(&request.body).contains("\"stream\":true") => {
            let done = format!("{{\"type\":\"response.completed\",\"response\":{}}}", response("It fits."));
            Answer::sse([r#"{"type":"response.created","response":{"id":"r"}}"#.to_owned(), done])
        }
        _ => Answer::json(200, response("It fits.")),
    });
    upstream
}

async fn ask(tidegate: &Tidegate, body: &str) -> Reply {
    let headers = [&HEADERS[..], &[("x-conversation-id", "c")]].concat();
    exchange(tidegate.address, post(RESPONSES, &headers, body)).await
}

#[tokio::test]
async fn an_overflow_of_a_response_is_rescued_and_learnt_by_all() {
    for (telling, is_streamed) in
        [(Telling::Status, false), (Telling::Status, true), (Telling::Event, true), (Telling::Failure, true)]
    {
        let (redis, upstream) = (RedisServer::start().await, upstream(telling).await);
        let config = format!("[store]\nurl = \"{}\"\ntimeout = \"10s\"\n{PATIENT}", redis.url());
        let first = Setup::new(&config).before(&upstream).start().await;
        let second = Setup::new(&config).before(&upstream).start().await;
        let reply = ask(&first, &body(STEPS, 0, is_streamed)).await;
        assert_eq!(reply.status, 200, "{telling:?}: {}", reply.text());
        assert_eq!(reply.header("x-tidegate-rescued"), Some("context_length_exceeded"), "{telling:?}");
        assert!(reply.text().contains("It fits.") && !reply.text().contains("exceeded"), "{}", reply.text());
        assert!(edited(&reply, "masked") >= 30, "{:?}", reply.headers);
        let requests = upstream.requests();
        assert_eq!(requests.len(), 2, "one rescue");
        // The oldest results are placeholders, and nothing else was touched.
        let rescued = String::from_utf8(requests[1].body.clone()).unwrap();
        let is_masked = |masked| rescued == body(STEPS, masked, is_streamed);
        assert!((15..STEPS - 1).any(is_masked), "{telling:?}: {rescued}");
        // The other process knows the window at once.
        let reply = ask(&second, &body(STEPS + 1, 0, is_streamed)).await;
        assert_eq!((reply.status, reply.header("x-tidegate-rescued")), (200, None), "{telling:?}");
        assert!(figure(&reply, "x-tidegate-budget") < limit() as u64, "{telling:?}");
        assert_eq!(upstream.requests().len(), 3, "{telling:?}");
    }
}

#[tokio::test]
async fn an_overflow_of_a_response_that_cannot_be_helped_passes_byte_for_byte() {
    let upstream = upstream(Telling::Status).await;
    let config = format!("[store]\nurl = \"memory:\"\n{PATIENT}");
    let tidegate = Setup::new(&config).before(&upstream).start().await;
    let sent = json!({"model": "fresh-model", "input": "x ".repeat(60_000)}).to_string();
    let reply = ask(&tidegate, &sent).await;
    assert_eq!((reply.status, reply.header("x-tidegate-rescued")), (400, None));
    let message = format!("resulted in {} tokens.", tokens(sent.as_bytes()));
    assert!(reply.text().contains(&message), "{}", reply.text());
    assert_eq!(upstream.requests().len(), 1);
}
