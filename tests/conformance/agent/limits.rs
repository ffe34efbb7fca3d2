//! Section "Tuning knobs": the hard stops `maxTurns` and `maxCostUsd`.

use super::run::{metric, run, until_counted};
use crate::conformance::scene::Scene;
use crate::support::reply::{Reply, edited};
use serde_json::json;
use tidegate_testkit::{Answer, MockUpstream};

#[tokio::test]
async fn a_run_ends_at_max_turns() {
    let by_variable = Scene::start_with("agent", "", |setup| setup.env("AGENT_CONTEXT_MAX_TURNS", "4")).await;
    let by_setting = Scene::start("agent", "[context.limits]\nmax_turns = 4\n").await;
    for scene in [by_variable, by_setting] {
        for turns in 0..4 {
            // A retry does not count as a turn.
            scene.send("c", &run(turns)).await;
            scene.send("c", &run(turns)).await;
        }
        let reply = scene.ask("c", &run(4)).await;
        assert_eq!((reply.status, reply.error_code().as_str()), (422, "max_turns_exceeded"));
        assert!(reply.text().contains("4 turns") && reply.text().contains("context.limits.max_turns"));
        assert_eq!(scene.upstream.requests().len(), 8, "a refused request was sent");
        // Another conversation has its own turns.
        scene.send("other", &run(3)).await;
    }
}

#[tokio::test]
async fn without_a_limit_a_run_goes_on() {
    let scene = Scene::start("agent", "").await;
    scene.send("c", &run(150)).await;
}

/// 0.16 USD per request: 40,000 new tokens at 2 USD per million, 60,000 cached at 0.50, and 5,000 output tokens at 10.
const PRICES: &str = "[models.\"m\"]\nwindow = 200000\nencoding = \"o200k_base\"\ninput = 2.0\ncached_input = 0.5\noutput = 10.0\n";

fn billed() -> Answer {
    let choice =
        json!({ "index": 0, "finish_reason": "stop", "message": { "role": "assistant", "content": "ok" } });
    let usage = json!({ "prompt_tokens": 100_000, "completion_tokens": 5_000, "total_tokens": 105_000,
        "prompt_tokens_details": { "cached_tokens": 60_000 } });
    Answer::json(
        200,
        json!({ "id": "c", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage }),
    )
}

async fn priced(limit: f64) -> Scene {
    let settings = format!("[context.limits]\nmax_cost_usd = {limit:?}\n{PRICES}");
    let scene = Scene::start("agent", &settings).await.model("m");
    scene.upstream.answer(billed());
    scene
}

fn assert_refused(reply: &Reply, figures: [&str; 2]) {
    assert_eq!((reply.status, reply.error_code().as_str()), (422, "max_cost_exceeded"));
    assert!(figures.iter().all(|figure| reply.text().contains(figure)), "{}", reply.text());
}

#[tokio::test]
async fn a_run_ends_at_max_cost() {
    let scene = priced(0.32).await;
    scene.send("c", &run(0)).await;
    until_counted(&scene, 1).await;
    assert!((metric(&scene, "agent_context_estimated_cost_usd").await - 0.16).abs() < 1e-9);
    scene.send("c", &run(1)).await;
    until_counted(&scene, 2).await;
    assert!((metric(&scene, "agent_context_estimated_cost_usd").await - 0.32).abs() < 1e-9);
    assert_refused(&scene.ask("c", &run(2)).await, ["$0.32", "context.limits.max_cost_usd"]);
    assert_eq!(scene.upstream.requests().len(), 2, "a refused request was sent");
    scene.send("other", &run(2)).await;
}

#[tokio::test]
async fn a_run_below_max_cost_goes_on() {
    let scene = priced(0.33).await;
    for turns in 0..3 {
        scene.send("c", &run(turns)).await;
        until_counted(&scene, turns as u64 + 1).await;
    }
    assert_refused(&scene.ask("c", &run(3)).await, ["$0.48", "$0.33"]);
}

/// The cost of summaries is part of the cost of a run.
#[tokio::test]
async fn summaries_count_towards_the_cost() {
    let summarizer = MockUpstream::start().await;
    let summary =
        json!({ "summary_text": "Much was seen.", "key_facts": ["The parser is at fault."] }).to_string();
    let choice = json!({ "index": 0, "finish_reason": "stop", "message": { "role": "assistant", "content": summary } });
    // A tenth of a dollar: 50,000 tokens at 2 USD per million.
    let usage = json!({ "prompt_tokens": 50_000, "completion_tokens": 0, "total_tokens": 50_000 });
    summarizer.answer(Answer::json(200, json!({ "id": "s", "choices": [choice], "usage": usage })));
    let settings = format!(
        "strategy = \"summarization\"\n[context.fold]\nsummarizer = \"small\"\nwhen = {{ turns = 14 }}\n[context.limits]\n\
         max_cost_usd = 0.26\n{PRICES}[upstreams.side]\nurl = \"{}\"\n[summarizers.small]\nkind = \"llm\"\nupstream = \"side\"\nmodel = \"m\"\n",
        summarizer.url()
    );
    let scene = Scene::start("agent", &settings).await.model("m");
    scene.upstream.answer(billed());
    let (reply, _) = scene.send("c", &run(14)).await;
    assert_eq!(edited(&reply, "folded"), 8);
    until_counted(&scene, 1).await;
    assert_refused(&scene.ask("c", &run(15)).await, ["$0.26", "context.limits.max_cost_usd"]);
    assert!((metric(&scene, "tidegate_summarizer_cost_usd_total").await - 0.1).abs() < 1e-9);
}

/// Errors are not billed, so retries against a failing provider do not end a run.
#[tokio::test]
async fn an_error_costs_nothing() {
    let scene = priced(0.16).await;
    for status in [500, 429] {
        scene.upstream.then(Answer::error(status, "overloaded", "Come back later."));
        assert_eq!(scene.ask("c", &run(1)).await.status, status);
    }
    // Some upstreams report an error after the response has started.
    scene.upstream.then(Answer::sse([json!({ "error": { "message": "Come back later." } }).to_string()]));
    assert_eq!(scene.ask("c", &run(1)).await.status, 200);
    until_counted(&scene, 3).await;
    assert_eq!(metric(&scene, "agent_context_estimated_cost_usd").await, 0.0);
    assert_eq!(scene.ask("c", &run(1)).await.status, 200);
    until_counted(&scene, 4).await;
    assert_eq!(scene.ask("c", &run(1)).await.status, 422);
}
