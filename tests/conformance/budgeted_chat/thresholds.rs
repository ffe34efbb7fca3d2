//! Section 5: when a chat is summarized.

use super::chat::{MODELS, ask, chat, sized};
use crate::conformance::scene::Scene;
use crate::support::reply::{edited, figure};

#[tokio::test]
async fn a_summary_is_made_at_seventy_percent_of_the_budget() {
    let scene = Scene::start("budgeted-chat", MODELS).await;
    // Seven turns alone do not trigger a summary.
    let messages = sized(&scene, "x-tidegate-tokens-before", &chat(7), 1, 700).await;
    // 69.93 %.
    let below = ask(&scene, "odd", "below", &messages).await;
    assert_eq!((below.status, figure(&below, "x-tidegate-budget")), (200, 1_001));
    assert_eq!((edited(&below, "folded"), below.header("x-tidegate-trigger")), (0, None));
    assert_eq!(figure(&below, "x-tidegate-tokens-after"), 700);
    let at = ask(&scene, "even", "at", &messages).await;
    assert_eq!((at.status, figure(&at, "x-tidegate-budget")), (200, 1_000));
    // Four of six turns stay, and the open one.
    assert_eq!((edited(&at, "folded"), at.header("x-tidegate-trigger")), (4, Some("budget")));
    assert!(figure(&at, "x-tidegate-tokens-after") < 700);
}

#[tokio::test]
async fn a_summary_is_made_at_the_eighth_turn_and_not_at_the_seventh() {
    let scene = Scene::start("budgeted-chat", "").await;
    let (reply, sent) = scene.send("c", &chat(7)).await;
    assert!(sent.summary().is_none());
    assert_eq!(edited(&reply, "folded"), 0);
    let (reply, sent) = scene.send("c", &chat(8)).await;
    assert!(sent.summary().is_some());
    assert_eq!((edited(&reply, "folded"), reply.header("x-tidegate-trigger")), (6, Some("turns")));
}

/// Turns are counted from the last summary, whatever it kept.
#[tokio::test]
async fn a_summary_is_made_every_eight_turns_after_the_last_one() {
    let scene = Scene::start("budgeted-chat", "").await;
    for turns in 1..=24 {
        let (reply, sent) = scene.send("c", &chat(turns)).await;
        let is_due = turns % 8 == 0;
        assert_eq!(reply.header("x-tidegate-trigger"), is_due.then_some("turns"), "turn {turns}");
        let summarized = turns / 8 * 8;
        // All but four turns before the last summary, two messages each.
        let folded = if summarized == 0 { 0 } else { 2 * (summarized - 1 - 4) };
        assert_eq!(
            (edited(&reply, "folded"), sent.summary().is_some()),
            (folded, summarized > 0),
            "turn {turns}"
        );
    }
}

/// A summary triggered by tokens restarts the count.
#[tokio::test]
async fn any_summary_restarts_the_turn_count() {
    let scene = Scene::start("budgeted-chat", MODELS).await;
    let seven = sized(&scene, "x-tidegate-tokens-before", &chat(7), 1, 700).await;
    let with_first = |turns: usize| {
        let mut messages = chat(turns);
        messages[1] = seven[1].clone();
        messages
    };
    let reply = ask(&scene, "even", "c", &seven).await;
    assert_eq!(reply.header("x-tidegate-trigger"), Some("budget"));
    // With a large window from then on, the next summary is due eight turns later, at the fifteenth.
    for turns in 8..=15 {
        let reply = ask(&scene, super::chat::WIDE, "c", &with_first(turns)).await;
        assert_eq!(reply.header("x-tidegate-trigger"), (turns == 15).then_some("turns"), "turn {turns}");
    }
}
