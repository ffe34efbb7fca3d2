//! A request of one API that is sent to the other's path is recognised by its shape.

use super::{HEADERS, RESPONSES, conversation, edits, upstream};
use crate::support::agent::EVERY_TURN;
use crate::support::client::{CHAT, admin, exchange, post};
use crate::support::tidegate::Tidegate;
use crate::support::until;
use serde_json::{Value, json};
use std::time::Duration;
use tidegate_testkit::{Answer, MockUpstream};

#[tokio::test]
async fn responses_at_the_path_of_chat_completions_are_managed() {
    let upstream = upstream().await;
    let tidegate = Tidegate::start(EVERY_TURN, &upstream).await;
    let reply = exchange(tidegate.address, post(CHAT, &HEADERS, conversation(5, 0))).await;
    assert_eq!((reply.status, reply.header("x-tidegate-edits")), (200, Some(&*edits(6))));
    assert_eq!(String::from_utf8(upstream.next_request().await.body).unwrap(), conversation(5, 3));
}

/// Whichever API the gateway behind answers in.
#[tokio::test]
async fn the_usage_of_their_answers_is_read() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("[store]\nurl = \"memory:\"\n", &upstream).await;
    let usage =
        json!({"input_tokens": 1_234, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 0}});
    let response = json!({"type": "response.completed", "response": {"id": "r", "object": "response", "status": "completed", "output": [], "usage": usage}});
    let chunk = json!({"object": "chat.completion.chunk", "choices": [], "usage": {"prompt_tokens": 1_234, "completion_tokens": 5}});
    for (number, (path, events)) in [
        (CHAT, vec![response.to_string()]),
        (CHAT, vec![chunk.to_string(), "[DONE]".to_owned()]),
        (RESPONSES, vec![chunk.to_string(), "[DONE]".to_owned()]),
    ]
    .into_iter()
    .enumerate()
    {
        upstream.answer(Answer::sse(events));
        let name = format!("c{number}");
        let headers = [&HEADERS[..], &[("x-conversation-id", &name)]].concat();
        assert_eq!(exchange(tidegate.address, post(path, &headers, conversation(2, 0))).await.status, 200);
        let page = format!("/api/conversations/{name}");
        let read = async || admin(tidegate.admin, &page).await.json();
        let is_counted = |page: &Value| page["turns"][0]["prompt_tokens"] == 1_234;
        until("the turn is counted", Duration::from_secs(10), read, is_counted).await;
    }
}

#[tokio::test]
async fn chat_completions_at_the_path_of_responses_are_managed() {
    let upstream = upstream().await;
    let tidegate = Tidegate::start(EVERY_TURN, &upstream).await;
    let mut messages = vec![json!({"role": "user", "content": "go"})];
    for step in 0..5 {
        let call = json!({"id": format!("c{step}"), "type": "function", "function": {"name": "f", "arguments": "{}"}});
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
        messages.push(json!({"role": "tool", "tool_call_id": format!("c{step}"), "content": "a line of output\n".repeat(40)}));
    }
    let sent = json!({"model": "gpt-4o", "messages": messages}).to_string();
    let reply = exchange(tidegate.address, post(RESPONSES, &HEADERS, sent)).await;
    assert_eq!((reply.status, reply.header("x-tidegate-edits")), (200, Some(&*edits(3))));
}
