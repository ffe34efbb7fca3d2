//! Sections "Example Calculations", "Logging" and "Problem Statement": exact figures.

use super::narrative::{Window, ask, narrative};
use crate::conformance::scene::{Scene, Sent};
use crate::support::reply::{edited, figure};
use serde_json::{Value, json};

/// Sends a story. Returns its window, and the log lines with the budget and the shares.
async fn logged(scene: &mut Scene, model: &str, messages: &[Value]) -> (Window, Value, Value) {
    let reply = ask(scene, "c", model, messages, None).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert!(figure(&reply, "x-tidegate-tokens-after") <= figure(&reply, "x-tidegate-budget"));
    let sent = Sent(scene.upstream.next_request().await.json());
    assert_eq!(sent.0["model"], model);
    let window = Window::of(&sent);
    assert_eq!(edited(&reply, "dropped"), messages.len() - 2 - window.head.len() - window.tail.len());
    let budget = scene.tidegate.logged_message("window budget exceeded").await;
    let shares = scene.tidegate.logged_message("head and tail by their shares").await;
    (window, budget, shares)
}

fn assert_fields(line: &Value, expected: &Value) {
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(&line[key], value, "{key} in {line}");
    }
}

/// A scaffold of 20,000 tokens, of which 10,500 are the fixed reserve, and turns of 2,400.
#[tokio::test]
async fn the_131_072_example_gives_the_documents_figures() {
    let mut scene = Scene::start("story", "").await;
    let (window, budget, shares) = logged(&mut scene, "zai-glm-4.6", &narrative(9_500, &[2_400; 40])).await;
    assert_fields(
        &budget,
        &json!({ "model": "zai-glm-4.6", "model_limit": 131_072, "safe_budget": 117_964, "output_reserve": 23_592, "scaffold": 20_000,
            "story_budget": 74_372, "actual_story": 96_000 }),
    );
    assert_fields(
        &shares,
        &json!({ "average": 2_400, "start_budget": 18_593, "start_turns": 7, "end_budget": 52_060, "end_turns": 20 }),
    );
    // The last twentieth is reserved for the marker.
    assert_eq!(74_372 - 18_593 - 52_060, 3_719);
    assert_eq!((window.head, window.tail), ((0..7).collect(), (20..40).collect()));
}

/// A capped window and a scaffold of 25,000 tokens.
#[tokio::test]
async fn the_million_example_gives_the_documents_figures() {
    let mut scene = Scene::start("story", "").await;
    let (window, budget, shares) =
        logged(&mut scene, "gemini-2.0-flash", &narrative(14_500, &[2_400; 100])).await;
    assert_fields(
        &budget,
        &json!({ "model_limit": 1_000_000, "safe_budget": 300_000, "output_reserve": 60_000, "scaffold": 25_000,
            "story_budget": 215_000, "actual_story": 240_000 }),
    );
    assert_fields(
        &shares,
        &json!({ "start_budget": 53_750, "start_turns": 20, "end_budget": 150_500, "end_turns": 20 }),
    );
    assert_eq!((window.head, window.tail), ((0..20).collect(), (80..100).collect()));
}

/// The lines of the section "Logging". 95,000 tokens are not a whole number of turns of 2,400. Forty turns of 2,375 on average give
/// the same counts.
///
/// Its last line, "5+12 turns (from 7+20)", does not follow from the document's own loop, which reduces the end while the start is
/// shorter: 7+20 becomes 7+12.
#[tokio::test]
async fn the_log_example_gives_the_documents_lines() {
    let mut scene = Scene::start("story", "").await;
    let mut parts = [800; 40];
    parts[26..].fill(5_300);
    let (window, budget, shares) = logged(&mut scene, "zai-glm-4.6", &narrative(10_000, &parts)).await;
    assert_fields(
        &budget,
        &json!({ "level": "INFO", "model_limit": 131_072, "safe_budget": 117_964, "scaffold": 20_500, "scaffold_raw": 10_000,
            "fixed_reserve": 10_500, "output_reserve": 23_592, "story_budget": 73_872, "actual_story": 95_000 }),
    );
    assert_fields(
        &shares,
        &json!({ "level": "INFO", "average": 2_375, "start_budget": 18_468, "start_turns": 7, "end_budget": 51_710, "end_turns": 20 }),
    );
    let reduced = scene.tidegate.logged_message("adaptive truncation reduced").await;
    assert_eq!(reduced["level"], "WARN");
    assert_eq!(
        reduced["message"],
        "adaptive truncation reduced head and tail to 7+12 (from 7+20) to fit the budget"
    );
    assert_eq!((window.head, window.tail), ((0..7).collect(), (28..40).collect()));
}

/// The document's failed request: 95,622 tokens where 94,372 are allowed.
#[tokio::test]
async fn the_oversized_request_fits() {
    let scene = Scene::start("story", "").await;
    let mut parts = [2_400; 36];
    parts[0] = 95_622 - 9_500 - 35 * 2_400;
    let messages = narrative(9_500, &parts);
    let reply = ask(&scene, "c", "zai-glm-4.6", &messages, None).await;
    assert_eq!(figure(&reply, "x-tidegate-tokens-before"), 95_622);
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert!(figure(&reply, "x-tidegate-tokens-after") <= 94_372 - 10_500);
}
