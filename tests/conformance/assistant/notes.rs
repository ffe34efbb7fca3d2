//! The memory block: what is pinned, within its limit.

use super::desk::{Desk, TALK, TOLD, history, notes, summary, words};
use crate::conformance::scene::message;

/// The limit of the document, 300 words, on both sides of its edge.
#[tokio::test]
async fn memory_of_300_words_is_kept_and_one_more_is_cut_off() {
    let desk = Desk::with_notes("").await;
    let text = words("Likes", 300);
    desk.pin(Some(&text)).await;
    let (_, sent) = desk.say(&history(&[10, 10])).await;
    assert_eq!(notes(&sent), Some(text.as_str()));
    desk.pin(Some(&format!("{text} toomuch"))).await;
    let (_, sent) = desk.say(&history(&[10, 10])).await;
    assert_eq!(notes(&sent), Some(text.as_str()));
}

#[tokio::test]
async fn shortened_memory_is_its_beginning_unchanged() {
    let desk = Desk::with_notes("[context.blocks]\nmemory_max = 4\n").await;
    desk.pin(Some("# About Ada\n\n- likes   tea\n- hates coffee\n")).await;
    let (_, sent) = desk.say(&history(&[10, 10])).await;
    assert_eq!(notes(&sent), Some("# About Ada\n\n-"));
    desk.pin(Some("  # About Ada,\n who   likes tea")).await;
    let (_, sent) = desk.say(&history(&[10, 10])).await;
    assert_eq!(notes(&sent), Some("# About Ada,\n who"));
}

#[tokio::test]
async fn memory_is_between_the_instructions_and_the_summary() {
    let desk = Desk::with_notes(TOLD).await;
    desk.pin(Some("Ada lives in Oslo.")).await;
    let mut messages = vec![message("system", "Be kind.")];
    messages.extend(history(&[2_000, 500, 500]));
    let (_, sent) = desk.say(&messages).await;
    let roles: Vec<&str> = sent.messages().iter().map(|one| one["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "system", "system", "user", "assistant", "user"]);
    let contents = sent.contents();
    assert_eq!(contents[..2], ["Be kind.", "## Your Memory\nAda lives in Oslo."]);
    assert_eq!(summary(&sent), Some(contents[2]));
}

#[tokio::test]
async fn without_memory_there_is_no_heading() {
    let desk = Desk::with_notes("").await;
    desk.pin(Some("Ada lives in Oslo.")).await;
    assert!(desk.say(&history(&[10, 10])).await.1.has("## Your Memory"));
    desk.pin(None).await;
    let request = desk.body(&history(&[10, 10]));
    assert_eq!(desk.send(TALK, &request).await.1, request);
}
