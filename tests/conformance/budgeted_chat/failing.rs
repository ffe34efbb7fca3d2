//! Section 9: a summarizer that fails.

use super::chat::{INSTRUCTION, MODELS, ask, chat, longer, question};
use crate::conformance::scene::{Scene, Sent};
use crate::conformance::summarizer::{Summarizer, with_fact};
use crate::support::reply::{edited, figure};
use serde_json::Value;
use tempfile::TempDir;

/// Too little for any summary, so that the built-in summarizer fails, too.
const NO_ROOM: &str = "max_tokens = 20";

const MARKER: &str = "earlier turns of this conversation are missing here";

/// Ten turns of more than a thousand tokens, the first of them the task.
fn too_long() -> Vec<Value> {
    longer(&longer(&chat(10), 3, 200), 5, 200)
}

#[tokio::test]
async fn a_request_over_budget_is_cut_behind_a_marker_and_keeps_its_anchors() {
    let summarizer = Summarizer::broken().await;
    let mut scene = Scene::start("budgeted-chat", &(summarizer.settings(NO_ROOM) + MODELS)).await;
    let messages = too_long();
    let reply = ask(&scene, "even", "c", &messages).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(reply.header("x-tidegate-degraded"), Some("summarizer_server_error"));
    let sent = Sent(scene.upstream.next_request().await.json());
    let contents = sent.contents();
    assert!(figure(&reply, "x-tidegate-tokens-before") > 1_000);
    assert!(figure(&reply, "x-tidegate-tokens-after") <= 1_000);
    // Instructions and the task, the marker, and then the unchanged end of the conversation.
    assert_eq!(contents[..2], [INSTRUCTION, &question(1)]);
    assert!(contents[2].contains(MARKER) && sent.summary().is_none(), "{}", contents[2]);
    let kept = contents.len() - 3;
    assert_eq!(sent.messages()[3..], messages[messages.len() - kept..]);
    assert_eq!(edited(&reply, "dropped"), messages.len() - 2 - kept);
    // The log has a warning.
    let warning = scene.tidegate.logged_message("a summarizer failed").await;
    assert_eq!(warning["level"], "WARN");
    assert_eq!(warning["reason"], "summarizer_server_error");
}

/// Every process truncates a request in the same way.
#[tokio::test]
async fn truncation_is_deterministic() {
    let mut bodies = Vec::new();
    for _ in 0..2 {
        let summarizer = Summarizer::broken().await;
        let scene = Scene::start("budgeted-chat", &(summarizer.settings(NO_ROOM) + MODELS)).await;
        assert_eq!(ask(&scene, "even", "c", &too_long()).await.status, 200);
        let sent = scene.upstream.next_request().await;
        assert!(Sent(sent.json()).has(MARKER));
        bodies.push(sent.body);
    }
    assert!(bodies[0] == bodies[1]);
}

/// A request that fits is not truncated for lack of a summary.
#[tokio::test]
async fn a_request_within_budget_is_forwarded_unchanged() {
    let summarizer = Summarizer::broken().await;
    let scene = Scene::start("budgeted-chat", &summarizer.settings(NO_ROOM)).await;
    let (reply, sent) = scene.send("c", &chat(8)).await;
    assert_eq!(reply.header("x-tidegate-degraded"), Some("summarizer_server_error"));
    assert_eq!(sent.messages(), chat(8));
}

/// The built-in summarizer stands in for a model that fails, also while that one is not asked again.
#[tokio::test]
async fn the_built_in_summarizer_stands_in() {
    let summarizer = Summarizer::broken().await;
    let mut scene = Scene::start("budgeted-chat", &summarizer.settings("")).await;
    for name in ["c", "d"] {
        let (reply, sent) = scene.send(name, &chat(8)).await;
        assert_eq!(reply.header("x-tidegate-degraded"), Some("summarizer_server_error"));
        let summary = sent.summary().expect("a summary")["content"].as_str().unwrap();
        assert!(summary.contains("100 planks") && !sent.has(MARKER), "{summary}");
        assert!(edited(&reply, "folded") > 0);
    }
    let (reply, sent) = scene.send("c", &chat(16)).await;
    assert_eq!(reply.header("x-tidegate-degraded"), Some("summarizer_cooling"));
    assert!(sent.has("100 planks") && sent.summary().is_some());
    let warning = scene.tidegate.logged_message("the built-in one stands in").await;
    assert_eq!((&warning["level"], &warning["reason"]), (&"WARN".into(), &"summarizer_server_error".into()));
}

/// Dropped messages are summarized as soon as a summarizer works.
#[tokio::test]
async fn dropped_messages_are_summarized_later() {
    let directory = TempDir::new().unwrap();
    let store = format!("embedded:{}", directory.path().join("data").display());
    let (broken, good) = (Summarizer::broken().await, Summarizer::start(&with_fact("All is known.")).await);
    let start = async |summarizer: &Summarizer, fold: &str| {
        let settings = summarizer.settings(fold) + MODELS;
        Scene::start_with("budgeted-chat", &settings, |setup| setup.env("TIDEGATE_STORE", &store)).await
    };
    let before = start(&broken, NO_ROOM).await;
    assert!(edited(&ask(&before, "even", "c", &too_long()).await, "dropped") > 0);
    before.tidegate.stop().await;
    let after = start(&good, "").await;
    let reply = ask(&after, "even", "c", &too_long()).await;
    assert_eq!(reply.status, 200, "{} {:?}", reply.text(), reply.headers);
    let sent = Sent(after.upstream.next_request().await.json());
    assert_eq!((reply.header("x-tidegate-degraded"), edited(&reply, "dropped")), (None, 0));
    assert!(sent.has("All is known.") && !sent.has(MARKER));
}
