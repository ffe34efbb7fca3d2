//! Section "Tuning knobs": `tokenBudget`, `reservedForResponse`, `maxContextPct`.

use super::run::run;
use crate::conformance::scene::{Scene, message};
use crate::support::client::{CHAT, exchange, post};
use crate::support::reply::figure;
use serde_json::json;

async fn budget(scene: &Scene) -> u64 {
    figure(&scene.send("c", &[message("user", "hello")]).await.0, "x-tidegate-budget")
}

/// The total minus the reserve or 85 % of the total, whichever is less.
#[tokio::test]
async fn a_thousand_tokens_are_reserved_and_85_percent_used() {
    for (total, expected) in
        [(2_000, 1_000), (4_096, 3_096), (6_666, 5_666), (6_667, 5_666), (8_192, 6_963), (128_000, 108_800)]
    {
        let settings = format!("[models.\"m\"]\nwindow = {total}\n");
        let scene = Scene::start("agent", &settings).await.model("m");
        assert_eq!(budget(&scene).await, expected, "of {total}");
    }
}

#[tokio::test]
async fn the_environment_sets_the_reserve() {
    for (reserve, expected) in [("1800", 6_392), ("1000", 6_963), ("0", 6_963), ("5000", 3_192)] {
        let model = "[models.\"m\"]\nwindow = 8192\n";
        let scene = Scene::start_with("agent", model, |setup| setup.env("AGENT_CONTEXT_RESERVED", reserve));
        assert_eq!(budget(&scene.await.model("m")).await, expected, "{reserve}");
    }
}

/// A request knows best how long its answer may be.
#[tokio::test]
async fn max_tokens_overrides_the_reserve() {
    let scene = Scene::start("agent", "[models.\"m\"]\nwindow = 8192\n").await;
    let body =
        json!({ "model": "m", "max_tokens": 3000, "messages": [message("user", "hello")] }).to_string();
    let reply = exchange(scene.tidegate.address, post(CHAT, &[("x-conversation-id", "c")], body)).await;
    assert_eq!(figure(&reply, "x-tidegate-budget"), 5_192);
}

/// Exact to the token: a request that fits is forwarded; with one token more, it is refused and nothing is sent.
#[tokio::test]
async fn a_masked_request_at_the_budget_passes_and_one_token_more_is_refused() {
    let probe = Scene::start("agent", "").await;
    let masked = figure(&probe.send("c", &run(12)).await.0, "x-tidegate-tokens-after");
    for (budget, status) in [(masked, 200), (masked - 1, 422)] {
        let scene = Scene::start("agent", &format!("[context.budget]\nmax_input = {budget}\n")).await;
        let reply = scene.ask("c", &run(12)).await;
        assert_eq!(reply.status, status, "{}", reply.text());
        assert_eq!(figure(&reply, "x-tidegate-tokens-after"), masked);
        assert_eq!(scene.upstream.requests().len(), usize::from(status == 200));
        if status == 422 {
            assert_eq!(reply.error_code(), "context_budget_exceeded");
        }
    }
}
