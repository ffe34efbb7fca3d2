//! Profile `budgeted-chat`.

use crate::scene::{Scene, edited, message};

fn chat(turns: usize) -> Vec<serde_json::Value> {
    let mut messages = vec![message("system", "Be brief.")];
    for turn in 1..=turns {
        messages.push(message(
            "user",
            &format!(
                "Question {turn}: the pier number {turn} needs {turn}00 planks, right? {}",
                "Please check it. ".repeat(6)
            ),
        ));
        messages.push(message(
            "assistant",
            &format!("Answer {turn}: yes, it is noted in the list of piers. {}", "It is fine. ".repeat(6)),
        ));
    }
    messages.pop();
    messages
}

#[tokio::test]
async fn the_eighth_turn_is_summarized_and_the_seventh_is_not() {
    let scene = Scene::start("budgeted-chat", "").await;
    let (reply, sent) = scene.say("c", &chat(7)).await;
    assert!(sent.summary().is_none());
    assert_eq!(edited(&reply, "folded"), 0);
    let (reply, sent) = scene.say("c", &chat(8)).await;
    let summary = sent.summary().expect("a summary");
    assert_eq!(summary["role"], "system");
    assert_eq!((edited(&reply, "folded"), reply.header("x-tidegate-trigger")), (6, Some("turns")));
}
