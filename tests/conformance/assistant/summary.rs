//! The summary block, within its limit.

use super::desk::{Desk, TOLD, count, facts, facts_for, frame, history, summary};

/// The limit of the document, 500 words, on both sides of its edge. What is too much goes by whole entries, the oldest fact first.
#[tokio::test]
async fn a_summary_of_500_words_is_kept_and_one_more_costs_an_entry() {
    let frame = frame().await;
    for (size, first) in [(500, "Pier-0"), (501, "Pier-1")] {
        let desk = Desk::start(TOLD).await;
        let told = facts_for(size, frame);
        desk.summarizes(&told);
        let (_, sent) = desk.say(&history(&[2_000, 2_000, 2_000])).await;
        let (text, facts) = (summary(&sent).unwrap(), facts(&sent));
        assert!(facts[0].starts_with(first), "{size}: {facts:?}");
        assert_eq!(facts[facts.len() - 1], told[told.len() - 1]);
        if size == 500 {
            assert_eq!(facts, told);
            assert_eq!(count(text), 500);
        } else {
            assert_eq!(facts, told[1..]);
            assert_eq!(count(text), 501 - count(&told[0]) - 1);
        }
    }
}

#[tokio::test]
async fn a_summary_without_room_is_left_out() {
    let desk = Desk::start(&format!("{TOLD}[context.blocks]\nsummary_max = 5\n")).await;
    let (_, sent) = desk.say(&history(&[2_000, 2_000, 2_000])).await;
    assert_eq!(summary(&sent), None);
}

/// Only what was cut away is left out: a summary that had nothing to say says at least for how many messages it stands.
#[tokio::test]
async fn an_empty_summary_still_says_what_it_covers() {
    let desk = Desk::start("").await;
    let mut messages = history(&[1, 1_250, 1_250]);
    messages[0]["content"] = "ok".into();
    let (_, sent) = desk.say(&messages).await;
    let text = summary(&sent).unwrap();
    assert!(text.contains("Record of 1 earlier message "), "{text}");
    assert_eq!(facts(&sent), [""; 0]);
}
