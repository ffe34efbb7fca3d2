//! Sections 3 and 4: how much of a model's window the input may use.

use super::chat::{ask, chat};
use crate::conformance::operator::conversation;
use crate::conformance::scene::Scene;
use crate::support::client::{CHAT, exchange, post};
use crate::support::reply::figure;
use crate::support::tidegate::Setup;
use serde_json::json;

/// The recorded window and budget. The budget also matches the response header.
async fn budget_of(scene: &Scene, model: &str) -> (u64, u64) {
    let reply = ask(scene, model, model, &chat(1)).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let turn = &conversation(&scene.tidegate, model, 1).await["turns"][0];
    assert_eq!(turn["budget"], figure(&reply, "x-tidegate-budget"));
    (turn["window"].as_u64().unwrap(), turn["budget"].as_u64().unwrap())
}

#[tokio::test]
async fn an_unknown_model_has_a_window_of_8192() {
    let scene = Scene::start("budgeted-chat", "").await;
    // 20 % are 1,638.4, and 5 % are fewer than 1,024.
    assert_eq!(budget_of(&scene, "unknown-model").await, (8_192, 8_192 - 1_638 - 1_024));
    assert_eq!(8_192 - 1_638 - 1_024, 5_530);
}

/// On both sides of the points where a reserve changes its rule.
#[tokio::test]
async fn the_reserves_follow_their_two_rules() {
    let cases: [(u64, u64, u64); 7] = [
        (4_096, 819, 1_024),
        // A fifth reaches 2,048 at 10,240.
        (10_239, 2_047, 1_024),
        (10_240, 2_048, 1_024),
        (10_245, 2_048, 1_024),
        // A twentieth passes 1,024 at 20,500.
        (20_499, 2_048, 1_024),
        (20_500, 2_048, 1_025),
        (131_072, 2_048, 6_553),
    ];
    let models: String =
        cases.iter().map(|(window, ..)| format!("[models.\"w{window}\"]\nwindow = {window}\n")).collect();
    let scene = Scene::start("budgeted-chat", &models).await;
    for (window, output, overhead) in cases {
        let budget = budget_of(&scene, &format!("w{window}")).await;
        assert_eq!(budget, (window, window - output - overhead), "a window of {window}");
    }
}

#[tokio::test]
async fn the_environment_sets_the_output_reserve() {
    for (set, output) in [("512", 512), ("2048", 1_638), ("100000", 1_638)] {
        let with = |setup: Setup| setup.env("CONTEXT_MAX_OUTPUT_TOKENS", set);
        let scene = Scene::start_with("budgeted-chat", "", with).await;
        let budget = budget_of(&scene, "unknown-model").await;
        // Never more than a fifth of the window.
        assert_eq!(budget, (8_192, 8_192 - output - 1_024), "{set}");
    }
}

/// The provider reserves the request's own `max_tokens`, so that overrides the setting.
#[tokio::test]
async fn max_tokens_overrides_the_output_reserve() {
    let scene = Scene::start("budgeted-chat", "").await;
    let body = json!({ "model": "unknown-model", "messages": chat(1), "max_tokens": 100 }).to_string();
    let headers = [("x-conversation-id", "c")];
    let request = post(CHAT, &headers, body);
    let reply = exchange(scene.tidegate.address, request).await;
    assert_eq!(figure(&reply, "x-tidegate-budget"), 8_192 - 100 - 1_024);
}

#[tokio::test]
async fn a_window_smaller_than_its_reserves_is_refused() {
    let models = "[models.\"none\"]\nwindow = 1280\n[models.\"one\"]\nwindow = 1281\n";
    let scene = Scene::start("budgeted-chat", models).await;
    // 1,280 − 256 − 1,024 is zero; of 1,281 one token is left, which is too few for any message.
    for (model, budget) in [("none", 0), ("one", 1)] {
        let reply = ask(&scene, model, "c", &chat(1)).await;
        assert_eq!((reply.status, reply.error_code().as_str()), (422, "context_budget_exceeded"));
        assert_eq!(figure(&reply, "x-tidegate-budget"), budget);
    }
    assert!(scene.upstream.requests().is_empty());
}
