//! Gone is gone, in every process.

use super::scene::{OWNER, Scene, ask, completion, said};
use crate::support::client::{CHAT, admin, exchange, post, request};
use crate::support::metrics::value;
use crate::support::reply::Reply;
use crate::support::tidegate::Setup;
use crate::support::{until, within};
use serde_json::json;
use std::net::SocketAddr;
use std::time::Duration;
use tidegate_testkit::{Answer, Gate, Recorded};
use tokio::task::JoinHandle;

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
    scene.upstream.then(held(&gate));
    let running = streamed(scene.address(0), "u2");
    scene.forwarded().await;
    assert_eq!(delete(&scene, 1).await, 204);
    gate.open();
    let reply = within("the turn ends", running).await.unwrap();
    assert!(
        !reply.text().contains("[DONE]") && reply.text().contains("conversation_deleted"),
        "{}",
        reply.text()
    );
    assert_eq!(scene.said(1, "u3").await, ["u3"]);
    let raw = scene.redis.cli(&["--scan", "--pattern", "tg:1:*:m"]).await;
    assert_eq!(scene.redis.cli(&["HLEN", raw.trim()]).await.trim(), "2");
}

/// An answer that waits.
fn held(gate: &Gate) -> Answer {
    let choice =
        json!({ "index": 0, "finish_reason": "stop", "message": { "role": "assistant", "content": "late" } });
    let events = [json!({ "choices": [choice] }).to_string(), "[DONE]".to_owned()];
    let held = Answer::new(200).header("content-type", "text/event-stream").chunked().head().wait(gate);
    held.event(&events[0]).event(&events[1])
}

/// Asks for a stream, and reads to its end.
fn streamed(address: SocketAddr, text: &str) -> JoinHandle<Reply> {
    let body = json!({ "model": "gpt-4o", "stream": true, "messages": [said(text)] }).to_string();
    tokio::spawn(exchange(address, post(CHAT, &OWNER, body)))
}

/// Whoever begins the conversation anew does not wait for a turn of the one that is gone, through whatever process.
#[tokio::test]
async fn a_deleted_conversation_can_be_begun_while_a_turn_of_it_runs() {
    let scene = Scene::start(3, "[conversation]\nturn_timeout = \"60s\"\n").await;
    for (round, deleting) in [(0, 0), (1, 1)] {
        for beginning in 0..3 {
            let gate = Gate::new();
            scene.upstream.then(held(&gate));
            let running = streamed(scene.address(0), "u1");
            assert_eq!(scene.forwarded().await, ["u1"]);
            // There is nothing yet but the turn that runs.
            let status = delete(&scene, deleting).await;
            assert!(status == 404 || status == 204, "{status}");
            let text = format!("u{round}{beginning}");
            assert_eq!(scene.said(beginning, &text).await, std::slice::from_ref(&text));
            gate.open();
            let reply = within("the turn ends", running).await.unwrap();
            assert!(reply.text().contains("conversation_deleted"), "{}", reply.text());
            let next = scene.said(beginning, "u9").await;
            assert_eq!(next, [text.clone(), text.replacen('u', "a", 1), "u9".to_owned()]);
            assert_eq!(delete(&scene, deleting).await, 204);
        }
    }
}

/// What a request has recalled before its turn may be gone when the turn begins.
#[tokio::test]
async fn a_pinned_text_of_a_deleted_conversation_does_not_come_back() {
    let scene = Scene::start(0, "").await;
    let config = format!(
        "[store]\nurl = \"{}\"\n[conversation]\nturn_timeout = \"60s\"\n[context]\nhistory = \"proxy\"\n",
        scene.redis.url()
    );
    let tidegate = Setup::new(&config).upstream(&scene.upstream.url()).start().await;
    assert_eq!(ask(tidegate.address, &[], &[said("u1")]).await.status, 200);
    scene.forwarded().await;
    let put = "PUT /api/conversations/c/memory HTTP/1.1\r\nhost: localhost\r\ncontent-type: text/plain\r\n\
               content-length: 10\r\n\r\nthe secret";
    let pin = async || exchange(tidegate.admin, put).await.status;
    until("it is pinned", Duration::from_secs(20), pin, |status| *status == 204).await;
    let gate = Gate::new();
    scene.upstream.then(held(&gate));
    let address = tidegate.address;
    let first = streamed(address, "u2");
    let text = |sent: Recorded| String::from_utf8_lossy(&sent.body).into_owned();
    let sent = text(scene.upstream.next_request().await);
    assert!(sent.contains("the secret"), "{sent}");
    let second = tokio::spawn(async move { ask(address, &[], &[said("u3")]).await });
    // It waits for its turn.
    let in_flight = async || {
        let page = admin(tidegate.admin, "/metrics").await.text();
        value(&page, "tidegate_requests_in_flight", &[]).unwrap_or_default()
    };
    until("both are in flight", Duration::from_secs(20), in_flight, |count| *count >= 2.0).await;
    let deleted = exchange(address, request("DELETE", "/tidegate/v1/conversation", &OWNER, b"")).await;
    assert_eq!(deleted.status, 204);
    assert_eq!(within("the second turn", second).await.unwrap().status, 200);
    let sent = text(scene.upstream.next_request().await);
    assert!(sent.contains("u3") && !sent.contains("secret") && !sent.contains("u1"), "{sent}");
    gate.open();
    within("the first turn", first).await.unwrap();
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
