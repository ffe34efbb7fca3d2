//! `history = "proxy"`: the client sends only what is new, in the dialects that send everything as well.

use super::{RESPONSES, response, upstream};
use crate::messages;
use crate::support::client::{exchange, post};
use crate::support::tidegate::Tidegate;
use serde_json::{Value, json};
use tidegate_testkit::{Answer, MockUpstream};

const PROXY: &str = "[store]\nurl = \"memory:\"\n[context]\nhistory = \"proxy\"\n";

async fn turn(tidegate: &Tidegate, upstream: &MockUpstream, path: &str, body: Value) -> Value {
    let headers = [("x-conversation-id", "c"), ("authorization", "Bearer k")];
    let reply = exchange(tidegate.address, post(path, &headers, body.to_string())).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    serde_json::from_slice(&upstream.next_request().await.body).unwrap()
}

#[tokio::test]
async fn the_items_of_earlier_responses_come_back() {
    let upstream = upstream().await;
    let tidegate = Tidegate::start(PROXY, &upstream).await;
    let call = json!([{"type": "reasoning", "id": "rs_1", "summary": []}, {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}"}]);
    upstream.then(Answer::json(
        200,
        json!({"id": "resp_1", "object": "response", "status": "completed", "output": call}).to_string(),
    ));
    let asked = turn(&tidegate, &upstream, RESPONSES, json!({"model": "gpt-5", "input": "go"})).await;
    assert_eq!(asked["input"], "go");
    let result = json!({"type": "function_call_output", "call_id": "c", "output": "42"});
    upstream.then(Answer::json(200, response("It is 42.")));
    let answered = turn(&tidegate, &upstream, RESPONSES, json!({"model": "gpt-5", "input": [result]})).await;
    let mut items = vec![json!({"role": "user", "content": "go"})];
    items.extend(call.as_array().unwrap().clone());
    items.push(result);
    assert_eq!(answered["input"], json!(items));
    let last = turn(&tidegate, &upstream, RESPONSES, json!({"model": "gpt-5", "input": "and now?"})).await;
    let last = last["input"].as_array().unwrap();
    assert_eq!(last[..4], items);
    assert_eq!(
        (&last[4]["content"][0]["text"], &last[5]),
        (&"It is 42.".into(), &json!({"role": "user", "content": "and now?"}))
    );
}

#[tokio::test]
async fn anthropics_messages_come_back() {
    let upstream = messages::upstream().await;
    let tidegate = Tidegate::start(PROXY, &upstream).await;
    let body = |text: &str| json!({"model": "claude", "max_tokens": 9, "system": "Be exact.", "messages": [{"role": "user", "content": text}]});
    turn(&tidegate, &upstream, messages::MESSAGES, body("one")).await;
    let second = turn(&tidegate, &upstream, messages::MESSAGES, body("two")).await;
    let expected = json!([{"role": "user", "content": "one"}, {"role": "assistant", "content": [{"type": "text", "text": "ok"}]},
        {"role": "user", "content": "two"}]);
    assert_eq!(second["messages"], expected);
}

/// Two keepers of one history would disagree.
#[tokio::test]
async fn a_history_of_the_providers_is_refused() {
    let upstream = upstream().await;
    let tidegate = Tidegate::start(PROXY, &upstream).await;
    let body = json!({"model": "gpt-5", "previous_response_id": "resp_1", "input": "go"}).to_string();
    let headers = [("x-conversation-id", "c"), ("authorization", "Bearer k")];
    let reply = exchange(tidegate.address, post(RESPONSES, &headers, body)).await;
    assert_eq!((reply.status, reply.error_code().as_str()), (400, "history_not_supported"));
}
