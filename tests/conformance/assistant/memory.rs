//! The memory block and its limit.

use super::harness::{Assistant, CONVERSATION, SCRIPTED, history, memory, summary, words};
use crate::conformance::scene::message;

/// The document's limit of 300 words, and one word more.
#[tokio::test]
async fn memory_of_300_words_is_kept_and_one_more_is_cut_off() {
    let assistant = Assistant::with_memory("").await;
    let text = words("Likes", 300);
    assistant.pin(Some(&text)).await;
    let (_, sent) = assistant.send(&history(&[10, 10])).await;
    assert_eq!(memory(&sent), Some(text.as_str()));
    assistant.pin(Some(&format!("{text} toomuch"))).await;
    let (_, sent) = assistant.send(&history(&[10, 10])).await;
    assert_eq!(memory(&sent), Some(text.as_str()));
}

#[tokio::test]
async fn shortened_memory_is_its_beginning_unchanged() {
    let assistant = Assistant::with_memory("[context.blocks]\nmemory_max = 4\n").await;
    assistant.pin(Some("# About Ada\n\n- likes   tea\n- hates coffee\n")).await;
    let (_, sent) = assistant.send(&history(&[10, 10])).await;
    assert_eq!(memory(&sent), Some("# About Ada\n\n-"));
    assistant.pin(Some("  # About Ada,\n who   likes tea")).await;
    let (_, sent) = assistant.send(&history(&[10, 10])).await;
    assert_eq!(memory(&sent), Some("# About Ada,\n who"));
}

#[tokio::test]
async fn memory_is_between_the_instructions_and_the_summary() {
    let assistant = Assistant::with_memory(SCRIPTED).await;
    assistant.pin(Some("Ada lives in Oslo.")).await;
    let mut messages = vec![message("system", "Be kind.")];
    messages.extend(history(&[2_000, 500, 500]));
    let (_, sent) = assistant.send(&messages).await;
    let roles: Vec<&str> = sent.messages().iter().map(|one| one["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "system", "system", "user", "assistant", "user"]);
    let contents = sent.contents();
    assert_eq!(contents[..2], ["Be kind.", "## Your Memory\nAda lives in Oslo."]);
    assert_eq!(summary(&sent), Some(contents[2]));
}

#[tokio::test]
async fn without_memory_there_is_no_heading() {
    let assistant = Assistant::with_memory("").await;
    assistant.pin(Some("Ada lives in Oslo.")).await;
    assert!(assistant.send(&history(&[10, 10])).await.1.has("## Your Memory"));
    assistant.pin(None).await;
    let request = assistant.body(&history(&[10, 10]));
    assert_eq!(assistant.send_body(CONVERSATION, &request).await.1, request);
}
