//! Sections "Context Budget Hierarchy", "Budget Constants" and "Model Context Windows": all figures.

use super::narrative::{ask, tidegate};
use crate::conformance::scene::{Scene, message};
use crate::support::client::{CHAT, exchange, post};
use crate::support::reply::figure;
use serde_json::{Value, json};

/// `ENTITY_TRACKING_TOKEN_RESERVE`: tokens that are added to a request later.
const ENTITY_TRACKING: u64 = 10_500;

/// A model's budget by `tidegate explain`: window, safe, output, overhead, input.
async fn explained(settings: &str, model: &str) -> [u64; 5] {
    let request = json!({ "model": model, "messages": [message("user", "hello")] });
    let output = tidegate(settings, &request, &["explain", "--json", "request.json"]).await;
    let budget = &serde_json::from_str::<Value>(&output).unwrap()["budget"];
    assert_eq!(budget["window_source"], if settings.contains("[models") { "config" } else { "route" });
    ["window", "safe", "output", "overhead", "input"].map(|key| budget[key].as_u64().unwrap())
}

#[tokio::test]
async fn the_table_of_models_matches_the_document() {
    let scene = Scene::start("story", "").await;
    for (model, window, safe, max_input) in [
        ("zai-glm-4.6", 131_072, 117_964, 94_372),
        ("qwen-3-235b", 131_072, 117_964, 94_372),
        ("llama-3.3-70b", 65_536, 58_982, 47_186),
        ("meta-llama/llama-3.1-70b", 131_072, 117_964, 94_372),
        // Its safe budget of 900,000 is capped at 300,000 to limit latency.
        ("gemini-2.0-flash", 1_000_000, 300_000, 240_000),
    ] {
        let output = safe - max_input;
        let input = max_input - ENTITY_TRACKING;
        assert_eq!(explained("", model).await, [window, safe, output, ENTITY_TRACKING, input], "{model}");
        let reply = ask(&scene, model, model, &[message("user", "hello")], None).await;
        assert_eq!(figure(&reply, "x-tidegate-budget"), input, "{model}");
    }
}

#[tokio::test]
async fn without_the_cap_the_largest_model_has_720_000_tokens() {
    let settings = "[context.budget]\nwindow_cap = 1000000\n";
    let expected = [1_000_000, 900_000, 180_000, ENTITY_TRACKING, 720_000 - ENTITY_TRACKING];
    assert_eq!(explained(settings, "gemini-2.0-flash").await, expected);
}

/// A deployment can differ from the document's table.
#[tokio::test]
async fn the_operators_model_settings_override_the_profiles_table() {
    let settings = "[models.\"zai-glm-4.6\"]\nwindow = 200000\n";
    let [window, safe, ..] = explained(settings, "zai-glm-4.6").await;
    assert_eq!((window, safe), (200_000, 180_000));
    // A route overrides both.
    let both = format!("{settings}[context.budget.windows]\n\"zai-*\" = 100000\n\"zai-glm-4.6\" = 100000\n");
    let scene = Scene::start("story", &both).await;
    let reply = ask(&scene, "w", "zai-glm-4.6", &[message("user", "hello")], None).await;
    assert_eq!(figure(&reply, "x-tidegate-budget"), 90_000 - 18_000 - ENTITY_TRACKING);
}

#[tokio::test]
async fn at_least_1_024_tokens_are_reserved_for_the_answer() {
    for (window, safe, output) in [(5_688, 5_119, 1_024), (5_689, 5_120, 1_024), (5_695, 5_125, 1_025)] {
        let settings =
            format!("[context.budget.overhead_reserve]\nfixed = 0\n[models.\"small\"]\nwindow = {window}\n");
        assert_eq!(explained(&settings, "small").await, [window, safe, output, 0, safe - output]);
    }
}

/// Scenes that need more output can have their own route.
#[tokio::test]
async fn a_route_can_reserve_24_000_tokens() {
    let routes = "[[routes]]\nname = \"combat\"\nmatch = { headers = { x-scene = \"combat\" } }\n\
                  [routes.context.budget.output_reserve]\nmin = 24000\n[[routes]]\nname = \"normal\"\n";
    let scene = Scene::start("story", routes).await;
    let body = |model: &str| json!({ "model": model, "messages": [message("user", "hello")] }).to_string();
    for (model, scenery, route, max_input) in [
        ("zai-glm-4.6", "combat", "combat", 117_964 - 24_000),
        ("zai-glm-4.6", "tavern", "normal", 94_372),
        // A fifth of a large budget is more than that.
        ("gemini-2.0-flash", "combat", "combat", 240_000),
    ] {
        let headers = [("x-conversation-id", "c"), ("x-scene", scenery)];
        let reply = exchange(scene.tidegate.address, post(CHAT, &headers, body(model))).await;
        assert_eq!(reply.header("x-tidegate-route"), Some(route));
        assert_eq!(figure(&reply, "x-tidegate-budget"), max_input - ENTITY_TRACKING);
    }
    // A single request can do the same with `max_tokens`.
    let reply = ask(&scene, "c", "zai-glm-4.6", &[message("user", "hello")], Some(24_000)).await;
    assert_eq!(figure(&reply, "x-tidegate-budget"), 117_964 - 24_000 - ENTITY_TRACKING);
}

#[tokio::test]
async fn every_constant_is_the_documents() {
    let checked = tidegate("", &Value::Null, &["check"]).await;
    for (key, value) in [
        ("context.strategy", "\"window\""),
        ("context.budget.safety_ratio", "0.9"),
        ("context.budget.window_cap", "300000"),
        ("context.budget.output_reserve.ratio", "0.2"),
        ("context.budget.output_reserve.min", "1024"),
        ("context.budget.output_reserve.cap", "\"none\""),
        ("context.budget.overhead_reserve.fixed", "10500"),
        ("context.window.head_ratio", "0.25"),
        ("context.window.tail_ratio", "0.7"),
        ("context.window.head_max", "20"),
        ("context.window.tail_max", "20"),
        ("context.window.head_min", "3"),
        ("context.window.tail_min", "5"),
    ] {
        let line = checked.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let mut found = line.filter(|words| words.first() == Some(&key));
        let words = found.next().unwrap_or_else(|| panic!("{key} in {checked}"));
        // Ratios may have trailing zeros.
        let is_same = words[1] == value || words[1].trim_end_matches('0') == value;
        assert!(is_same && words[2..] == ["profile", "story"], "{words:?}");
    }
}
