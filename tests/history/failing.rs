//! A history that cannot be read, and turns that fail.

use super::scene::{Scene, ask, completion, said};
use crate::support::client::{CHAT, Client, admin, exchange, post};
use crate::support::cores::quiet;
use crate::support::{until, within};
use serde_json::{Value, json};
use std::time::Duration;
use tidegate_testkit::{Answer, Ending};

/// A turn without its history is worse than none.
#[tokio::test]
async fn a_stalled_store_destroys_no_history() {
    let scene = Scene::start(2, "").await;
    for (number, text) in ["u1", "u2", "u3"].into_iter().enumerate() {
        scene.said(number % 2, text).await;
    }
    let sent = scene.upstream.requests().len();
    scene.redis.cli(&["CLIENT", "PAUSE", "2000", "ALL"]).await;
    for process in [0, 1] {
        let reply = scene.say(process, "u4").await;
        assert_eq!((reply.status, reply.error_code().as_str()), (503, "store_unavailable"));
        assert!(reply.header("x-tidegate-degraded").is_some() && reply.header("retry-after").is_some());
    }
    assert_eq!(scene.upstream.requests().len(), sent, "a request was sent without its history");
    let ask = async || scene.say(1, "u4").await;
    until("the store is read again", Duration::from_secs(20), ask, |reply| reply.status == 200).await;
    scene.forwarded().await;
    let ask = async || scene.say(0, "u5").await;
    until("the other process reads it again", Duration::from_secs(20), ask, |reply| reply.status == 200)
        .await;
    assert_eq!(scene.forwarded().await, ["u1", "a1", "u2", "a2", "u3", "a3", "u4", "a4", "u5"]);
}

#[tokio::test]
async fn a_rejected_message_does_not_stay_in_the_history() {
    let scene = Scene::start(1, "").await;
    scene.said(0, "u1").await;
    let image =
        json!({ "role": "user", "content": [{ "type": "image_url", "image_url": { "url": "bad" } }] });
    scene.upstream.then(Answer::error(400, "invalid_image", "The image cannot be read."));
    assert_eq!(ask(scene.address(0), &[], &[image]).await.status, 400);
    assert_eq!(scene.upstream.next_request().await.json()["messages"].as_array().unwrap().len(), 3);
    assert_eq!(scene.said(0, "u2").await, ["u1", "a1", "u2"]);
    // It is in the raw timeline, marked.
    let path = "/api/conversations/c/messages";
    let read = async || admin(scene.processes[0].admin, path).await.json();
    let timeline = until("it is recorded", Duration::from_secs(5), read, |timeline: &Value| {
        timeline["messages"].as_array().is_some_and(|messages| messages.len() == 5)
    });
    let timeline = timeline.await;
    let marked: Vec<&Value> =
        timeline["messages"].as_array().unwrap().iter().filter(|one| one["abandoned"] == true).collect();
    assert_eq!(marked.len(), 1, "{timeline}");
    assert!(marked[0]["message"].to_string().contains("image_url"), "{timeline}");
}

