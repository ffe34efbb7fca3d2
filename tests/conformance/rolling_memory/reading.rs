//! Sections 1 and 11: the state is explicit and readable by its owner.

use super::turns::{INSTRUCTION, answer, body, exchanged, headers, question, send, turn, turns};
use crate::conformance::scene::{Scene, message};
use crate::conformance::summarizer::{Summarizer, with_fact};
use crate::support::client::{exchange, request};
use crate::support::reply::Reply;
use serde_json::{Value, json};

async fn state(scene: &Scene, headers: &[(&str, &str)]) -> Reply {
    exchange(scene.tidegate.address, request("GET", "/tidegate/v1/conversation", headers, b"")).await
}

fn texts(messages: &Value) -> Vec<&str> {
    messages.as_array().unwrap().iter().map(|one| one["content"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn the_owner_can_read_the_summary_and_recent_messages() {
    let summarizer = Summarizer::start(&with_fact("Pier 1 is a metre long.")).await;
    let scene = Scene::start("rolling-memory", &summarizer.settings("")).await;
    turn(&scene, "c", 1).await;
    let early = state(&scene, &headers("c")).await.json();
    assert_eq!((&early["summary"], &early["covered_messages"]), (&Value::Null, &json!(0)));
    assert_eq!(texts(&early["recent_messages"]), [question(1), answer(1)]);
    turns(&scene, "c", 2..=7).await;
    let reply = state(&scene, &headers("c")).await;
    assert_eq!((reply.status, reply.header("cache-control")), (200, Some("no-store")));
    let state = reply.json();
    assert_eq!(state["summary"]["key_facts"][0]["text"], "Pier 1 is a metre long.");
    assert_eq!((&state["messages"], &state["covered_messages"]), (&json!(14), &json!(6)));
    assert_eq!(texts(&state["recent_messages"]), exchanged(4..=7));
    assert_eq!(texts(&state["instructions"]), [INSTRUCTION]);
    // Tidegate answers itself: nothing is forwarded.
    assert_eq!(scene.upstream.requests().len(), 7);
}

#[tokio::test]
async fn another_tenant_sees_nothing() {
    let scene = Scene::start("rolling-memory", "").await;
    turns(&scene, "c", 1..=7).await;
    let stranger = [("x-conversation-id", "c"), ("authorization", "Bearer bob")];
    let reply = state(&scene, &stranger).await;
    let seen = reply.text();
    assert!(!seen.contains("pier") && !seen.contains(INSTRUCTION), "{seen}");
    let seen = reply.json();
    assert_eq!((&seen["summary"], &seen["messages"]), (&Value::Null, &json!(0)));
    // A request under the same name does not get the state either.
    let asked = body("gpt-4o", &[message("user", "What do you know?")]);
    let reply = send(scene.tidegate.address, &stranger, &asked).await;
    assert_eq!(reply.status, 200);
    let sent = scene.upstream.requests().pop().unwrap().json();
    assert_eq!(texts(&sent["messages"]), ["What do you know?"]);
}

#[tokio::test]
async fn a_request_without_a_conversation_id_is_refused() {
    let scene = Scene::start("rolling-memory", "").await;
    let asked = body("gpt-4o", &[message("user", "Who am I?")]);
    let reply = send(scene.tidegate.address, &[("authorization", "Bearer ada")], &asked).await;
    assert_eq!((reply.status, reply.error_code().as_str()), (400, "conversation_id_required"));
    assert_eq!(reply.json()["error"]["param"], "x-conversation-id");
    let reply = state(&scene, &[("authorization", "Bearer ada")]).await;
    assert_eq!((reply.status, reply.error_code().as_str()), (400, "conversation_id_required"));
    assert!(scene.upstream.requests().is_empty());
}
