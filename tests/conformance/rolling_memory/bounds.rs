//! Section 10: the state is bounded, and contexts are deterministic.

use super::turns::{recent, turn};
use crate::conformance::operator::conversation;
use crate::conformance::scene::Scene;
use crate::conformance::summarizer::Summarizer;
use crate::support::reply::figure;
use serde_json::{Value, json};

/// A context has ten messages and a summary within its limit, whatever the length of the conversation or the output of the summarizer.
#[tokio::test]
async fn the_context_does_not_grow_with_the_conversation() {
    let facts: Vec<Value> =
        (0..40).map(|fact| json!({ "text": format!("Fact {fact}: {}", "so it is ".repeat(20)) })).collect();
    let summarizer = Summarizer::start(&json!({ "summary_text": "Everything.", "key_facts": facts })).await;
    let scene = Scene::start("rolling-memory", &summarizer.settings("max_tokens = 300")).await;
    let mut most = 0;
    for number in 1..=50 {
        let (reply, sent) = turn(&scene, "c", number).await;
        assert!(recent(&sent).len() <= 10 + 1, "turn {number}");
        let used = figure(&reply, "x-tidegate-tokens-after");
        // The second half needs no more than the maximum of the first, apart from longer numbers.
        if number <= 25 {
            most = most.max(used);
        }
        assert!(used <= most + 10, "turn {number}: {used} tokens, and {most} before");
    }
    let page = conversation(&scene.tidegate, "c", 50).await;
    let summaries =
        page["turns"].as_array().unwrap().iter().map(|turn| turn["summary_tokens"].as_u64().unwrap());
    let longest = summaries.max().unwrap();
    assert!((200..=300).contains(&longest), "{longest}");
}

#[tokio::test]
async fn two_processes_with_the_same_input_send_the_same_bytes() {
    let one = Scene::start("rolling-memory", "").await;
    let other = Scene::start("rolling-memory", "").await;
    for number in 1..=14 {
        turn(&one, "c", number).await;
        turn(&other, "c", number).await;
    }
    let bodies = |scene: &Scene| -> Vec<Vec<u8>> {
        scene.upstream.requests().into_iter().map(|request| request.body).collect()
    };
    let (one, other) = (bodies(&one), bodies(&other));
    assert_eq!(one.len(), 14);
    for (turn, (one, other)) in one.iter().zip(&other).enumerate() {
        assert!(one == other, "turn {}: {}", turn + 1, String::from_utf8_lossy(one));
    }
}
