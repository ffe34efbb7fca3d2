//! Section 2: recent messages include the assistant's, whether streamed or not, and tool calls.

use super::turns::{INSTRUCTION, body, headers, send};
use crate::conformance::scene::{Scene, Sent, message};
use crate::support::reply::edited;
use serde_json::{Value, json};
use tidegate_testkit::Answer;

/// Sends a streaming request. Returns the forwarded request.
async fn streamed(scene: &Scene, name: &str, text: &str) -> Sent {
    let mut request = body("gpt-4o", &[message("system", INSTRUCTION), message("user", text)]);
    request["stream"] = json!(true);
    let reply = send(scene.tidegate.address, &headers(name), &request).await;
    assert!(reply.status == 200 && reply.text().contains("[DONE]"), "{}", reply.text());
    Sent(scene.upstream.next_request().await.json())
}

#[tokio::test]
async fn a_streamed_answer_is_remembered() {
    let scene = Scene::start("rolling-memory", "").await;
    scene.upstream.answer(Answer::chat_stream(["The pier", " is nine", " metres long."]));
    streamed(&scene, "c", "How long is it?").await;
    let sent = streamed(&scene, "c", "And how wide?").await;
    let expected = [INSTRUCTION, "How long is it?", "The pier is nine metres long.", "And how wide?"];
    assert_eq!(sent.contents(), expected);
    assert_eq!(sent.messages()[2]["role"], "assistant");
}

fn call(id: &str, pier: u32) -> Value {
    let arguments = json!({ "pier": pier }).to_string();
    json!({ "id": id, "type": "function", "function": { "name": "measure", "arguments": arguments } })
}

/// An answer that calls tools.
fn calling(calls: &Value) -> Answer {
    let message = json!({ "role": "assistant", "content": null, "tool_calls": calls });
    let choice = json!({ "index": 0, "finish_reason": "tool_calls", "message": message });
    Answer::json(200, json!({ "id": "c", "object": "chat.completion", "choices": [choice] }))
}

/// The answer has two calls; the next request has only their results.
#[tokio::test]
async fn tool_calls_are_remembered_with_their_results() {
    let scene = Scene::start("rolling-memory", "").await;
    let calls = json!([call("call_1", 1), call("call_2", 2)]);
    scene.upstream.then(calling(&calls));
    scene.send("c", &[message("system", INSTRUCTION), message("user", "How long are they?")]).await;
    let results = [
        json!({ "role": "tool", "tool_call_id": "call_1", "content": "9 m" }),
        json!({ "role": "tool", "tool_call_id": "call_2", "content": "8 m" }),
    ];
    let (_, sent) = scene.send("c", &results).await;
    let messages = sent.messages();
    assert_eq!((messages.len(), &messages[2]["tool_calls"]), (5, &calls));
    assert_eq!(messages[3..], results);
    // Calls and results are remembered, with the next answer.
    let (_, sent) = scene.send("c", &[message("user", "Thank you.")]).await;
    assert_eq!(sent.messages()[..5], *messages);
    assert_eq!(sent.contents()[5..], ["ok", "Thank you."]);
}

/// The same with streamed calls.
#[tokio::test]
async fn streamed_tool_calls_are_remembered() {
    let scene = Scene::start("rolling-memory", "").await;
    let piece = |delta: Value| {
        json!({ "id": "c", "object": "chat.completion.chunk", "choices": [{ "index": 0, "delta": delta }] })
            .to_string()
    };
    let opened = json!({ "index": 0, "id": "call_1", "type": "function", "function": { "name": "measure", "arguments": "" } });
    let more = |text: &str| json!({ "tool_calls": [{ "index": 0, "function": { "arguments": text } }] });
    let pieces = [
        piece(json!({ "role": "assistant", "content": null, "tool_calls": [opened] })),
        piece(more("{\"pier\":")),
        piece(more("1}")),
        json!({ "id": "c", "object": "chat.completion.chunk", "choices": [{ "index": 0, "delta": {}, "finish_reason": "tool_calls" }] }).to_string(),
        "[DONE]".to_owned(),
    ];
    scene.upstream.then(Answer::sse(pieces));
    streamed(&scene, "c", "How long is it?").await;
    let result = json!({ "role": "tool", "tool_call_id": "call_1", "content": "9 m" });
    let (_, sent) = scene.send("c", std::slice::from_ref(&result)).await;
    let messages = sent.messages();
    assert_eq!((messages.len(), &messages[2]["tool_calls"]), (4, &json!([call("call_1", 1)])));
    assert_eq!(messages[3], result);
}

/// If the sixth message from the end is a result, the calls before it are kept as well.
#[tokio::test]
async fn calls_at_the_edge_are_kept_with_their_results() {
    let scene = Scene::start("rolling-memory", "").await;
    let long = |text: &str| format!("{text} {}", "as it was asked for. ".repeat(20));
    let mut last = None;
    for turn in 1..=3 {
        let ids = [format!("call_{turn}_a"), format!("call_{turn}_b")];
        scene.upstream.then(calling(&json!([call(&ids[0], turn), call(&ids[1], turn)])));
        let (reply, _) = scene.send("c", &[message("user", &long(&format!("question {turn}")))]).await;
        assert_eq!(edited(&reply, "folded"), 0);
        let results = ids.map(|id| json!({ "role": "tool", "tool_call_id": id, "content": long(&id) }));
        last = Some(scene.send("c", &results).await);
    }
    // Two turns of a question, a message with two calls, two results and an answer, and a third without the answer: fourteen messages.
    // The sixth from the end is the second result of the second turn.
    let (reply, sent) = last.unwrap();
    assert_eq!((reply.header("x-tidegate-trigger"), edited(&reply, "folded")), (Some("messages"), 6));
    assert!(sent.summary().is_some());
    let called = sent.messages().iter().filter_map(|one| one["tool_calls"].as_array()).flatten();
    let called: Vec<&Value> = called.map(|call| &call["id"]).collect();
    let answered: Vec<&Value> = sent.messages().iter().filter_map(|one| one.get("tool_call_id")).collect();
    assert_eq!(called, answered);
    assert_eq!(called, ["call_2_a", "call_2_b", "call_3_a", "call_3_b"]);
}
