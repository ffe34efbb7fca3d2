//! The order of turns: one after another, by the chain and not by a clock.

use super::scene::{OWNER, Scene, answer, ask, said, texts};
use crate::support::client::{CHAT, Client, exchange, post, request};
use crate::support::within;
use serde_json::json;
use tidegate_testkit::{Answer, Gate};
use tokio::task::JoinSet;

#[tokio::test]
async fn requests_at_once_run_one_after_another() {
    let scene = Scene::start(2, "").await;
    let mut tasks = JoinSet::new();
    for number in 0..8 {
        let address = scene.address(number % 2);
        tasks.spawn(async move { ask(address, &[], &[said(&format!("u{number}"))]).await.status });
    }
    assert_eq!(tasks.join_all().await, [200; 8]);
    for _ in 0..8 {
        scene.forwarded().await;
    }
    let all = scene.said(0, "u9").await;
    assert_eq!(all.len(), 17, "{all:?}");
    for turn in all[..16].chunks(2) {
        assert_eq!(turn[1], turn[0].replace('u', "a"), "{all:?}");
    }
}

#[tokio::test]
async fn a_conversation_that_stays_busy_is_refused() {
    let scene = Scene::start(2, "[conversation]\nturn_timeout = \"300ms\"\n").await;
    let gate = Gate::new();
    let choice =
        json!({ "index": 0, "finish_reason": "stop", "message": { "role": "assistant", "content": "a1" } });
    scene.upstream.then(
        Answer::new(200)
            .header("content-type", "application/json")
            .wait(&gate)
            .chunk(json!({ "choices": [choice] }).to_string()),
    );
    let address = scene.address(0);
    let first = tokio::spawn(async move { ask(address, &[], &[said("u1")]).await });
    scene.forwarded().await;
    for process in [0, 1] {
        let reply = scene.say(process, "u2").await;
        assert_eq!((reply.status, reply.error_code().as_str()), (409, "conversation_busy"));
        assert!(reply.header("retry-after").is_some());
    }
    gate.open();
    assert_eq!(within("the first turn", first).await.unwrap().status, 200);
    assert_eq!(scene.said(1, "u2").await, ["u1", "a1", "u2"]);
}

/// A process whose clock is a minute ahead writes one turn; the others must not take it for the newest for a minute.
#[tokio::test]
async fn a_clock_that_runs_ahead_hides_no_turn() {
    let mut scene = Scene::start(2, "").await;
    let ahead = scene.setup("").faketime("+60s").start().await;
    scene.processes.push(ahead);
    scene.said(0, "u1").await;
    scene.said(2, "u2").await;
    scene.said(0, "u3").await;
    assert_eq!(scene.said(1, "u4").await, ["u1", "a1", "u2", "a2", "u3", "a3", "u4"]);
}

#[tokio::test]
async fn a_retry_is_there_once() {
    let scene = Scene::start(2, "").await;
    scene.said(0, "u1").await;
    let retry: &[&[(&str, &str)]] = &[&[("x-stainless-retry-count", "1")], &[("idempotency-key", "k")]];
    for (number, headers) in retry.iter().enumerate() {
        let text = format!("u{}", number + 2);
        for process in [0, 1, 0] {
            let reply = ask(scene.address(process), headers, &[said(&text)]).await;
            assert_eq!(reply.status, 200);
            let sent = scene.forwarded().await;
            assert_eq!((sent.len(), sent.last()), (3 + 2 * number, Some(&text)), "{sent:?}");
        }
    }
    assert_eq!(scene.said(0, "u9").await, ["u1", "a1", "u2", "a2", "u3", "a3", "u9"]);
}

/// A retry that fails leaves the turn as it was.
#[tokio::test]
async fn a_failed_retry_loses_nothing() {
    let scene = Scene::start(1, "").await;
    scene.said(0, "u1").await;
    scene.upstream.then(Answer::error(500, "server_error", "Something went wrong."));
    let reply = ask(scene.address(0), &[("x-stainless-retry-count", "1")], &[said("u1")]).await;
    assert_eq!(reply.status, 500);
    scene.forwarded().await;
    assert_eq!(scene.said(0, "u2").await, ["u1", "a1", "u2"]);
}

/// The owner reads what is kept.
#[tokio::test]
async fn the_owner_reads_the_log() {
    let scene = Scene::start(2, "").await;
    scene.said(0, "u1").await;
    let read = request("GET", "/tidegate/v1/conversation", &OWNER, b"");
    let state = exchange(scene.address(1), read).await.json();
    let recent = json!({ "messages": state["recent_messages"] });
    assert_eq!(texts(&recent), ["u1", "a1"]);
    let mut client = Client::connect(scene.address(1)).await;
    client.send(post(CHAT, &OWNER, json!({ "model": "gpt-4o", "messages": [said("u2")] }).to_string())).await;
    assert_eq!(client.reply().await.status, 200);
    scene.upstream.script(answer);
}
