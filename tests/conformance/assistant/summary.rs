//! The summary block and its limit.

use super::harness::{Assistant, SCRIPTED, count, facts, facts_for, frame, history, summary};

/// The document's limit of 500 words, and one word more. The excess is removed by whole entries, the oldest fact first.
#[tokio::test]
async fn a_summary_of_500_words_is_kept_and_one_more_costs_an_entry() {
    let frame = frame().await;
    for (size, first) in [(500, "Pier-0"), (501, "Pier-1")] {
        let assistant = Assistant::start(SCRIPTED).await;
        let scripted = facts_for(size, frame);
        assistant.set_summary(&scripted);
        let (_, sent) = assistant.send(&history(&[2_000, 2_000, 2_000])).await;
        let (text, facts) = (summary(&sent).unwrap(), facts(&sent));
        assert!(facts[0].starts_with(first), "{size}: {facts:?}");
        assert_eq!(facts[facts.len() - 1], scripted[scripted.len() - 1]);
        if size == 500 {
            assert_eq!(facts, scripted);
            assert_eq!(count(text), 500);
        } else {
            assert_eq!(facts, scripted[1..]);
            assert_eq!(count(text), 501 - count(&scripted[0]) - 1);
        }
    }
}

#[tokio::test]
async fn a_summary_without_room_is_left_out() {
    let assistant = Assistant::start(&format!("{SCRIPTED}[context.blocks]\nsummary_max = 5\n")).await;
    let (_, sent) = assistant.send(&history(&[2_000, 2_000, 2_000])).await;
    assert_eq!(summary(&sent), None);
}

/// A summary without entries still says how many messages it covers.
#[tokio::test]
async fn an_empty_summary_still_says_what_it_covers() {
    let assistant = Assistant::start("").await;
    let mut messages = history(&[1, 1_250, 1_250]);
    messages[0]["content"] = "ok".into();
    let (_, sent) = assistant.send(&messages).await;
    let text = summary(&sent).unwrap();
    assert!(text.contains("Record of 1 earlier message "), "{text}");
    assert_eq!(facts(&sent), [""; 0]);
}
