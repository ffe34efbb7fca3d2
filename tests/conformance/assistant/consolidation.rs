//! What leaves the history is in the summary, once; the same state and request give the same bytes; nothing else is written.

use super::desk::{Desk, TALK, TOLD, facts, history, numbers, summary, words};
use crate::conformance::scene::message;
use crate::support::reply::edited;
use serde_json::Value;

/// How many messages the summary of a request says that it stands for.
fn covered(text: Option<&str>) -> usize {
    let Some(text) = text else { return 0 };
    let words: Vec<&str> = text.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "earlier").unwrap();
    words[at - 1].parse().unwrap()
}

/// The messages of a conversation after so many turns, each of some words, and the next question.
fn talk(turns: usize) -> Vec<Value> {
    let mut messages = vec![message("system", "Be kind.")];
    for number in 0..turns * 2 {
        let role = if number % 2 == 0 { "user" } else { "assistant" };
        messages.push(message(role, &words(&format!("m{number}"), 7 + number * 13 % 40)));
    }
    messages.push(message("user", "And now?"));
    messages
}

/// Turn by turn, every message is either in the request or covered by the summary in it, and never both.
#[tokio::test]
async fn every_message_is_kept_or_covered_and_never_both() {
    for settings in ["", TOLD] {
        let limits = "[context.blocks]\nhistory_max = 150\ntotal_max = 400\n";
        let desk = Desk::start(&format!("{settings}{limits}")).await;
        let mut before = 0;
        for turns in 0..30 {
            let (reply, sent) = desk.say(&talk(turns)).await;
            let (kept, covered) = (numbers(&sent), covered(summary(&sent)));
            assert_eq!(kept, (covered..turns * 2).collect::<Vec<_>>());
            assert_eq!((edited(&reply, "folded"), edited(&reply, "dropped")), (covered, 0));
            assert_eq!(reply.header("x-tidegate-degraded"), None);
            assert!(covered >= before, "what was summarized stays so");
            before = covered;
            if !settings.is_empty() {
                assert_eq!(facts(&sent).len(), usize::from(covered > 0));
            }
        }
        assert!(before > 40, "{before}");
    }
}

#[tokio::test]
async fn the_same_state_and_request_give_the_same_bytes() {
    let limits = "[context.blocks]\nhistory_max = 150\ntotal_max = 400\n";
    let mut seen: Option<Vec<String>> = None;
    for _ in 0..2 {
        let desk = Desk::start(limits).await;
        let mut bodies = Vec::new();
        for turns in [3, 9, 10, 20] {
            let request = desk.body(&talk(turns));
            let (_, first) = desk.send(TALK, &request).await;
            // A retry, and a retry of the retry.
            for _ in 0..2 {
                assert_eq!(desk.send(TALK, &request).await.1, first);
            }
            bodies.push(first);
        }
        // Another process with the same past.
        if let Some(seen) = &seen {
            assert_eq!(&bodies, seen);
        }
        seen = Some(bodies);
    }
}

/// "No new writes to storage": the stored summary and the recorded messages are whole, whatever a request shows of them.
#[tokio::test]
async fn shortened_blocks_are_whole_in_the_store() {
    let desk = Desk::with_notes(TOLD).await;
    let told: Vec<String> = (0..30).map(|number| words(&format!("Pier-{number}"), 25)).collect();
    desk.summarizes(&told);
    desk.pin(Some(&told[29])).await;
    let messages = history(&[2_000, 1_000, 1_000, 1_000]);
    let (_, sent) = desk.say(&messages).await;
    assert!(!facts(&sent).contains(&told[29].as_str()), "the notes say it");
    assert!(!facts(&sent).contains(&told[0].as_str()), "there is no room for it");
    let page = desk.told(2).await;
    let summaries = page["summaries"].as_array().unwrap();
    let stored = summaries[0]["summary"]["key_facts"].as_array().unwrap();
    assert_eq!((summaries.len(), stored.len()), (1, 30));
    assert!(stored.iter().zip(&told).all(|(stored, told)| stored["text"] == told.as_str()));
    // A retry reads, and writes neither a summary nor a message.
    desk.say(&messages).await;
    let again = desk.told(3).await;
    assert_eq!(again["summaries"], page["summaries"]);
    let id = page["conversation"]["id"].as_str().unwrap();
    let recorded = desk.admin(&format!("/api/conversations/{id}/messages")).await;
    let texts: Vec<&Value> =
        recorded["messages"].as_array().unwrap().iter().map(|one| &one["message"]["content"]).collect();
    for sent in &messages {
        assert_eq!(texts.iter().filter(|text| ***text == sent["content"]).count(), 1, "{texts:?}");
    }
}
