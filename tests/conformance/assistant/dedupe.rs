//! "De-duplication Rule": summary lines that the memory already has.

use super::harness::{Assistant, SCRIPTED, facts, history, memory, summary};
use serde_json::json;

/// A request that needs a summary.
fn long() -> Vec<serde_json::Value> {
    history(&[2_000, 2_000, 2_000])
}

#[tokio::test]
async fn lines_that_differ_only_in_case_spacing_or_bullet_are_removed() {
    let assistant = Assistant::with_memory(SCRIPTED).await;
    let scripted = "Ada prefers green tea";
    assistant.set_summary(&[scripted, "Ada has 2 cats"]);
    for note in [
        "Ada prefers green tea",
        "  ada PREFERS green tea  ",
        "- Ada prefers green tea",
        "* Ada prefers green tea",
        "• Ada prefers green tea",
        "-\tAda   prefers\tgreen  tea",
        "# About Ada\n\n- Has a boat\n  * ADA prefers green tea\n",
    ] {
        assistant.pin(Some(note)).await;
        let (_, sent) = assistant.send(&long()).await;
        assert_eq!(facts(&sent), ["Ada has 2 cats"], "{note:?}");
        assert_eq!(memory(&sent), Some(note.trim()), "the memory was changed");
    }
}

#[tokio::test]
async fn other_lines_are_kept() {
    let assistant = Assistant::with_memory(SCRIPTED).await;
    let scripted = ["Ada prefers green tea", "-5 degrees in Oslo"];
    assistant.set_summary(&scripted);
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
        assistant.pin(Some(note)).await;
        let (_, sent) = assistant.send(&long()).await;
        assert_eq!(facts(&sent), scripted, "{note:?}");
    }
}

#[tokio::test]
async fn every_part_of_the_summary_is_compared() {
    let assistant = Assistant::with_memory(SCRIPTED).await;
    let answer = json!({
        "summary_text": "Ada moved to Oslo.\nShe sails.",
        "decisions": [{ "text": "Use metric units" }, { "text": "Call on Mondays" }],
        "open_questions": [{ "text": "Which boat?" }],
    });
    assistant.summarizer.answer(tidegate_testkit::Answer::chat(&answer.to_string()));
    assistant.pin(Some("- she sails.\n- use metric units\n- which boat?")).await;
    let (_, sent) = assistant.send(&long()).await;
    assert_eq!(facts(&sent), ["Ada moved to Oslo.", "Call on Mondays"]);
    assert!(!summary(&sent).unwrap().contains("## Open questions"), "a list without lines has a heading");
}

#[tokio::test]
async fn de_duplication_can_be_switched_off() {
    let assistant = Assistant::with_memory(&format!("{SCRIPTED}[context.blocks]\ndedupe = false\n")).await;
    assistant.pin(Some("The harbour has 3 piers.")).await;
    let (_, sent) = assistant.send(&long()).await;
    assert_eq!(facts(&sent), ["The harbour has 3 piers."]);
    assert!(memory(&sent).is_some());
}

/// "Error Handling and Safety": an emptied summary is left out, and the stored summary stays whole.
#[tokio::test]
async fn an_emptied_summary_is_left_out_until_it_has_lines_again() {
    let assistant = Assistant::with_memory(SCRIPTED).await;
    assistant.set_summary(&["Ada prefers green tea", "Ada has 2 cats"]);
    assistant.pin(Some("* ada prefers green tea\n* ada has 2 cats")).await;
    let (reply, sent) = assistant.send(&long()).await;
    assert_eq!(summary(&sent), None);
    assert!(memory(&sent).is_some());
    assert_eq!(reply.header("x-tidegate-degraded"), None);
    assistant.pin(Some("Ada has 2 dogs")).await;
    let (_, sent) = assistant.send(&long()).await;
    assert_eq!(facts(&sent), ["Ada prefers green tea", "Ada has 2 cats"]);
}

/// All of the memory is compared, including what its limit leaves out of the request.
#[tokio::test]
async fn lines_are_compared_before_the_memory_is_shortened() {
    let assistant = Assistant::with_memory(&format!("{SCRIPTED}[context.blocks]\nmemory_max = 3\n")).await;
    assistant.set_summary(&["Ada has 2 cats", "Ada prefers green tea"]);
    assistant.pin(Some("Ada can sail\nAda has 2 cats")).await;
    let (_, sent) = assistant.send(&long()).await;
    assert_eq!(memory(&sent), Some("Ada can sail"));
    assert_eq!(facts(&sent), ["Ada prefers green tea"]);
}
