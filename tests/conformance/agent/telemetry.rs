//! Section "Telemetry": the headers of each response, and the seven metrics.

use super::run::{Step, metric, result_at, run, run_of, until_counted};
use crate::conformance::scene::{Scene, message};
use crate::support::client::admin;
use crate::support::command::{self, command};
use crate::support::reply::figure;
use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_testkit::{Answer, MockUpstream};

/// The tokens of each message, by `tidegate explain`.
async fn tokens(messages: &[Value]) -> Vec<u64> {
    let directory = TempDir::new().unwrap();
    let body = json!({ "model": "gpt-4o", "messages": messages }).to_string();
    std::fs::write(directory.path().join("request.json"), body).unwrap();
    let output = command::run(command(directory.path()).args(["explain", "--json", "request.json"])).await;
    let explained: Value = serde_json::from_str(&output.out).unwrap();
    explained["messages"].as_array().unwrap().iter().map(|one| one["tokens"].as_u64().unwrap()).collect()
}

fn usage(prompt: u64, completion: u64) -> Answer {
    let choice =
        json!({ "index": 0, "finish_reason": "stop", "message": { "role": "assistant", "content": "ok" } });
    let usage = json!({ "prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion });
    Answer::json(
        200,
        json!({ "id": "c", "object": "chat.completion", "model": "gpt-4o", "choices": [choice], "usage": usage }),
    )
}

#[tokio::test]
async fn masking_is_reported_in_headers_and_metrics() {
    let prices = "[models.\"gpt-4o\"]\ninput = 2.0\ncached_input = 2.0\noutput = 8.0\n";
    let scene = Scene::start("agent", prices).await;
    scene.upstream.answer(usage(1_000, 500));
    let (mut before, mut after) = (0, 0);
    for turns in [10, 11, 13] {
        let (reply, _) = scene.send("c", &run(turns)).await;
        before += figure(&reply, "x-tidegate-tokens-before");
        after += figure(&reply, "x-tidegate-tokens-after");
    }
    until_counted(&scene, 3).await;
    // Of ten turns none is masked, of eleven the first, of thirteen the first three.
    let costs = tokens(&run(13)).await;
    let masked = 2 * costs[result_at(0)] + costs[result_at(1)] + costs[result_at(2)];
    for (name, expected) in [
        ("agent_context_tokens_in", before as f64),
        ("agent_context_tokens_out", after as f64),
        ("agent_context_masked_observation_tokens", masked as f64),
        ("agent_context_summary_tokens", 0.0),
        ("agent_context_summary_calls_total", 0.0),
        // Three times 1,000 tokens at 2 USD per million and 500 at 8.
        ("agent_context_estimated_cost_usd", 0.018),
        ("agent_context_turn_count", 3.0),
    ] {
        let found = metric(&scene, name).await;
        assert!((found - expected).abs() < 1e-9, "{name}: {found}, not {expected}");
    }
    assert!(before > after && after > 0);
}

#[tokio::test]
async fn summaries_are_reported_in_metrics() {
    let summarizer = MockUpstream::start().await;
    summarizer.answer(Answer::chat(
        &json!({ "summary_text": "Ten parts were seen.", "key_facts": ["Part 3 is broken."] }).to_string(),
    ));
    let settings = format!(
        "strategy = \"summarization\"\n[context.fold]\nsummarizer = \"small\"\n[upstreams.side]\nurl = \"{}\"\n\
         [summarizers.small]\nkind = \"llm\"\nupstream = \"side\"\nmodel = \"gpt-4o-mini\"\n",
        summarizer.url()
    );
    let mut scene = Scene::start("agent", &settings).await;
    let mut summaries = 0;
    for turns in [19, 20, 21] {
        let (_, sent) = scene.send("c", &run(turns)).await;
        if let Some(summary) = sent.summary() {
            // The record is a part of the next user message. It is counted as a message.
            let (record, _) =
                summary["content"].as_str().unwrap().split_once("\n\nWhy does the build fail?").unwrap();
            let record = message("user", record);
            summaries += tokens(std::slice::from_ref(&record)).await[0];
        }
    }
    // Ten turns of two messages.
    assert_eq!(scene.tidegate.access_log(3).await[2]["folded"], 20);
    // The summary was made once and sent twice.
    assert_eq!(metric(&scene, "agent_context_summary_calls_total").await, 1.0);
    assert_eq!(metric(&scene, "agent_context_summary_tokens").await, summaries as f64);
    assert_eq!(metric(&scene, "context_summary_count").await, 1.0);
    assert_eq!(summarizer.requests().len(), 1);
}

#[tokio::test]
async fn the_diagnostics_of_each_request_are_logged_and_stored() {
    let mut scene = Scene::start("agent", "[context.limits]\nplateau_window = 2\n").await;
    let steps = (0..12).map(|_| Step::new("{}", format!("Error: {}", "no such file ".repeat(30))));
    let (reply, _) = scene.send("c", &run_of(steps)).await;
    until_counted(&scene, 1).await;
    let page = admin(scene.tidegate.admin, "/api/conversations/c").await.json();
    let turn = &page["turns"][0];
    assert_eq!(turn["tokens_before"], figure(&reply, "x-tidegate-tokens-before"));
    assert_eq!(turn["tokens_after"], figure(&reply, "x-tidegate-tokens-after"));
    assert_eq!(turn["masked"], json!([result_at(0), result_at(1)]));
    assert_eq!((&turn["summary_tokens"], &turn["stop_hint"]), (&0.into(), &4.into()));
    let line = &scene.tidegate.access_log(1).await[0];
    for key in ["tokens_before", "tokens_after"] {
        assert_eq!(line[key], turn[key]);
    }
    assert_eq!((&line["masked"], &line["stop_hint"]), (&2.into(), &4.into()));
    assert!(line.get("folded").is_none());
}
