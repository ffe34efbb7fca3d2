//! "History Budget Rule": the newest messages within the limit, never fewer than the floor, in order.

use super::harness::{Assistant, CONVERSATION, SCRIPTED, count, facts, history, numbers, summary};
use crate::conformance::scene::message;
use crate::support::reply::edited;
use serde_json::json;

/// The document's limit of 2,500 words, and one word more.
#[tokio::test]
async fn history_of_2500_words_is_kept_and_one_more_is_folded() {
    let assistant = Assistant::start(SCRIPTED).await;
    let within = assistant.body(&history(&[100; 25]));
    let (reply, body) = assistant.send_body(CONVERSATION, &within).await;
    assert_eq!(body, within, "a request within its limits was changed");
    assert_eq!(reply.header("x-tidegate-trigger"), None);

    let mut sizes = [100; 25];
    sizes[24] = 101;
    let (reply, sent) = assistant.send(&history(&sizes)).await;
    assert_eq!(numbers(&sent), (1..25).collect::<Vec<_>>(), "not exactly the oldest message was folded");
    assert_eq!((edited(&reply, "folded"), edited(&reply, "dropped")), (1, 0));
    assert_eq!(reply.header("x-tidegate-trigger"), Some("blocks"));
}

#[tokio::test]
async fn messages_are_added_from_the_newest_while_they_fit() {
    let assistant = Assistant::start(SCRIPTED).await;
    // 1,000 + 900 + 600 are 2,500; the one-word message before them is over the limit, and so is everything before it.
    let (_, sent) = assistant.send(&history(&[5, 1, 600, 900, 1_000])).await;
    assert_eq!(numbers(&sent), [2, 3, 4]);
    // The first message that does not fit ends the selection: a smaller older one is not taken instead.
    let (_, sent) = assistant.send(&history(&[5, 601, 900, 1_000])).await;
    assert_eq!(numbers(&sent), [2, 3]);
}

#[tokio::test]
async fn the_two_newest_messages_are_kept_whatever_their_length() {
    let assistant = Assistant::start(SCRIPTED).await;
    let (reply, sent) = assistant.send(&history(&[10, 10, 3_000, 3_000])).await;
    assert_eq!(numbers(&sent), [2, 3]);
    assert_eq!(reply.header("x-tidegate-degraded"), None);
    // A message of 2,500 words fills the block, and the one before it is still kept.
    let (_, sent) = assistant.send(&history(&[10, 10, 10, 2_500])).await;
    assert_eq!(numbers(&sent), [2, 3]);
    let (_, sent) = assistant.send(&history(&[4_000])).await;
    assert_eq!(numbers(&sent), [0]);
}

#[tokio::test]
async fn the_floor_is_configurable() {
    let assistant = Assistant::start(&format!("{SCRIPTED}[context.blocks]\nmin_recent_messages = 4\n")).await;
    let (_, sent) = assistant.send(&history(&[10, 900, 900, 900, 900])).await;
    assert_eq!(numbers(&sent), [1, 2, 3, 4]);
}

/// If the floor is inside a call with three results, the call and all its results are kept.
#[tokio::test]
async fn the_floor_does_not_separate_a_call_from_its_results() {
    let assistant = Assistant::start(&format!("{SCRIPTED}[context.blocks]\nmin_recent_messages = 3\n")).await;
    let call =
        |id: &str| json!({ "id": id, "type": "function", "function": { "name": "look", "arguments": "{}" } });
    let calls = [call("a"), call("b"), call("c")];
    let result = |id: &str| json!({ "role": "tool", "tool_call_id": id, "content": "word ".repeat(900) });
    let mut messages = history(&[100, 100]);
    messages.push(json!({ "role": "assistant", "content": null, "tool_calls": calls }));
    messages.extend(["a", "b", "c"].map(result));
    messages.extend([message("assistant", "Seen."), message("user", "And now?")]);
    let (reply, sent) = assistant.send(&messages).await;
    assert_eq!(sent.messages()[1..], messages[3..], "messages after the summary");
    assert_eq!(edited(&reply, "folded"), 3, "not exactly the messages before the call were folded");
}

#[tokio::test]
async fn kept_messages_stay_in_order() {
    let assistant = Assistant::start(SCRIPTED).await;
    let sizes: Vec<usize> = (0..60).map(|index| 20 + (index * 37) % 160).collect();
    let messages = history(&sizes);
    let (_, sent) = assistant.send(&messages).await;
    let kept = numbers(&sent);
    let total: usize = kept.iter().map(|&number| sizes[number]).sum();
    assert!(total <= 2_500 && total + sizes[kept[0] - 1] > 2_500, "{total}");
    assert_eq!(kept, (kept[0]..60).collect::<Vec<_>>());
    let behind = sent.messages().len() - kept.len() - 1;
    assert_eq!(sent.messages()[behind..], messages[kept[0]..]);
}

/// Even if the first summary is longer than the message that it covers.
#[tokio::test]
async fn a_short_message_over_the_limit_is_folded() {
    let assistant = Assistant::start("").await;
    let mut sizes = [10; 251];
    sizes[0] = 1;
    let (reply, sent) = assistant.send(&history(&sizes)).await;
    assert_eq!(numbers(&sent), (1..251).collect::<Vec<_>>());
    assert_eq!(reply.header("x-tidegate-degraded"), None);
    assert!(
        summary(&sent).is_some_and(|text| text.contains("Record of 1 earlier message ")),
        "{sent:?}",
        sent = sent.0
    );
}

/// A conversation that is also too long for the window keeps as much as its block allows.
#[tokio::test]
async fn the_window_removes_no_more_than_the_block_limit_does() {
    let settings = format!("{SCRIPTED}[context.budget]\nmax_input = 6000\n");
    let assistant = Assistant::start(&settings).await;
    let (reply, sent) = assistant.send(&history(&[100; 100])).await;
    assert_eq!(numbers(&sent), (75..100).collect::<Vec<_>>());
    assert_eq!(reply.header("x-tidegate-trigger"), Some("blocks"));
    assert_eq!(facts(&sent), ["The harbour has 3 piers."]);
    assert!(count(summary(&sent).unwrap()) <= 500);
}
