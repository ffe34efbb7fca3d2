//! A model that asks for nothing, or again and again.

use super::{Scene, TOOL, call, calling, last, recalling, request};
use serde_json::json;
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
    // The scene's own request, and one more than there may be calls.
    assert_eq!(scene.upstream.requests().len(), 1 + 3);
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
