//! "Prompt Assembly Pipeline", step 6: the total takes from the history first, then from the summary, then from the notes.

use super::desk::{
    Desk, TALK, TOLD, count, facts, facts_for, frame, history, instructed, notes, numbers, summary, words,
};
use crate::support::reply::edited;

/// The limit of the document, 4,500 words, on both sides of its edge: 2,000 of instructions and 2,500 of history.
#[tokio::test]
async fn a_total_of_4500_words_is_kept_and_one_more_is_not() {
    let desk = Desk::start(TOLD).await;
    let within = desk.body(&instructed(2_000, &[100; 25]));
    assert_eq!(desk.send(TALK, &within).await.1, within, "nothing is touched");
    let (reply, sent) = desk.say(&instructed(2_001, &[100; 25])).await;
    // The summary has its share of the total as well.
    let left = 4_500 - 2_001 - count(summary(&sent).unwrap());
    assert_eq!(numbers(&sent), (25 - left / 100..25).collect::<Vec<_>>());
    assert_eq!((edited(&reply, "dropped"), reply.header("x-tidegate-trigger")), (0, Some("blocks")));
}

/// Notes of 300 words, a summary of 150, twenty messages of 20 words: only the instructions grow.
#[tokio::test]
async fn the_total_shortens_history_then_summary_then_memory() {
    let frame = frame().await;
    let told = facts_for(150, frame);
    let pinned = words("Likes", 300);
    // Instructions, and what is left: messages, words of the summary at most, words of the notes.
    let steps = [
        (3_800, 20, 0, 300),
        // From here on there is a summary, which is part of the total.
        (3_801, 12, 150, 300),
        (3_810, 12, 150, 300),
        (3_811, 11, 150, 300),
        (3_990, 3, 150, 300),
        (3_991, 2, 150, 300),
        (4_010, 2, 150, 300),
        // The floor holds, so the summary gives, by whole entries.
        (4_011, 2, 149, 300),
        (4_159, 2, 1, 300),
        (4_160, 2, 0, 300),
        // And then the notes, word by word.
        (4_161, 2, 0, 299),
        (4_459, 2, 0, 1),
        (4_460, 2, 0, 0),
        (5_000, 2, 0, 0),
    ];
    let desk = Desk::with_notes(TOLD).await;
    desk.summarizes(&told);
    desk.pin(Some(&pinned)).await;
    for (instructions, messages, most, noted) in steps {
        let (reply, sent) = desk.say(&instructed(instructions, &[20; 20])).await;
        assert_eq!(numbers(&sent), (20 - messages..20).collect::<Vec<_>>(), "{instructions}");
        let summarized = summary(&sent).map_or(0, count);
        assert!(summarized <= most, "{instructions}: {summarized}");
        assert_eq!(summarized == 150, most == 150, "{instructions}: {summarized}");
        assert_eq!(facts(&sent), told[told.len() - facts(&sent).len()..], "the oldest entries go first");
        assert_eq!(notes(&sent).map_or(0, count), noted, "{instructions}");
        assert!(notes(&sent).is_none_or(|notes| pinned.starts_with(notes)));
        assert_eq!(edited(&reply, "dropped"), 0);
    }
}

#[tokio::test]
async fn the_total_can_equal_the_history_limit() {
    let settings = format!("{TOLD}[context.blocks]\nhistory_max = 200\ntotal_max = 200\n");
    let desk = Desk::start(&settings).await;
    let within = desk.body(&history(&[50; 4]));
    assert_eq!(desk.send(TALK, &within).await.1, within);
    let (_, sent) = desk.say(&history(&[50, 50, 50, 50, 50])).await;
    let left = (200 - count(summary(&sent).unwrap())) / 50;
    assert_eq!(numbers(&sent).len(), left.max(2));
}
