//! "History Budget Rule": recent messages first, within their limit, never fewer than the floor, in their order.

use super::desk::{Desk, TALK, TOLD, count, facts, history, numbers, summary};
use crate::conformance::scene::message;
use crate::support::reply::edited;
use serde_json::json;

/// The limit of the document, 2,500 words, on both sides of its edge.
#[tokio::test]
async fn history_of_2500_words_is_kept_and_one_more_is_folded() {
    let desk = Desk::start(TOLD).await;
    let within = desk.body(&history(&[100; 25]));
    let (reply, body) = desk.send(TALK, &within).await;
    assert_eq!(body, within, "nothing is touched");
    assert_eq!(reply.header("x-tidegate-trigger"), None);

    let mut sizes = [100; 25];
    sizes[24] = 101;
    let (reply, sent) = desk.say(&history(&sizes)).await;
    assert_eq!(numbers(&sent), (1..25).collect::<Vec<_>>(), "the oldest leaves");
    assert_eq!((edited(&reply, "folded"), edited(&reply, "dropped")), (1, 0));
    assert_eq!(reply.header("x-tidegate-trigger"), Some("blocks"));
}

#[tokio::test]
async fn messages_are_added_from_the_newest_while_they_fit() {
    let desk = Desk::start(TOLD).await;
    // 1,000 + 900 + 600 are 2,500; the message of one word before them is one too many, and so is all before it.
    let (_, sent) = desk.say(&history(&[5, 1, 600, 900, 1_000])).await;
    assert_eq!(numbers(&sent), [2, 3, 4]);
    // The first that does not fit ends it: a smaller one behind it is not taken instead.
    let (_, sent) = desk.say(&history(&[5, 601, 900, 1_000])).await;
    assert_eq!(numbers(&sent), [2, 3]);
}

#[tokio::test]
async fn the_two_newest_messages_are_kept_whatever_their_length() {
    let desk = Desk::start(TOLD).await;
    let (reply, sent) = desk.say(&history(&[10, 10, 3_000, 3_000])).await;
    assert_eq!(numbers(&sent), [2, 3]);
    assert_eq!(reply.header("x-tidegate-degraded"), None);
    // One of 2,500 words fills the block, and the one before it stays all the same.
    let (_, sent) = desk.say(&history(&[10, 10, 10, 2_500])).await;
    assert_eq!(numbers(&sent), [2, 3]);
    let (_, sent) = desk.say(&history(&[4_000])).await;
    assert_eq!(numbers(&sent), [0]);
}

#[tokio::test]
async fn the_floor_is_configurable() {
    let desk = Desk::start(&format!("{TOLD}[context.blocks]\nmin_recent_messages = 4\n")).await;
    let (_, sent) = desk.say(&history(&[10, 900, 900, 900, 900])).await;
    assert_eq!(numbers(&sent), [1, 2, 3, 4]);
}

/// The floor lies inside a call with three results: all of it stays rather than a part, and rather than fewer messages.
#[tokio::test]
async fn the_floor_does_not_separate_a_call_from_its_results() {
    let desk = Desk::start(&format!("{TOLD}[context.blocks]\nmin_recent_messages = 3\n")).await;
    let call =
        |id: &str| json!({ "id": id, "type": "function", "function": { "name": "look", "arguments": "{}" } });
    let calls = [call("a"), call("b"), call("c")];
    let result = |id: &str| json!({ "role": "tool", "tool_call_id": id, "content": "word ".repeat(900) });
    let mut messages = history(&[100, 100]);
    messages.push(json!({ "role": "assistant", "content": null, "tool_calls": calls }));
    messages.extend(["a", "b", "c"].map(result));
    messages.extend([message("assistant", "Seen."), message("user", "And now?")]);
    let (reply, sent) = desk.say(&messages).await;
    assert_eq!(sent.messages()[1..], messages[3..], "behind the summary");
    assert_eq!(edited(&reply, "folded"), 3, "what came before the call, the question that it answers too");
}

#[tokio::test]
async fn kept_messages_stay_in_order() {
    let desk = Desk::start(TOLD).await;
    let sizes: Vec<usize> = (0..60).map(|index| 20 + (index * 37) % 160).collect();
    let messages = history(&sizes);
    let (_, sent) = desk.say(&messages).await;
    let kept = numbers(&sent);
    let total: usize = kept.iter().map(|&number| sizes[number]).sum();
    assert!(total <= 2_500 && total + sizes[kept[0] - 1] > 2_500, "{total}");
    assert_eq!(kept, (kept[0]..60).collect::<Vec<_>>());
    let behind = sent.messages().len() - kept.len() - 1;
    assert_eq!(sent.messages()[behind..], messages[kept[0]..]);
}

/// Also where the first summary costs more than the few words that it stands for.
#[tokio::test]
async fn a_short_message_over_the_limit_is_folded() {
    let desk = Desk::start("").await;
    let mut sizes = [10; 251];
    sizes[0] = 1;
    let (reply, sent) = desk.say(&history(&sizes)).await;
    assert_eq!(numbers(&sent), (1..251).collect::<Vec<_>>());
    assert_eq!(reply.header("x-tidegate-degraded"), None);
    assert!(
        summary(&sent).is_some_and(|text| text.contains("Record of 1 earlier message ")),
        "{sent:?}",
        sent = sent.0
    );
}

/// A conversation that is too long for the window as well keeps what its block has room for, not less.
#[tokio::test]
async fn the_window_removes_no_more_than_the_block_limit_does() {
    let settings = format!("{TOLD}[context.budget]\nmax_input = 6000\n");
    let desk = Desk::start(&settings).await;
    let (reply, sent) = desk.say(&history(&[100; 100])).await;
    assert_eq!(numbers(&sent), (75..100).collect::<Vec<_>>());
    assert_eq!(reply.header("x-tidegate-trigger"), Some("blocks"));
    assert_eq!(facts(&sent), ["The harbour has 3 piers."]);
    assert!(count(summary(&sent).unwrap()) <= 500);
}
