//! Answers that are not streamed.

use super::{Scene, TOOL, call, calling, last, original, recalling, request};
use crate::support::client::{CHAT, admin, exchange, post};
use serde_json::{Value, json};
use tidegate_testkit::{Answer, Coding};

#[tokio::test]
async fn a_recall_is_answered_and_the_client_gets_the_final_answer() {
    let scene = Scene::start("").await;
    let reference = scene.reference().await;
    scene.upstream.then(recalling(&reference)).then(Answer::chat("It is dry."));
    let reply = scene.ask(&request(4, "")).await;
    assert_eq!(reply.json()["choices"][0]["message"]["content"], "It is dry.");
    let (first, second) = (scene.next().await, scene.next().await);
    let added = last(&second, 2);
    assert_eq!(added[0]["tool_calls"][0]["function"]["name"], TOOL);
    assert_eq!(
        (&added[1]["tool_call_id"], &added[1]["content"]),
        (&json!("r1"), &json!(original().trim_end()))
    );
    // Everything before is what was sent first, so that the provider has it in its cache.
    let common = first.bytes().zip(second.bytes()).take_while(|(one, other)| one == other).count();
    assert!(first[common..].trim_start().starts_with(']'), "{}", &first[common..]);
    let metrics = admin(scene.tidegate.admin, "/metrics").await.text();
    assert!(
        metrics.contains("tidegate_recall_calls_total{result=\"found\",route=\"default\"} 1"),
        "{metrics}"
    );
}

#[tokio::test]
async fn what_the_client_does_not_see_is_billed_all_the_same() {
    let scene = Scene::start("").await;
    let reference = scene.reference().await;
    let final_answer = || {
        Answer::json(
            200,
            json!({ "id": "a", "choices": [{ "index": 0, "finish_reason": "stop",
            "message": { "role": "assistant", "content": "done" } }], "usage": { "prompt_tokens": 1000, "completion_tokens": 10 } }),
        )
    };
    scene.upstream.then(final_answer());
    scene.ask(&request(4, "")).await;
    scene.upstream.then(recalling(&reference)).then(final_answer());
    let reply = scene.ask(&request(4, "")).await;
    assert_eq!(reply.json()["usage"]["prompt_tokens"], 1000, "usage is the upstream's own");
    let text = async || admin(scene.tidegate.admin, "/metrics").await.text();
    let cost = |text: &str| -> f64 {
        let line =
            text.lines().find(|line| line.starts_with("agent_context_estimated_cost_usd")).unwrap_or("x 0");
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    let until = crate::support::until("both turns are counted", crate::support::PATIENCE, text, |text| {
        cost(text) > 2.9 * (1000.0 * 2.5 + 10.0 * 10.0) / 1e6
    });
    until.await;
}

#[tokio::test]
async fn calls_of_the_clients_own_reach_it_without_ours() {
    let scene = Scene::start("").await;
    let reference = scene.reference().await;
    let own = call("c1", "shell", &json!({ "of": "x" }));
    scene.upstream.then(calling(&[call("r1", TOOL, &json!({ "ref": reference })), own.clone()]));
    let answer = scene.ask(&request(4, "")).await.json();
    assert_eq!(answer["choices"][0]["message"]["tool_calls"], json!([own]));
    assert_eq!(answer["choices"][0]["finish_reason"], "tool_calls");
}

#[tokio::test]
async fn a_compressed_answer_is_read_too() {
    let scene = Scene::start("").await;
    let reference = scene.reference().await;
    scene.upstream.encode(Some(Coding::Gzip), false);
    scene.upstream.then(recalling(&reference)).then(Answer::chat("It is dry."));
    let reply = scene.ask(&request(4, "")).await;
    let body = match reply.header("content-encoding") {
        Some("gzip") => {
            let mut plain = Vec::new();
            std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&reply.body[..]), &mut plain)
                .unwrap();
            plain
        }
        _ => reply.body.clone(),
    };
    let answer: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(answer["choices"][0]["message"]["content"], "It is dry.");
}

/// The answer after a recall is one to a longer request than the one that was counted.
#[tokio::test]
async fn a_recall_teaches_nothing_wrong_about_counts() {
    let scene = Scene::start("").await;
    let reference = scene.reference().await;
    let sent = request(4, "").replace("\"gpt-4o\"", "\"claude-opus-4-7\"");
    let message = |message: Value, usage: Value| {
        Answer::json(
            200,
            json!({ "id": "a", "choices": [{ "index": 0, "finish_reason": "stop", "message": message }], "usage": usage }),
        )
    };
    let asks = json!({ "role": "assistant", "content": null, "tool_calls": [call("r1", TOOL, &json!({ "ref": reference }))] });
    let says = json!({ "role": "assistant", "content": "It is dry." });
    let usage =
        |tokens: u64| json!({ "prompt_tokens": tokens, "completion_tokens": 1, "total_tokens": tokens + 1 });
    let ask = async |conversation: &str| {
        let named = [("x-conversation-id", conversation)];
        let reply = exchange(scene.tidegate.address, post(CHAT, &named, &sent)).await;
        assert_eq!(reply.status, 200);
        reply
    };
    // Our counts of the request where nothing is recalled, as it was sent and as it was forwarded.
    let counts = async || {
        scene.upstream.then(message(says.clone(), Value::Null));
        let reply = ask("counted").await;
        ["x-tidegate-tokens-before", "x-tidegate-tokens-after"]
            .map(|name| reply.header(name).unwrap().parse::<u64>().unwrap())
    };
    let [before, after] = counts().await;
    // The first answer has no usage, so there is nothing to compare our count with.
    scene.upstream.then(message(asks.clone(), Value::Null)).then(message(says.clone(), usage(2 * after)));
    ask("unreported").await;
    assert_eq!(counts().await, [before, after]);
    // Its own usage is that of the request which was counted.
    scene
        .upstream
        .then(message(asks.clone(), usage(after / 2)))
        .then(message(says.clone(), usage(2 * after)));
    ask("reported").await;
    assert!(counts().await[0] < before);
}
