//! Sections 5 and 8: pruning, if a summary is not enough.

use super::chat::{MODELS, ask, chat, longer, sized};
use crate::conformance::operator::{conversation, metric};
use crate::conformance::scene::{Scene, Sent, message};
use crate::conformance::summarizer::Summarizer;
use crate::support::reply::{edited, figure};
use serde_json::{Value, json};

const AFTER: &str = "x-tidegate-tokens-after";

/// Folding keeps eight turns and pruning two. The facts of the summary rest on these messages.
async fn start(rests_on: &[usize]) -> (Summarizer, Scene) {
    let fact = json!({ "text": "Pier 4 is rotten.", "rests_on": rests_on });
    let summary = json!({ "summary_text": "Piers were looked at.", "key_facts": [fact] });
    let summarizer = Summarizer::start(&summary).await;
    let settings =
        summarizer.settings("keep = { turns = 8 }") + "[context.prune]\nkeep = { turns = 2 }\n" + MODELS;
    let scene = Scene::start("budgeted-chat", &settings).await;
    (summarizer, scene)
}

/// Eight answered questions, the fourth and fifth of them after a tool call, and a ninth question. Each call is a turn.
fn conversation_with(result: usize) -> Vec<Value> {
    let mut messages = vec![message("system", "Be brief.")];
    for turn in 1..=8 {
        let length = if turn <= 2 { 10 } else { 3 };
        messages.push(message("user", &format!("Question {turn}: {}", "how is it? ".repeat(length))));
        if matches!(turn, 4 | 5) {
            let function = json!({ "name": "look", "arguments": json!({ "pier": turn }).to_string() });
            let call = json!({ "id": format!("call_{turn}"), "type": "function", "function": function });
            messages.push(json!({ "role": "assistant", "content": null, "tool_calls": [call] }));
            let text = format!("Result {turn}: {}", "rotten wood ".repeat(result));
            messages.push(json!({ "role": "tool", "tool_call_id": format!("call_{turn}"), "content": text }));
        }
        messages.push(message("assistant", &format!("Answer {turn}: {}", "it is fine. ".repeat(length))));
    }
    messages.push(message("user", "And now?"));
    messages
}

/// Indexes in [`conversation_with`].
const FOURTH_RESULT: usize = 9;
const EIGHTH_QUESTION: usize = 19;

/// The remaining messages after the summary, by how they begin; `call` for a call.
fn left(sent: &Sent) -> Vec<String> {
    let name = |message: &Value| match message["content"].as_str() {
        Some(text) => text.split(':').next().unwrap().to_owned(),
        None => format!("call {}", message["tool_calls"][0]["id"].as_str().unwrap()),
    };
    sent.messages()[2..].iter().map(name).collect()
}

/// Sends the conversation, with 900 tokens including its summary, to this model. Returns the remaining messages.
async fn pruned(scene: &Scene, result: usize, model: &str) -> Vec<String> {
    let messages = sized(scene, AFTER, &conversation_with(result), EIGHTH_QUESTION, 900).await;
    for _ in 0..2 {
        scene.upstream.next_request().await;
    }
    let reply = ask(scene, model, model, &messages).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    left(&Sent(scene.upstream.next_request().await.json()))
}

const WHOLE: [&str; 17] = [
    "Question 3",
    "Answer 3",
    "Question 4",
    "call call_4",
    "Result 4",
    "Answer 4",
    "Question 5",
    "call call_5",
    "Result 5",
    "Answer 5",
    "Question 6",
    "Answer 6",
    "Question 7",
    "Answer 7",
    "Question 8",
    "Answer 8",
    "And now?",
];

fn without(gone: &[&str]) -> Vec<&'static str> {
    WHOLE.into_iter().filter(|name| !gone.contains(name)).collect()
}

/// 900 of 1,001 is 89.91 %, and of 1,000 it is 90 %. The size before the summary does not matter.
#[tokio::test]
async fn nothing_is_pruned_below_ninety_percent_after_the_summary() {
    let (_summarizer, scene) = start(&[]).await;
    assert_eq!(pruned(&scene, 90, "odd").await, WHOLE);
    let page = conversation(&scene.tidegate, "odd", 1).await;
    let turn = &page["turns"][0];
    assert!(turn["tokens_before"].as_u64().unwrap() > 901, "{turn}");
    assert_eq!((&turn["tokens_after_summary"], &turn["tokens_after_prune"]), (&json!(900), &json!(900)));
    assert_eq!((&turn["summary_triggered"], &turn["prune_triggered"]), (&json!(true), &json!(false)));
    assert_eq!(metric(&scene.tidegate, "context_prune_count").await, 0.0);
}

