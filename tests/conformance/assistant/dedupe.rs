//! "De-duplication Rule": lines of the summary that the notes say already.

use super::desk::{Desk, TOLD, facts, history, notes, summary};
use serde_json::json;

/// A request whose summary is due.
fn long() -> Vec<serde_json::Value> {
    history(&[2_000, 2_000, 2_000])
}

#[tokio::test]
async fn lines_that_differ_only_in_case_spacing_or_bullet_are_removed() {
    let desk = Desk::with_notes(TOLD).await;
    let said = "Ada prefers green tea";
    desk.summarizes(&[said, "Ada has 2 cats"]);
    for note in [
        "Ada prefers green tea",
        "  ada PREFERS green tea  ",
        "- Ada prefers green tea",
        "* Ada prefers green tea",
        "• Ada prefers green tea",
        "-\tAda   prefers\tgreen  tea",
        "# About Ada\n\n- Has a boat\n  * ADA prefers green tea\n",
    ] {
        desk.pin(Some(note)).await;
        let (_, sent) = desk.say(&long()).await;
        assert_eq!(facts(&sent), ["Ada has 2 cats"], "{note:?}");
        assert_eq!(notes(&sent), Some(note.trim()), "the notes stay as they are");
    }
}

#[tokio::test]
async fn other_lines_are_kept() {
    let desk = Desk::with_notes(TOLD).await;
    let said = ["Ada prefers green tea", "-5 degrees in Oslo"];
    desk.summarizes(&said);
    for note in [
        "Ada prefers green tea in the morning",
        "Ada prefers tea",
        "Ada likes green tea",
        "Ada prefers green tea.",
        "Ada prefers green-tea",
        "Ada prefers, green tea",
        "tea green prefers Ada",
        "Ada prefers\ngreen tea",
        "+ Ada prefers green tea",
        "1. Ada prefers green tea",
        "**Ada prefers green tea**",
        "5 degrees in Oslo",
    ] {
        desk.pin(Some(note)).await;
        let (_, sent) = desk.say(&long()).await;
        assert_eq!(facts(&sent), said, "{note:?}");
    }
}

#[tokio::test]
async fn every_part_of_the_summary_is_compared() {
    let desk = Desk::with_notes(TOLD).await;
    let answer = json!({
        "summary_text": "Ada moved to Oslo.\nShe sails.",
        "decisions": [{ "text": "Use metric units" }, { "text": "Call on Mondays" }],
        "open_questions": [{ "text": "Which boat?" }],
    });
    desk.summarizer.answer(tidegate_testkit::Answer::chat(&answer.to_string()));
    desk.pin(Some("- she sails.\n- use metric units\n- which boat?")).await;
    let (_, sent) = desk.say(&long()).await;
    assert_eq!(facts(&sent), ["Ada moved to Oslo.", "Call on Mondays"]);
    assert!(!summary(&sent).unwrap().contains("## Open questions"), "a list without lines has no heading");
}

#[tokio::test]
async fn de_duplication_can_be_switched_off() {
    let desk = Desk::with_notes(&format!("{TOLD}[context.blocks]\ndedupe = false\n")).await;
    desk.pin(Some("The harbour has 3 piers.")).await;
    let (_, sent) = desk.say(&long()).await;
    assert_eq!(facts(&sent), ["The harbour has 3 piers."]);
    assert!(notes(&sent).is_some());
}

/// "Error Handling and Safety": what is emptied is left out, and nothing of that is written.
#[tokio::test]
async fn an_emptied_summary_is_left_out_until_it_has_lines_again() {
    let desk = Desk::with_notes(TOLD).await;
    desk.summarizes(&["Ada prefers green tea", "Ada has 2 cats"]);
    desk.pin(Some("* ada prefers green tea\n* ada has 2 cats")).await;
    let (reply, sent) = desk.say(&long()).await;
    assert_eq!(summary(&sent), None);
    assert!(notes(&sent).is_some());
    assert_eq!(reply.header("x-tidegate-degraded"), None);
    desk.pin(Some("Ada has 2 dogs")).await;
    let (_, sent) = desk.say(&long()).await;
    assert_eq!(facts(&sent), ["Ada prefers green tea", "Ada has 2 cats"]);
}

/// The whole of the notes counts, also what their own limit leaves out of the request: it is in the notes.
#[tokio::test]
async fn lines_are_compared_before_the_memory_is_shortened() {
    let desk = Desk::with_notes(&format!("{TOLD}[context.blocks]\nmemory_max = 3\n")).await;
    desk.summarizes(&["Ada has 2 cats", "Ada prefers green tea"]);
    desk.pin(Some("Ada can sail\nAda has 2 cats")).await;
    let (_, sent) = desk.say(&long()).await;
    assert_eq!(notes(&sent), Some("Ada can sail"));
    assert_eq!(facts(&sent), ["Ada prefers green tea"]);
}
