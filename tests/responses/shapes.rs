//! A request of one API that is sent to the other's path is recognised by its shape.

use super::{HEADERS, RESPONSES, conversation, edits, upstream};
use crate::support::agent::EVERY_TURN;
use crate::support::client::{CHAT, exchange, post};
use crate::support::tidegate::Tidegate;
use serde_json::json;

#[tokio::test]
async fn responses_at_the_path_of_chat_completions_are_managed() {
    let upstream = upstream().await;
    let tidegate = Tidegate::start(EVERY_TURN, &upstream).await;
    let reply = exchange(tidegate.address, post(CHAT, &HEADERS, conversation(5, 0))).await;
    assert_eq!((reply.status, reply.header("x-tidegate-edits")), (200, Some(&*edits(6))));
    assert_eq!(String::from_utf8(upstream.next_request().await.body).unwrap(), conversation(5, 3));
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
