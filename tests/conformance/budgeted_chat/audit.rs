//! Section 10: the record of every turn, and the metrics.

use super::chat::{MODELS, ask, chat, longer, sized};
use crate::conformance::operator::{conversation, metric};
use crate::conformance::scene::Scene;
use crate::support::reply::figure;
use serde_json::{Value, json};

fn flags(turn: &Value) -> [&Value; 3] {
    [&turn["summary_triggered"], &turn["prune_triggered"], &turn["overflow_rejected"]]
}

fn estimates(turn: &Value) -> [u64; 3] {
    ["tokens_before", "tokens_after_summary", "tokens_after_prune"].map(|name| turn[name].as_u64().unwrap())
}

/// An unchanged turn, a summarized one and a refused one.
#[tokio::test]
async fn each_turn_has_its_figures() {
    let scene = Scene::start("budgeted-chat", MODELS).await;
    let seven = sized(&scene, "x-tidegate-tokens-before", &chat(7), 1, 700).await;
    let plain = ask(&scene, "odd", "plain", &seven).await;
    let summarized = ask(&scene, "even", "summarized", &seven).await;
    let refused = ask(&scene, "even", "refused", &longer(&chat(1), 1, 1_000)).await;
    assert_eq!((plain.status, summarized.status, refused.status), (200, 200, 422));
    let mut turns = Vec::new();
    for (name, model, window, budget) in [
        ("plain", "odd", 2_531, 1_001),
        ("summarized", "even", 2_530, 1_000),
        ("refused", "even", 2_530, 1_000),
    ] {
        let turn = conversation(&scene.tidegate, name, 1).await["turns"][0].clone();
        assert_eq!(
            (&turn["model"], &turn["window"], &turn["budget"]),
            (&json!(model), &json!(window), &json!(budget))
        );
        turns.push(turn);
    }
    assert_eq!((flags(&turns[0]), estimates(&turns[0])), ([false; 3].map(Value::from).each_ref(), [700; 3]));
    let after = figure(&summarized, "x-tidegate-tokens-after");
    assert_eq!(estimates(&turns[1]), [700, after, after]);
    assert_eq!(flags(&turns[1]), [true, false, false].map(Value::from).each_ref());
    let needed = figure(&refused, "x-tidegate-tokens-after");
    assert_eq!(estimates(&turns[2]), [needed; 3]);
    assert_eq!(flags(&turns[2]), [false, false, true].map(Value::from).each_ref());
}

/// The request does not fit even after a summary.
#[tokio::test]
async fn a_refusal_after_a_summary_records_both() {
    let scene = Scene::start("budgeted-chat", MODELS).await;
    let last = chat(8).len() - 1;
    let refused = ask(&scene, "even", "c", &longer(&chat(8), last, 1_000)).await;
    assert_eq!(refused.status, 422);
    let turn = &conversation(&scene.tidegate, "c", 1).await["turns"][0];
    assert_eq!(
        (&turn["summary_triggered"], &turn["overflow_rejected"]),
        (&json!(true), &json!(true)),
        "{turn}"
    );
    let [before, _, after] = estimates(turn);
    assert!(before > after && after > 1_000, "{turn}");
}

/// `model_alias` is the client's name for the model, whether or not the request was refused.
#[tokio::test]
async fn the_model_is_recorded_under_the_clients_name() {
    let scene = Scene::start("budgeted-chat", "").await;
    let alias = "gpt-4o-2024-08-06";
    assert_eq!(ask(&scene, alias, "c", &chat(1)).await.status, 200);
    conversation(&scene.tidegate, "c", 1).await;
    assert_eq!(ask(&scene, alias, "c", &longer(&chat(1), 1, 130_000)).await.status, 422);
    let page = conversation(&scene.tidegate, "c", 2).await;
    assert_eq!((&page["turns"][0]["model"], &page["turns"][1]["model"]), (&json!(alias), &json!(alias)));
}

#[tokio::test]
async fn the_four_metrics_are_counted() {
    let scene = Scene::start("budgeted-chat", MODELS).await;
    let read = async || {
        let mut values = Vec::new();
        for name in ["context_summary_count", "context_prune_count", "context_overflow_reject_count"] {
            values.push(metric(&scene.tidegate, name).await);
        }
        values
    };
    assert_eq!(read().await, [0.0, 0.0, 0.0]);
    let mut sent = Vec::new();
    for turns in 6..=8 {
        let (reply, _) = scene.send("c", &chat(turns)).await;
        sent.push(figure(&reply, "x-tidegate-tokens-after") as f64);
    }
    assert_eq!(read().await, [1.0, 0.0, 0.0]);
    assert_eq!(ask(&scene, "even", "d", &longer(&chat(1), 1, 1_000)).await.status, 422);
    assert_eq!(read().await, [1.0, 0.0, 1.0]);
    // Only forwarded requests count.
    let average = metric(&scene.tidegate, "avg_prompt_tokens_per_turn").await;
    assert!((average - sent.iter().sum::<f64>() / 3.0).abs() < 0.01, "{average} and {sent:?}");
}
