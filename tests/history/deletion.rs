//! Gone is gone, in every process.

use super::scene::{OWNER, Scene, completion, said};
use crate::support::client::{CHAT, exchange, post, request};
use crate::support::{until, within};
use serde_json::json;
use std::time::Duration;
use tidegate_testkit::{Answer, Gate};

async fn delete(scene: &Scene, process: usize) -> u16 {
    exchange(scene.address(process), request("DELETE", "/tidegate/v1/conversation", &OWNER, b"")).await.status
}

#[tokio::test]
async fn a_deleted_conversation_is_gone_in_every_process() {
    let scene = Scene::start(3, "").await;
    for process in 0..3 {
        scene.said(process, &format!("u{process}")).await;
    }
    assert_eq!(delete(&scene, 0).await, 204);
    assert_eq!(delete(&scene, 1).await, 404);
    assert_eq!(scene.said(1, "u5").await, ["u5"]);
    assert_eq!(scene.said(2, "u6").await, ["u5", "a5", "u6"]);
    assert_eq!(scene.said(0, "u7").await, ["u5", "a5", "u6", "a6", "u7"]);
}

/// A turn that was running when its conversation was deleted does not bring it back.
#[tokio::test]
async fn a_turn_under_way_does_not_bring_a_deleted_conversation_back() {
    let scene = Scene::start(2, "").await;
    scene.said(0, "u1").await;
    let gate = Gate::new();
    let choice =
        json!({ "index": 0, "finish_reason": "stop", "message": { "role": "assistant", "content": "a2" } });
    let events = [json!({ "choices": [choice] }).to_string(), "[DONE]".to_owned()];
    let held = Answer::new(200).header("content-type", "text/event-stream").chunked().head().wait(&gate);
    scene.upstream.then(held.event(&events[0]).event(&events[1]));
    let body = json!({ "model": "gpt-4o", "stream": true, "messages": [said("u2")] }).to_string();
    let running = tokio::spawn(exchange(scene.address(0), post(CHAT, &OWNER, body)));
    scene.forwarded().await;
    assert_eq!(delete(&scene, 1).await, 204);
    gate.open();
    let reply = within("the turn ends", running).await.unwrap();
    assert!(
        !reply.text().contains("[DONE]") && reply.text().contains("conversation_busy"),
        "{}",
        reply.text()
    );
    assert_eq!(scene.said(1, "u3").await, ["u3"]);
    let raw = scene.redis.cli(&["--scan", "--pattern", "tg:1:*:m"]).await;
    assert_eq!(scene.redis.cli(&["HLEN", raw.trim()]).await.trim(), "2");
}

#[tokio::test]
async fn an_expired_conversation_is_gone_in_every_process() {
    let scene = Scene::start(2, "[store]\nttl = \"2s\"\n").await;
    scene.said(0, "u1").await;
    scene.said(1, "u2").await;
    let keys = async || scene.redis.cli(&["--scan", "--pattern", "tg:1:*:l"]).await;
    until("the conversation expires", Duration::from_secs(10), keys, |keys| keys.trim().is_empty()).await;
    assert_eq!(scene.said(0, "u3").await, ["u3"]);
    assert_eq!(scene.said(1, "u4").await, ["u3", "a3", "u4"]);
    scene.upstream.then(completion(&json!({ "role": "assistant", "content": "x" })));
}