#[tokio::test]
async fn an_unreachable_upstream_leaves_no_message_behind() {
    let scene = Scene::start(1, "").await;
    scene.said(0, "u1").await;
    let elsewhere = scene.setup_without_upstream("").upstream("http://127.0.0.1:9").start().await;
    assert_eq!(ask(elsewhere.address, &[], &[said("lost")]).await.status, 502);
    assert_eq!(scene.said(0, "u2").await, ["u1", "a1", "u2"]);
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_not_kept() {
    let scene = Scene::start(1, "").await;
    scene.said(0, "u1").await;
    let stream = Answer::chat_stream(["half", " an", " answer"]);
    scene.upstream.then(stream.break_after_body_bytes(250, Ending::Reset));
    let body = json!({ "model": "gpt-4o", "stream": true, "messages": [said("lost")] }).to_string();
    let reply = exchange(scene.address(0), post(CHAT, &super::scene::OWNER, body)).await;
    assert!(!reply.text().contains("[DONE]"), "{}", reply.text());
    scene.forwarded().await;
    assert_eq!(scene.said(0, "u2").await, ["u1", "a1", "u2"]);
}

#[tokio::test]
async fn a_turn_that_its_client_aborts_is_not_kept() {
    let scene = Scene::start(2, "").await;
    scene.said(0, "u1").await;
    scene.upstream.then(Answer::chat_stream(["half", " an", " answer"]).stall_after_chunks(2));
    let body = json!({ "model": "gpt-4o", "stream": true, "messages": [said("lost")] }).to_string();
    let mut client = Client::connect(scene.address(0)).await;
    client.send(post(CHAT, &super::scene::OWNER, body)).await;
    let mut head = client.head().await;
    client.piece(&mut head).await.unwrap();
    drop(client);
    scene.upstream.disconnected().await;
    scene.forwarded().await;
    assert_eq!(scene.said(1, "u2").await, ["u1", "a1", "u2"]);
}

#[tokio::test]
async fn answers_are_kept_with_every_member_that_came() {
    let scene = Scene::start(1, "").await;
    let message = json!({ "role": "assistant", "content": "a1", "reasoning_content": "Hm.", "x_vendor": { "b": 1, "a": [1.5] } });
    scene.upstream.then(completion(&message));
    scene.said(0, "u1").await;
    let delta = |delta: Value| json!({ "choices": [{ "index": 0, "delta": delta }] }).to_string();
    scene.upstream.then(Answer::sse([
        delta(json!({ "role": "assistant", "reasoning_content": "Let me" })),
        delta(json!({ "reasoning_content": " think." })),
        delta(json!({ "content": "a2", "x_signature": "s" })),
        json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] }).to_string(),
        "[DONE]".to_owned(),
    ]));
    let body = json!({ "model": "gpt-4o", "stream": true, "messages": [said("u2")] }).to_string();
    exchange(scene.address(0), post(CHAT, &super::scene::OWNER, body)).await;
    assert_eq!(scene.upstream.next_request().await.json()["messages"][1], message);
    scene.say(0, "u3").await;
    let sent = scene.upstream.next_request().await.json();
    let streamed = json!({ "role": "assistant", "content": "a2", "reasoning_content": "Let me think.", "x_signature": "s" });
    assert_eq!((&sent["messages"][1], &sent["messages"][3]), (&message, &streamed));
}

/// While a history of many megabytes is rebuilt, the worker serves others.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn rebuilding_a_history_does_not_block_the_worker() {
    let _quiet = quiet().await;
    let scene = Scene::start(1, "[server]\nworkers = 1\n[store]\ntimeout = \"20s\"\n").await;
    // A fixed answer: the upstream is in this process and must not take its time.
    scene.upstream.answer(completion(&json!({ "role": "assistant", "content": "ok" })));
    let escaped = "\\u00e9\\n".repeat(1_000_000);
    for number in 1..=3 {
        let body =
            format!(r#"{{"model":"unknown","messages":[{{"role":"user","content":"u{number}{escaped}"}}]}}"#);
        let reply = exchange(scene.address(0), post(CHAT, &super::scene::OWNER, body)).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        scene.upstream.next_request().await;
    }
    let turn = scene.say(0, "u4");
    let mut pings = 0;
    let pinging = async {
        loop {
            let reply = exchange(
                scene.address(0),
                "GET /v1/models HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
            )
            .await;
            assert_eq!(reply.status, 200);
            pings += 1;
        }
    };
    let reply = tokio::select! {
        reply = within("the turn", turn) => reply,
        () = pinging => unreachable!(),
    };
    assert_eq!(reply.status, 200, "{}", reply.text());
    // A worker that rebuilds the history itself serves a handful before and after.
    assert!(pings > 20, "only {pings} requests were served meanwhile");
}
