//! Messages that leave the history are in the summary exactly once, results are deterministic, and nothing else is written.

use super::harness::{Assistant, CONVERSATION, SCRIPTED, facts, history, numbers, summary, words};
use crate::conformance::scene::message;
use crate::support::reply::edited;
use serde_json::Value;

/// The number of messages that a summary says it covers.
fn covered(text: Option<&str>) -> usize {
    let Some(text) = text else { return 0 };
    let words: Vec<&str> = text.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "earlier").unwrap();
    words[at - 1].parse().unwrap()
}

/// A conversation of this many turns, and the next question.
fn chat(turns: usize) -> Vec<Value> {
    let mut messages = vec![message("system", "Be kind.")];
    for number in 0..turns * 2 {
        let role = if number % 2 == 0 { "user" } else { "assistant" };
        messages.push(message(role, &words(&format!("m{number}"), 7 + number * 13 % 40)));
    }
    messages.push(message("user", "And now?"));
    messages
}

/// At every turn, each message is either in the request or covered by its summary, and never both.
#[tokio::test]
async fn every_message_is_kept_or_covered_and_never_both() {
    for settings in ["", SCRIPTED] {
        let limits = "[context.blocks]\nhistory_max = 150\ntotal_max = 400\n";
        let assistant = Assistant::start(&format!("{settings}{limits}")).await;
        let mut before = 0;
        for turns in 0..30 {
            let (reply, sent) = assistant.send(&chat(turns)).await;
            let (kept, covered) = (numbers(&sent), covered(summary(&sent)));
            assert_eq!(kept, (covered..turns * 2).collect::<Vec<_>>());
            assert_eq!((edited(&reply, "folded"), edited(&reply, "dropped")), (covered, 0));
            assert_eq!(reply.header("x-tidegate-degraded"), None);
            assert!(covered >= before, "a summarized message came back");
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
        let assistant = Assistant::start(limits).await;
        let mut bodies = Vec::new();
        for turns in [3, 9, 10, 20] {
            let request = assistant.body(&chat(turns));
            let (_, first) = assistant.send_body(CONVERSATION, &request).await;
            // Two retries.
            for _ in 0..2 {
                assert_eq!(assistant.send_body(CONVERSATION, &request).await.1, first);
            }
            bodies.push(first);
        }
        // Another process with the same history.
        if let Some(seen) = &seen {
            assert_eq!(&bodies, seen);
        }
        seen = Some(bodies);
    }
}

/// "No new writes to storage": the stored summary and messages are whole, even if a request has less of them.
#[tokio::test]
async fn shortened_blocks_are_whole_in_the_store() {
    let assistant = Assistant::with_memory(SCRIPTED).await;
    let scripted: Vec<String> = (0..30).map(|number| words(&format!("Pier-{number}"), 25)).collect();
    assistant.set_summary(&scripted);
    assistant.pin(Some(&scripted[29])).await;
    let messages = history(&[2_000, 1_000, 1_000, 1_000]);
    let (_, sent) = assistant.send(&messages).await;
    assert!(!facts(&sent).contains(&scripted[29].as_str()), "the memory has the same line");
    assert!(!facts(&sent).contains(&scripted[0].as_str()), "there is room for it");
    let page = assistant.conversation(2).await;
    let summaries = page["summaries"].as_array().unwrap();
    let stored = summaries[0]["summary"]["key_facts"].as_array().unwrap();
    assert_eq!((summaries.len(), stored.len()), (1, 30));
    assert!(stored.iter().zip(&scripted).all(|(stored, scripted)| stored["text"] == scripted.as_str()));
    // A retry writes neither a summary nor a message.
    assistant.send(&messages).await;
    let again = assistant.conversation(3).await;
    assert_eq!(again["summaries"], page["summaries"]);
    let id = page["conversation"]["id"].as_str().unwrap();
    let recorded = assistant.admin(&format!("/api/conversations/{id}/messages")).await;
    let texts: Vec<&Value> =
        recorded["messages"].as_array().unwrap().iter().map(|one| &one["message"]["content"]).collect();
    for sent in &messages {
        assert_eq!(texts.iter().filter(|text| ***text == sent["content"]).count(), 1, "{texts:?}");
    }
}
