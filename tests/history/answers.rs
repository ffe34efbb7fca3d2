//! Complete answers that an API would not take back as they came, and instructions in the middle of a conversation.

use super::scene::{OWNER, Scene, completion, said};
use crate::messages::MESSAGES;
use crate::responses::RESPONSES;
use crate::support::client::{CHAT, exchange, post};
use serde_json::{Value, json};
use tidegate_testkit::Answer;

/// Sends a request. Returns what was forwarded.
async fn forwarded(scene: &Scene, path: &str, body: Value) -> Value {
    let reply = exchange(scene.address(0), post(path, &OWNER, body.to_string())).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    scene.upstream.next_request().await.json()
}

#[tokio::test]
async fn chat_completions_without_words_end_their_turn() {
    let scene = Scene::start(1, "").await;
    let answers = [
        (json!({ "role": "assistant", "content": null }), json!({ "role": "assistant", "content": "" })),
        (
            json!({ "role": "assistant", "content": null, "refusal": null, "annotations": [] }),
            json!({ "role": "assistant", "content": "" }),
        ),
        (
            json!({ "role": "assistant", "content": null, "reasoning_content": "Hm." }),
            json!({ "role": "assistant", "content": "", "reasoning_content": "Hm." }),
        ),
    ];
    let mut expected = Vec::new();
    for (number, (answer, kept)) in answers.into_iter().enumerate() {
        expected.push(said(&format!("u{number}")));
        scene.upstream.then(completion(&answer));
        let body = json!({ "model": "gpt-4o", "messages": [expected.last()] });
        assert_eq!(forwarded(&scene, CHAT, body).await["messages"], json!(expected));
        expected.push(kept);
    }
    expected.push(said("u9"));
    let body = json!({ "model": "gpt-4o", "messages": [said("u9")] });
    assert_eq!(forwarded(&scene, CHAT, body).await["messages"], json!(expected));
}

#[tokio::test]
async fn messages_without_content_end_their_turn() {
    let scene = Scene::start(1, "").await;
    let message = |content: Value, reason: &str| {
        Answer::json(
            200,
            json!({ "id": "m", "type": "message", "role": "assistant", "content": content, "stop_reason": reason }),
        )
    };
    let event = |event: Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    let cut_off = [
        json!({ "type": "message_start", "message": { "role": "assistant", "content": [] } }),
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "Hm." } }),
        json!({ "type": "content_block_start", "index": 1, "content_block": { "type": "tool_use", "id": "t", "name": "f", "input": {} } }),
        json!({ "type": "content_block_delta", "index": 1, "delta": { "type": "input_json_delta", "partial_json": "{\"path\": \"/e" } }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "max_tokens" } }),
        json!({ "type": "message_stop" }),
    ];
    let cut_off = Answer::new(200)
        .header("content-type", "text/event-stream")
        .chunk(cut_off.into_iter().map(event).collect::<String>());
    let none = json!([{ "type": "text", "text": "[no answer]" }]);
    let answers = [
        (message(json!([]), "end_turn"), none.clone()),
        (message(json!([{ "type": "text", "text": "" }]), "end_turn"), none),
        (cut_off, json!([{ "type": "text", "text": "Hm." }])),
    ];
    let body = |text: &str| json!({ "model": "claude", "max_tokens": 9, "messages": [said(text)] });
    let mut expected = Vec::new();
    for (number, (answer, kept)) in answers.into_iter().enumerate() {
        let text = format!("u{number}");
        expected.push(said(&text));
        scene.upstream.then(answer);
        assert_eq!(forwarded(&scene, MESSAGES, body(&text)).await["messages"], json!(expected));
        expected.push(json!({ "role": "assistant", "content": kept }));
    }
    expected.push(said("u9"));
    scene.upstream.then(message(json!([{ "type": "text", "text": "a9" }]), "end_turn"));
    assert_eq!(forwarded(&scene, MESSAGES, body("u9")).await["messages"], json!(expected));
}

#[tokio::test]
async fn a_response_that_is_made_in_the_background_ends_its_turn() {
    let scene = Scene::start(1, "").await;
    let response = |status: &str, output: Value| {
        Answer::json(200, json!({ "id": "r", "object": "response", "status": status, "output": output }))
    };
    scene.upstream.then(response("queued", json!([])));
    let body = json!({ "model": "gpt-5", "background": true, "input": [said("u1")] });
    forwarded(&scene, RESPONSES, body).await;
    // All tokens went into thinking.
    scene.upstream.then(response("incomplete", json!([{ "type": "reasoning", "id": "rs", "summary": [] }])));
    forwarded(&scene, RESPONSES, json!({ "model": "gpt-5", "input": [said("u2")] })).await;
    scene.upstream.then(response("completed", json!([])));
    let none = json!({ "role": "assistant", "content": "[no answer]" });
    let sent = forwarded(&scene, RESPONSES, json!({ "model": "gpt-5", "input": [said("u3")] })).await;
    assert_eq!(sent["input"], json!([said("u1"), none, said("u2"), none, said("u3")]));
}

/// What the client says first stands first, and is replaced by what it says first later. In the middle, it stays where it was said.
#[tokio::test]
async fn instructions_keep_their_places() {
    let scene = Scene::start(1, "").await;
    let system = |text: &str| json!({ "role": "system", "content": text });
    let answer = |text: &str| json!({ "role": "assistant", "content": text });
    let send = async |messages: &[Value]| {
        let body = json!({ "model": "gpt-4o", "messages": messages });
        forwarded(&scene, CHAT, body).await["messages"].clone()
    };
    send(&[system("s1"), said("u1"), system("middle"), said("u2")]).await;
    let first = [said("u1"), system("middle"), said("u2"), answer("a2")];
    let sent = send(&[said("u3")]).await;
    assert_eq!(sent, json!([&[system("s1")], &first[..], &[said("u3")]].concat()));
    let second = [&first[..], &[said("u3"), answer("a3")]].concat();
    // Not at the beginning of what is sent, so not instead of the first.
    let sent = send(&[said("u4"), system("late")]).await;
    assert_eq!(sent, json!([&[system("s1")], &second[..], &[said("u4"), system("late")]].concat()));
    let third = [&second[..], &[said("u4"), system("late"), answer("late")]].concat();
    for number in 5..8 {
        // Nothing is kept twice.
        let sent = send(&[system("s2"), said("u5")]).await;
        let sent = sent.as_array().unwrap();
        assert_eq!(sent[..third.len() + 1], [&[system("s2")], &third[..]].concat());
        assert_eq!(sent.len(), third.len() + 2 + 2 * (number - 5), "{sent:#?}");
    }
}
