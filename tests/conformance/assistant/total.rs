//! "Prompt Assembly Pipeline", step 6: the total limit shortens the history first, then the summary, then the memory.

use super::harness::{
    Assistant, CONVERSATION, SCRIPTED, count, facts, facts_for, frame, history, instructed, memory, numbers,
    summary, words,
};
use crate::support::reply::edited;

/// The document's limit of 4,500 words and one word more: 2,000 words of instructions and 2,500 of history.
#[tokio::test]
async fn a_total_of_4500_words_is_kept_and_one_more_is_not() {
    let assistant = Assistant::start(SCRIPTED).await;
    let within = assistant.body(&instructed(2_000, &[100; 25]));
    assert_eq!(
        assistant.send_body(CONVERSATION, &within).await.1,
        within,
        "a request within its limits was changed"
    );
    let (reply, sent) = assistant.send(&instructed(2_001, &[100; 25])).await;
    // The summary counts towards the total as well.
    let left = 4_500 - 2_001 - count(summary(&sent).unwrap());
    assert_eq!(numbers(&sent), (25 - left / 100..25).collect::<Vec<_>>());
    assert_eq!((edited(&reply, "dropped"), reply.header("x-tidegate-trigger")), (0, Some("blocks")));
}

/// Memory of 300 words, a summary of 150, twenty messages of 20 words, and instructions that grow.
#[tokio::test]
async fn the_total_shortens_history_then_summary_then_memory() {
    let frame = frame().await;
    let scripted = facts_for(150, frame);
    let pinned = words("Likes", 300);
    // Words of the instructions, then the remaining messages, the most words of the summary, and the words of the memory.
    let steps = [
        (3_800, 20, 0, 300),
        // From here on there is a summary, which counts towards the total.
        (3_801, 12, 150, 300),
        (3_810, 12, 150, 300),
        (3_811, 11, 150, 300),
        (3_990, 3, 150, 300),
        (3_991, 2, 150, 300),
        (4_010, 2, 150, 300),
        // The history is at its floor, so the summary is shortened by whole entries.
        (4_011, 2, 149, 300),
        (4_159, 2, 1, 300),
        (4_160, 2, 0, 300),
        // Then the memory is shortened word by word.
        (4_161, 2, 0, 299),
        (4_459, 2, 0, 1),
        (4_460, 2, 0, 0),
        (5_000, 2, 0, 0),
    ];
    let assistant = Assistant::with_memory(SCRIPTED).await;
    assistant.set_summary(&scripted);
    assistant.pin(Some(&pinned)).await;
    for (instructions, messages, most, noted) in steps {
        let (reply, sent) = assistant.send(&instructed(instructions, &[20; 20])).await;
        assert_eq!(numbers(&sent), (20 - messages..20).collect::<Vec<_>>(), "{instructions}");
        let summarized = summary(&sent).map_or(0, count);
        assert!(summarized <= most, "{instructions}: {summarized}");
        assert_eq!(summarized == 150, most == 150, "{instructions}: {summarized}");
        assert_eq!(
            facts(&sent),
            scripted[scripted.len() - facts(&sent).len()..],
            "not the oldest entries were removed"
        );
        assert_eq!(memory(&sent).map_or(0, count), noted, "{instructions}");
        assert!(memory(&sent).is_none_or(|notes| pinned.starts_with(notes)));
        assert_eq!(edited(&reply, "dropped"), 0);
    }
}

#[tokio::test]
async fn the_total_can_equal_the_history_limit() {
    let settings = format!("{SCRIPTED}[context.blocks]\nhistory_max = 200\ntotal_max = 200\n");
    let assistant = Assistant::start(&settings).await;
    let within = assistant.body(&history(&[50; 4]));
    assert_eq!(assistant.send_body(CONVERSATION, &within).await.1, within);
    let (_, sent) = assistant.send(&history(&[50, 50, 50, 50, 50])).await;
    let left = (200 - count(summary(&sent).unwrap())) / 50;
    assert_eq!(numbers(&sent).len(), left.max(2));
}
