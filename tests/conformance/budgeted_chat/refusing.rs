//! Sections 5 and 9: a request that still does not fit is refused.

use super::chat::{MODELS, WIDE, ask, chat, longer, sized};
use crate::conformance::scene::Scene;
use crate::support::reply::{edited, figure};
use serde_json::json;

#[tokio::test]
async fn a_refusal_has_a_code_the_figures_and_advice() {
    let scene = Scene::start("budgeted-chat", "").await.model("unknown-model");
    let long = longer(&chat(1), 1, 6_000);
    let reply = scene.ask("c", &long).await;
    assert_eq!((reply.status, reply.error_code().as_str()), (422, "context_budget_exceeded"));
    let needed = figure(&reply, "x-tidegate-tokens-after");
    let text = reply.json()["error"]["message"].as_str().unwrap().to_owned();
    for part in [
        format!("needs {needed} input tokens"),
        "5530 may be used: a window of 8192 less 1638 reserved for the answer and 1024 for overhead"
            .to_owned(),
        "Shorten the input, start a new conversation".to_owned(),
    ] {
        assert!(text.contains(&part), "{part} in {text}");
    }
    assert_eq!(reply.json()["error"]["param"], json!("messages"));
    assert!(scene.upstream.requests().is_empty(), "the refused request was sent");
}

/// A request that uses the whole budget is forwarded; one token more is refused.
#[tokio::test]
async fn one_token_over_the_budget_is_refused() {
    let scene = Scene::start("budgeted-chat", MODELS).await;
    let messages = sized(&scene, "x-tidegate-tokens-before", &chat(1), 1, 1_001).await;
    assert_eq!(ask(&scene, "odd", "fits", &messages).await.status, 200);
    let reply = ask(&scene, "even", "over", &messages).await;
    assert_eq!((reply.status, reply.error_code().as_str()), (422, "context_budget_exceeded"));
    assert_eq!(
        (figure(&reply, "x-tidegate-tokens-after"), figure(&reply, "x-tidegate-budget")),
        (1_001, 1_000)
    );
}

/// Only the request is refused: a shorter one continues the conversation.
#[tokio::test]
async fn a_shorter_question_continues_the_conversation() {
    let scene = Scene::start("budgeted-chat", MODELS).await;
    let last = chat(8).len() - 1;
    let reply = ask(&scene, "even", "c", &longer(&chat(8), last, 2_000)).await;
    assert_eq!(reply.status, 422);
    let reply = ask(&scene, "even", "c", &chat(8)).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
}

/// For a smaller model the same messages are summarized, although an earlier request sent them without a summary.
#[tokio::test]
async fn a_smaller_model_gets_a_summary() {
    let scene = Scene::start("budgeted-chat", MODELS).await;
    let messages = sized(&scene, "x-tidegate-tokens-before", &chat(7), 1, 1_200).await;
    let reply = ask(&scene, WIDE, "c", &messages).await;
    assert_eq!((reply.status, edited(&reply, "folded")), (200, 0));
    let reply = ask(&scene, "even", "c", &messages).await;
    assert_eq!((reply.status, edited(&reply, "folded")), (200, 4), "{}", reply.text());
}
