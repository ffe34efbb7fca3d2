//! A cache breakpoint on a message that goes moves to the text in its place. There are never more than the client has set.

use super::scene::{send, start, upstream};
use crate::support::chat::{answered, body, user};
use crate::support::reply::edited;
use serde_json::Value;

const MARKER: &str = r#""cache_control":{"type":"ephemeral","ttl":"1h"}"#;

fn part(text: &str) -> String {
    format!("[{{\"type\":\"text\",\"text\":{},{MARKER}}}]", serde_json::json!(text))
}

/// A conversation whose client marks its instructions, an early result, and the last two messages that are not the model's.
fn conversation(questions: usize) -> Vec<String> {
    let mut messages = vec![format!("{{\"role\":\"system\",\"content\":{}}}", part("Be exact."))];
    for number in 0..questions {
        messages.push(user(&format!("Question {number}?")));
        if number + 1 < questions {
            messages.extend(answered(number));
        }
    }
    let last = messages.len() - 1;
    messages[last] = format!("{{\"role\":\"user\",\"content\":{}}}", part("And the last one?"));
    let is_result = |message: &String| message.contains("\"role\":\"tool\"");
    let results: Vec<usize> = (0..last).filter(|&index| is_result(&messages[index])).collect();
    for &index in results.first().into_iter().chain(results.last()) {
        let message: Value = serde_json::from_str(&messages[index]).unwrap();
        let (id, text) = (message["tool_call_id"].as_str().unwrap(), message["content"].as_str().unwrap());
        messages[index] =
            format!("{{\"role\":\"tool\",\"tool_call_id\":\"{id}\",\"content\":{}}}", part(text));
    }
    messages
}

/// The texts of the marked parts of a request, in order.
fn marked(body: &str) -> Vec<String> {
    let body: Value = serde_json::from_str(body).unwrap();
    let messages = body["messages"].as_array().unwrap().iter();
    let parts = messages.filter_map(|message| message["content"].as_array()).flatten();
    let marked = parts.filter(|part| part.get("cache_control").is_some());
    marked.map(|part| part["text"].as_str().unwrap().to_owned()).collect()
}

/// Sends a growing conversation. Returns how many requests had a breakpoint moved to a text that begins like this.
async fn moved(settings: &str, begins: &str) -> usize {
    let upstream = upstream().await;
    let tidegate = start(&format!("[store]\nurl = \"memory:\"\n{settings}"), &upstream).await;
    let mut moved = 0;
    for questions in 4..16 {
        let messages = conversation(questions);
        let sent = marked(&body(&messages));
        assert_eq!(sent.len(), 4);
        let (reply, forwarded) = send(&tidegate, &upstream, "a", &messages).await;
        let found = marked(&forwarded.body);
        assert_eq!(forwarded.body.matches(MARKER).count(), 4, "{questions}: {}", forwarded.body);
        assert_eq!((&found[0], &found[3]), (&sent[0], &sent[3]), "{questions}");
        let own: Vec<usize> = (0..4).filter(|&at| found[at].starts_with(begins)).collect();
        if edited(&reply, "folded") + edited(&reply, "dropped") > 0 {
            // The one of the early result, which is the second.
            assert_eq!((own, found.contains(&sent[1])), (vec![1], false), "{questions}: {found:?}");
            moved += 1;
        } else {
            assert!(own.is_empty(), "{questions}: {found:?}");
        }
    }
    moved
}

const SUMMARY: &str = "<conversation_record>";
const DROPPED: &str = "[";

#[tokio::test]
async fn a_fold_moves_a_breakpoint_to_its_summary() {
    for strategy in ["summarization", "hybrid"] {
        for placement in ["merge", "message"] {
            let settings = format!(
                "[context]\nstrategy = \"{strategy}\"\n[context.fold]\nmode = \"inline\"\nwhen = {{ user_turns = 5 }}\nkeep = {{ user_turns = 3 }}\n\
                 placement = \"{placement}\"\n"
            );
            assert!(moved(&settings, SUMMARY).await >= 8, "{settings}");
        }
    }
}

#[tokio::test]
async fn a_window_moves_a_breakpoint_to_its_marker() {
    for placement in ["merge", "message"] {
        let settings = format!(
            "[context]\nstrategy = \"window\"\n[context.window]\nhead_min = 1\nhead_max = 1\n[context.fold]\nplacement = \"{placement}\"\n\
             [context.budget]\nmax_input = 2500\n"
        );
        assert!(moved(&settings, DROPPED).await >= 5, "{settings}");
    }
}
