//! Section "Tuning knobs": when a summary is made, and its maximum length.

use super::run::{metric, run};
use crate::conformance::scene::Scene;
use crate::support::reply::{edited, figure};
use serde_json::json;
use tidegate_testkit::{Answer, MockUpstream};

const FOLDING: [&str; 2] = ["summarization", "hybrid"];

async fn scene(strategy: &str, variable: &str, value: impl ToString) -> Scene {
    let value = value.to_string();
    Scene::start_with("agent", &format!("strategy = \"{strategy}\"\n"), |setup| setup.env(variable, &value))
        .await
}

#[tokio::test]
async fn a_summary_is_made_at_the_turn_threshold() {
    for strategy in FOLDING {
        let scene = scene(strategy, "AGENT_CONTEXT_SUMMARY_TURNS", 14).await;
        // A fold after fourteen turns and after fourteen more. The newest ten stay.
        for (turns, folded) in [(13, 0), (14, 8), (27, 8), (28, 36)] {
            let (reply, sent) = scene.send("c", &run(turns)).await;
            assert_eq!(edited(&reply, "folded"), folded, "{strategy}, {turns} turns");
            let trigger = reply.header("x-tidegate-trigger").filter(|trigger| *trigger == "turns");
            assert_eq!(trigger.is_some(), turns % 14 == 0, "{strategy}, {turns} turns");
            assert_eq!(sent.summary().is_some(), folded > 0);
        }
    }
}

#[tokio::test]
async fn a_summary_is_made_at_the_token_threshold() {
    for strategy in FOLDING {
        let probe = Scene::start("agent", &format!("strategy = \"{strategy}\"\n")).await;
        let (reply, _) = probe.send("c", &run(14)).await;
        let used = figure(&reply, "x-tidegate-tokens-after");
        let below = scene(strategy, "AGENT_CONTEXT_SUMMARY_TOKENS", used + 1).await;
        assert_eq!(edited(&below.send("c", &run(14)).await.0, "folded"), 0, "{strategy}");
        let at = scene(strategy, "AGENT_CONTEXT_SUMMARY_TOKENS", used).await;
        let (reply, sent) = at.send("c", &run(14)).await;
        assert_eq!(edited(&reply, "folded"), 8, "{strategy}");
        assert_eq!(reply.header("x-tidegate-trigger"), Some("budget"));
        assert_eq!(
            &sent.messages()[sent.messages().len() - 20..],
            &run(14)[10..],
            "the newest turns were changed"
        );
    }
}

#[tokio::test]
async fn a_summary_is_made_when_the_budget_is_used_up() {
    let probe = Scene::start("agent", "strategy = \"summarization\"\n").await;
    let used = figure(&probe.send("c", &run(14)).await.0, "x-tidegate-tokens-before");
    for (budget, is_folded) in [(used + 1, false), (used, true), (used - 1, true)] {
        let settings = format!("strategy = \"summarization\"\n[context.budget]\nmax_input = {budget}\n");
        let (reply, _) = Scene::start("agent", &settings).await.send("c", &run(14)).await;
        assert_eq!(edited(&reply, "folded") > 0, is_folded, "{used} of {budget}: {:?}", reply.headers);
        assert!(figure(&reply, "x-tidegate-tokens-after") <= budget);
    }
}

/// A summary that is too long is cut to the cap.
#[tokio::test]
async fn a_summary_is_capped() {
    let summarizer = MockUpstream::start().await;
    let facts: Vec<String> = (0..400)
        .map(|number| format!("Part number {number} of the program was looked at in full, from its first line to its last one, and nothing was found to be wrong with it."))
        .collect();
    summarizer
        .answer(Answer::chat(&json!({ "summary_text": "Much was seen.", "key_facts": facts }).to_string()));
    let model = format!(
        "[upstreams.side]\nurl = \"{}\"\n[summarizers.small]\nkind = \"llm\"\nupstream = \"side\"\nmodel = \"gpt-4o-mini\"\n",
        summarizer.url()
    );
    for (cap, setting) in [(1000, ""), (300, "max_tokens = 300\n")] {
        let settings =
            format!("strategy = \"summarization\"\n[context.fold]\nsummarizer = \"small\"\n{setting}{model}");
        let scene = Scene::start("agent", &settings).await;
        let (reply, sent) = scene.send("c", &run(30)).await;
        assert_eq!(edited(&reply, "folded"), 40);
        assert!(
            sent.summary()
                .is_some_and(|summary| summary["content"].as_str().unwrap().contains("Part number"))
        );
        let tokens = metric(&scene, "agent_context_summary_tokens").await;
        assert!(tokens <= f64::from(cap) && tokens > 0.8 * f64::from(cap), "{tokens} of {cap}");
    }
}
