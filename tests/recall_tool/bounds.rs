//! A model that asks for nothing, or again and again.

use super::{Scene, TOOL, TOOLS, call, calling, last, recalling, request};
use crate::support::agent::{Message, body, conversation};
use crate::support::client::{CHAT, exchange, post};
use serde_json::{Value, json};
use tidegate_testkit::Answer;

#[tokio::test]
async fn an_unknown_reference_gets_an_answer_too() {
    let scene = Scene::start("").await;
    scene.upstream.then(recalling("00000000")).then(Answer::chat("Never mind."));
    let reply = scene.ask(&request(4, "")).await;
    assert_eq!(reply.json()["choices"][0]["message"]["content"], "Never mind.");
    scene.next().await;
    let result = last(&scene.next().await, 1)[0]["content"].as_str().unwrap().to_owned();
    assert!(result.contains("00000000"), "{result}");
    for arguments in [json!("{"), json!({}), json!({ "ref": 7 })] {
        scene.upstream.then(calling(&[call("r1", TOOL, &arguments)])).then(Answer::chat("Never mind."));
        assert_eq!(scene.ask(&request(4, "")).await.status, 200);
        scene.next().await;
        let result = last(&scene.next().await, 1)[0]["content"].as_str().unwrap().to_owned();
        assert!(result.contains("7f3a09c1"), "{result}");
    }
}

#[tokio::test]
async fn a_model_that_only_recalls_is_stopped() {
    let scene = Scene::start("max_calls = 2\n").await;
    let reference = scene.reference().await;
    scene.upstream.answer(recalling(&reference));
    let answer = scene.ask(&request(4, "")).await.json();
    let choice = &answer["choices"][0];
    assert_eq!((&choice["finish_reason"], &choice["message"]["content"]), (&json!("stop"), &json!("")));
    assert!(choice["message"].get("tool_calls").is_none(), "{answer}");
    // The scene's own request; the first one, and one for each call; the one that says that there is nothing more; and the last, which can
    // only be answered in words.
    let requests = scene.upstream.requests();
    assert_eq!(requests.len(), 1 + 3 + 2);
    let arrived: Vec<Value> =
        requests.iter().map(|request| serde_json::from_slice(&request.body).unwrap()).collect();
    assert!(arrived[..5].iter().all(|request| request.get("tool_choice").is_none()));
    assert_eq!((&arrived[5]["tool_choice"], &arrived[5]["tools"]), (&json!("none"), &arrived[4]["tools"]));
    let text =
        |request: usize| arrived[request]["messages"].as_array().unwrap().last().unwrap()["content"].clone();
    assert!(text(3).as_str().unwrap().starts_with("result 0"), "{}", text(3));
    assert!(text(4).as_str().unwrap().starts_with("No more recalls"), "{}", text(4));
}

#[tokio::test]
async fn a_model_that_recalls_for_too_long_is_stopped() {
    let scene = Scene::start("max_calls = 10000\ntimeout = \"1ms\"\n").await;
    let reference = scene.reference().await;
    scene.upstream.answer(recalling(&reference));
    let answer = scene.ask(&request(4, "")).await.json();
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    // Each of them takes a part of a millisecond at least.
    assert!(scene.upstream.requests().len() < 1_000);
}

#[tokio::test]
async fn an_empty_answer_after_a_recall_is_an_answer() {
    let scene = Scene::start("").await;
    let reference = scene.reference().await;
    let empty = Answer::json(
        200,
        json!({ "id": "a", "choices": [{ "index": 0, "finish_reason": "stop", "message": { "role": "assistant", "content": "" } }] }),
    );
    scene.upstream.then(recalling(&reference)).then(empty);
    let answer = scene.ask(&request(4, "")).await.json();
    assert_eq!(answer["choices"][0]["message"]["content"], "");
    assert_eq!(scene.upstream.requests().len(), 1 + 2);
}

/// What is recalled never makes a request longer than the policy allows.
#[tokio::test]
async fn what_is_recalled_fits_into_the_room_that_is_left() {
    let mut messages = conversation(4);
    let long = (0..1_000).map(|line| format!("line {line} of a long result\n")).collect::<String>();
    messages[3].content = json!(long).to_string();
    let sent = body("gpt-4o", &messages, &[]).replacen("\"top_p\"", &format!("{TOOLS}\"top_p\""), 1);
    for (most, expected) in [(4_000, "It goes on."), (1_000, "There is no room left")] {
        let budget = format!("[context.budget]\nmax_input = {most}\n");
        let scene = Scene::start(&budget).await;
        let placeholder = scene.arrived(&sent).await;
        let at = placeholder.find("ref ").unwrap() + 4;
        scene.upstream.then(recalling(&placeholder[at..at + 8])).then(Answer::chat("Fine."));
        let named = [("x-conversation-id", "narrow")];
        let reply = exchange(scene.tidegate.address, post(CHAT, &named, &sent)).await;
        assert_eq!(reply.status, 200);
        scene.next().await;
        let second = scene.next().await;
        let result = last(&second, 1)[0]["content"].as_str().unwrap().to_owned();
        assert!(result.contains(expected), "{most}: {result}");
        if expected == "It goes on." {
            let forwarded: u64 = reply.header("x-tidegate-tokens-after").unwrap().parse().unwrap();
            let added = tidegate_tokens::count(tidegate_tokens::Encoding::O200k, &result);
            assert!(added.0 > 1_000 && forwarded + added.0 < most, "{forwarded} and {added:?} of {most}");
        }
        // And it is the same when it is put back.
        messages.extend([Message::assistant("Fine."), Message::user("Are you sure?")]);
        let next = body("gpt-4o", &messages, &[]).replacen("\"top_p\"", &format!("{TOOLS}\"top_p\""), 1);
        messages.truncate(messages.len() - 2);
        scene.upstream.then(Answer::chat("Quite."));
        assert_eq!(exchange(scene.tidegate.address, post(CHAT, &named, &next)).await.status, 200);
        let third: Value = serde_json::from_str(&scene.next().await).unwrap();
        let put_back = third["messages"].as_array().unwrap().iter().find(|one| one["tool_call_id"] == "r1");
        assert_eq!(put_back.unwrap()["content"], json!(result), "{most}");
    }
}

#[tokio::test]
async fn calls_beyond_the_limit_are_told_so() {
    let scene = Scene::start("max_calls = 1\n").await;
    let reference = scene.reference().await;
    let two = ["r1", "r2"].map(|id| call(id, TOOL, &json!({ "ref": reference })));
    scene.upstream.then(calling(&two)).then(Answer::chat("Fine."));
    assert_eq!(scene.ask(&request(4, "")).await.json()["choices"][0]["message"]["content"], "Fine.");
    scene.next().await;
    let results = last(&scene.next().await, 2);
    assert!(results[0]["content"].as_str().unwrap().starts_with("result 0"), "{results:?}");
    assert!(results[1]["content"].as_str().unwrap().starts_with("No more recalls"), "{results:?}");
}

#[tokio::test]
async fn an_error_after_a_recall_is_the_upstreams_own() {
    let scene = Scene::start("").await;
    let reference = scene.reference().await;
    scene.upstream.then(recalling(&reference)).then(Answer::error(
        429,
        "rate_limit_exceeded",
        "slow down, please",
    ));
    let reply = scene.ask(&request(4, "")).await;
    assert_eq!((reply.status, reply.error_code().as_str()), (429, "rate_limit_exceeded"));
}