/// The oldest call first, and no more than necessary to be below 70 %.
#[tokio::test]
async fn the_oldest_call_and_its_result_are_pruned_first() {
    let (_summarizer, scene) = start(&[]).await;
    assert_eq!(pruned(&scene, 90, "even").await, without(&["call call_4", "Result 4"]));
    let page = conversation(&scene.tidegate, "even", 1).await;
    let turn = &page["turns"][0];
    assert_eq!(turn["tokens_after_summary"], 900);
    let after = turn["tokens_after_prune"].as_u64().unwrap();
    assert!(after < 700 && after > 450, "{turn}");
    assert_eq!((&turn["summary_triggered"], &turn["prune_triggered"]), (&json!(true), &json!(true)));
    assert_eq!(metric(&scene.tidegate, "context_prune_count").await, 1.0);
    // The summary covers the pruned messages.
    assert_eq!(page["summaries"][0]["covered"], 16);
}

/// If pruning all calls is not enough, assistant messages are pruned, but no user message.
#[tokio::test]
async fn answers_are_pruned_after_calls_and_questions_never() {
    let (_summarizer, scene) = start(&[]).await;
    let calls = ["call call_4", "Result 4", "call call_5", "Result 5"];
    let left = pruned(&scene, 20, "even").await;
    let answers = ["Answer 3", "Answer 4", "Answer 5", "Answer 6"];
    let gone: Vec<&str> = answers.into_iter().filter(|name| !left.contains(&(*name).to_owned())).collect();
    assert!(!gone.is_empty() && answers.starts_with(&gone), "the oldest first: {left:?}");
    assert_eq!(left, without(&[&calls[..], &gone].concat()));
}

/// A message that a fact rests on is an anchor, and so is its call. The other call is pruned instead.
#[tokio::test]
async fn messages_the_summary_rests_on_are_kept() {
    let (_summarizer, scene) = start(&[FOURTH_RESULT]).await;
    assert_eq!(pruned(&scene, 90, "even").await, without(&["call call_5", "Result 5"]));
}

/// What a summary says is kept even if the next one fails.
#[tokio::test]
async fn a_fact_survives_a_failed_summary() {
    let (summarizer, scene) = start(&[FOURTH_RESULT]).await;
    let mut messages = sized(&scene, AFTER, &conversation_with(90), EIGHTH_QUESTION, 900).await;
    assert_eq!(ask(&scene, "even", "c", &messages).await.status, 200);
    summarizer.breaks();
    messages.push(message("assistant", &format!("Answer 9: {}", "it is fine. ".repeat(60))));
    messages.push(message("user", &format!("Question 10: {}", "how is it? ".repeat(60))));
    let reply = ask(&scene, "even", "c", &messages).await;
    assert_eq!((reply.status, reply.header("x-tidegate-degraded")), (200, Some("summarizer_server_error")));
    assert!(edited(&reply, "dropped") == 0 && figure(&reply, AFTER) <= 1_000);
    let sent = Sent(scene.upstream.requests().pop().unwrap().json());
    assert!(sent.summary().is_some() && sent.has("Pier 4 is rotten."));
    assert_eq!(left(&sent).last().map(String::as_str), Some("Question 10"));
}

/// Met differently: if four turns do not fit, they are folded as well before a request is refused.
#[tokio::test]
async fn four_turns_that_do_not_fit_are_folded_rather_than_refused() {
    let scene = Scene::start("budgeted-chat", MODELS).await;
    let answer = chat(7).len() - 2;
    let mut messages = longer(&chat(7), answer - 2, 500);
    messages = longer(&messages, answer - 4, 500);
    let reply = ask(&scene, "even", "c", &messages).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert!(edited(&reply, "folded") > 4 && figure(&reply, AFTER) <= 1_000);
    let turn = &conversation(&scene.tidegate, "c", 1).await["turns"][0];
    assert_eq!((&turn["summary_triggered"], &turn["prune_triggered"]), (&json!(true), &json!(true)));
}

/// By default pruning keeps as many turns as folding, so nothing is left to prune above 90 %.
#[tokio::test]
async fn four_turns_are_kept_by_default() {
    let scene = Scene::start("budgeted-chat", MODELS).await;
    let messages = sized(&scene, "x-tidegate-tokens-before", &chat(7), 1, 950).await;
    let reply = ask(&scene, "even", "c", &messages).await;
    assert_eq!((reply.status, edited(&reply, "folded")), (200, 4));
    assert!(figure(&reply, AFTER) < 700);
    let turn = &conversation(&scene.tidegate, "c", 1).await["turns"][0];
    assert_eq!((&turn["summary_triggered"], &turn["prune_triggered"]), (&json!(true), &json!(false)));
    assert_eq!(metric(&scene.tidegate, "context_prune_count").await, 0.0);
}
