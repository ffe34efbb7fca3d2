//! Streamed answers.

use super::{Scene, TOOL, last, original, request};
use crate::support::client::{CHAT, Client, post};
use crate::support::reply::End;
use serde_json::{Value, json};
use tidegate_testkit::{Answer, Gate};

const STREAM: &str = "\"stream\":true,";

fn chunk(id: &str, delta: Value, finish: Option<&str>) -> String {
    json!({ "id": id, "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o",
        "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] })
    .to_string()
}

fn begun(index: u64, id: &str, name: &str) -> Value {
    json!({ "tool_calls": [{ "index": index, "id": id, "type": "function", "function": { "name": name, "arguments": "" } }] })
}

fn goes_on(index: u64, arguments: &str) -> Value {
    json!({ "tool_calls": [{ "index": index, "function": { "arguments": arguments } }] })
}

fn usage(tokens: u64) -> String {
    json!({ "id": "u", "object": "chat.completion.chunk", "choices": [],
        "usage": { "prompt_tokens": tokens, "completion_tokens": 1, "total_tokens": tokens + 1 } })
    .to_string()
}

fn recalling(reference: &str) -> Vec<String> {
    vec![
        chunk("one", json!({ "role": "assistant", "content": "Let me look. " }), None),
        chunk("one", begun(0, "r1", TOOL), None),
        chunk("one", goes_on(0, "{\"ref\":"), None),
        chunk("one", goes_on(0, &format!("\"{reference}\"}}")), None),
        chunk("one", json!({}), Some("tool_calls")),
        usage(10),
    ]
}

fn saying(id: &str, text: &str) -> Vec<String> {
    let words = text.split_inclusive(' ').map(|word| chunk(id, json!({ "content": word }), None));
    let mut chunks = vec![chunk(id, json!({ "role": "assistant", "content": "" }), None)];
    chunks.extend(words);
    chunks.extend([chunk(id, json!({}), Some("stop")), usage(20)]);
    chunks
}

fn stream(chunks: Vec<String>) -> Answer {
    Answer::sse(chunks.into_iter().chain(["[DONE]".to_owned()]))
}

/// The events of a stream that ends as it should.
fn events(body: &str) -> Vec<Value> {
    let data: Vec<&str> = body.split("\n\n").filter_map(|event| event.strip_prefix("data: ")).collect();
    assert_eq!(data.iter().filter(|data| **data == "[DONE]").count(), 1, "{body}");
    assert_eq!(data.last(), Some(&"[DONE]"), "{body}");
    data[..data.len() - 1].iter().map(|data| serde_json::from_str(data).unwrap()).collect()
}

#[tokio::test]
async fn the_client_sees_one_plain_stream() {
    let scene = Scene::start("").await;
    let reference = scene.reference().await;
    scene.upstream.then(stream(recalling(&reference))).then(stream(saying("two", "It is dry.")));
    let reply = scene.ask(&request(4, STREAM)).await;
    assert_eq!((reply.status, reply.end), (200, End::Complete));
    let events = events(&reply.text());
    let choice = |event: &Value| event["choices"][0].clone();
    let text: String = events
        .iter()
        .filter_map(|event| choice(event)["delta"]["content"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(text, "Let me look. It is dry.");
    let count = |is: &dyn Fn(&Value) -> bool| events.iter().filter(|event| is(event)).count();
    assert_eq!(count(&|event| choice(event)["delta"].get("role").is_some()), 1, "{events:?}");
    assert_eq!(count(&|event| choice(event)["finish_reason"].is_string()), 1, "{events:?}");
    assert_eq!(count(&|event| event["usage"]["prompt_tokens"] == 20), 1, "{events:?}");
    assert_eq!(count(&|event| event["usage"]["prompt_tokens"] == 10), 0, "{events:?}");
    assert!(events.iter().all(|event| event["id"] == "one"), "{events:?}");
    scene.next().await;
    let added = last(&scene.next().await, 2);
    assert_eq!(
        (&added[0]["content"], &added[1]["content"]),
        (&json!("Let me look. "), &json!(original().trim_end()))
    );
}

#[tokio::test]
async fn a_stream_without_calls_arrives_as_it_comes() {
    let scene = Scene::start("").await;
    let gate = Gate::default();
    let chunks = saying("one", "It is dry.");
    let first = format!("data: {}\n\n", chunks[0]);
    let mut answer = Answer::sse(&chunks[..1]).wait(&gate);
    for chunk in chunks[1..].iter().map(String::as_str).chain(["[DONE]"]) {
        answer = answer.event(chunk);
    }
    scene.upstream.then(answer);
    let mut client = Client::connect(scene.tidegate.address).await;
    client.send(post(CHAT, &[], request(4, STREAM))).await;
    let mut reply = client.head().await;
    let piece = client.piece(&mut reply).await.unwrap();
    assert_eq!(String::from_utf8(piece).unwrap(), first, "before the upstream goes on");
    gate.open();
    client.rest(&mut reply).await;
    let whole: String = chunks[1..]
        .iter()
        .map(String::as_str)
        .chain(["[DONE]"])
        .map(|data| format!("data: {data}\n\n"))
        .collect();
    assert_eq!(reply.text(), whole);
}

#[tokio::test]
async fn calls_of_the_clients_own_are_numbered_from_zero() {
    let scene = Scene::start("").await;
    let chunks = vec![
        chunk("one", json!({ "role": "assistant", "content": null }), None),
        chunk("one", begun(0, "r1", TOOL), None),
        chunk("one", goes_on(0, "{\"ref\":\"00000000\"}"), None),
        chunk("one", begun(1, "c1", "shell"), None),
        chunk("one", goes_on(1, "{}"), None),
        chunk("one", json!({}), Some("tool_calls")),
    ];
    scene.upstream.then(stream(chunks));
    let reply = scene.ask(&request(4, STREAM)).await;
    let calls: Vec<Value> = events(&reply.text())
        .iter()
        .flat_map(|event| event["choices"][0]["delta"]["tool_calls"].as_array().cloned().unwrap_or_default())
        .collect();
    assert_eq!(calls.len(), 2, "{}", reply.text());
    assert!(calls.iter().all(|call| call["index"] == 0), "{calls:?}");
    assert_eq!((&calls[0]["id"], &calls[1]["function"]["arguments"]), (&json!("c1"), &json!("{}")));
    assert_eq!(scene.upstream.requests().len(), 1);
}

#[tokio::test]
async fn a_stream_that_cannot_go_on_ends_with_an_error() {
    let scene = Scene::start("").await;
    let reference = scene.reference().await;
    scene.upstream.then(stream(recalling(&reference))).then(Answer::error(
        500,
        "server_error",
        "it broke somewhere",
    ));
    let reply = scene.ask(&request(4, STREAM)).await;
    let text = reply.text();
    assert!(
        text.contains("Let me look.") && text.contains("\"error\"") && !text.contains("[DONE]"),
        "{text}"
    );
    assert!(!text.contains(TOOL), "{text}");
}

#[tokio::test]
async fn a_client_that_leaves_ends_the_second_call() {
    let scene = Scene::start("").await;
    let reference = scene.reference().await;
    let never = Gate::default();
    let silent = Answer::sse(&saying("two", "It")[..1]).wait(&never);
    scene.upstream.then(stream(recalling(&reference))).then(silent);
    let mut client = Client::connect(scene.tidegate.address).await;
    client.send(post(CHAT, &[], request(4, STREAM))).await;
    let mut reply = client.head().await;
    client.piece(&mut reply).await.unwrap();
    scene.next().await;
    scene.next().await;
    drop(client);
    scene.upstream.disconnected().await;
}

/// As OpenAI's own API streams an answer that is nothing but a call: the first chunk has the role and the call.
#[tokio::test]
async fn an_answer_that_begins_with_a_recall_is_the_assistants() {
    let scene = Scene::start("").await;
    let reference = scene.reference().await;
    let mut first = begun(0, "r1", TOOL);
    first["role"] = "assistant".into();
    first["content"] = Value::Null;
    let asks = vec![
        chunk("one", first, None),
        chunk("one", goes_on(0, &format!("{{\"ref\":\"{reference}\"}}")), None),
        chunk("one", json!({}), Some("tool_calls")),
    ];
    scene.upstream.then(stream(asks)).then(stream(saying("two", "It is dry.")));
    let events = events(&scene.ask(&request(4, STREAM)).await.text());
    let role = |event: &Value| event["choices"][0]["delta"]["role"] == "assistant";
    assert_eq!(
        (events.iter().position(role), events.iter().filter(|event| role(event)).count()),
        (Some(0), 1)
    );
}
