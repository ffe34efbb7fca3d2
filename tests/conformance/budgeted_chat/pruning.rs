//! Sections 5 and 8: what goes when a summary is not enough.

use super::talk::{MODELS, ask, chat, longer, sized};
use crate::conformance::operator::{conversation, metric};
use crate::conformance::scene::{Scene, Sent, message};
use crate::conformance::summarizer::Summarizer;
use crate::support::reply::{edited, figure};
use serde_json::{Value, json};

const AFTER: &str = "x-tidegate-tokens-after";

/// A summary leaves eight turns raw, and pruning two. What the summary says rests on these messages.
async fn start(rests_on: &[usize]) -> (Summarizer, Scene) {
    let fact = json!({ "text": "Pier 4 is rotten.", "rests_on": rests_on });
    let summary = json!({ "summary_text": "Piers were looked at.", "key_facts": [fact] });
    let summarizer = Summarizer::start(&summary).await;
    let settings =
        summarizer.settings("keep = { turns = 8 }") + "[context.prune]\nkeep = { turns = 2 }\n" + MODELS;
    let scene = Scene::start("budgeted-chat", &settings).await;
    (summarizer, scene)
}

/// Eight questions with their answers, of which the fourth and the fifth took a call of a tool, and a ninth. A call is a turn of its own.
fn talk(result: usize) -> Vec<Value> {
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

/// Where it is, in [`talk`].
const FOURTH_RESULT: usize = 9;
const EIGHTH_QUESTION: usize = 19;

/// What is left of each message, by how it begins; `call` for a call.
fn left(sent: &Sent) -> Vec<String> {
    let name = |message: &Value| match message["content"].as_str() {
        Some(text) => text.split(':').next().unwrap().to_owned(),
        None => format!("call {}", message["tool_calls"][0]["id"].as_str().unwrap()),
    };
    sent.messages()[2..].iter().map(name).collect()
}

/// The conversation, which uses 900 tokens beside its summary, with a model of this name.
async fn pruned(scene: &Scene, result: usize, model: &str) -> Vec<String> {
    let messages = sized(scene, AFTER, &talk(result), EIGHTH_QUESTION, 900).await;
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

/// 900 of 1,001 are 89.91 %, of 1,000 they are 90 %. What was before the summary is no matter.
#[tokio::test]
async fn nothing_is_pruned_below_ninety_percent_after_the_summary() {
    let (_summarizer, scene) = start(&[]).await;
    assert_eq!(pruned(&scene, 90, "odd").await, WHOLE);
    let told = conversation(&scene.tidegate, "odd", 1).await;
    let turn = &told["turns"][0];
    assert!(turn["tokens_before"].as_u64().unwrap() > 901, "{turn}");
    assert_eq!((&turn["tokens_after_summary"], &turn["tokens_after_prune"]), (&json!(900), &json!(900)));
    assert_eq!((&turn["summary_triggered"], &turn["prune_triggered"]), (&json!(true), &json!(false)));
    assert_eq!(metric(&scene.tidegate, "context_prune_count").await, 0.0);
}

/// The oldest chatter first, and no more than it takes to be below 70 % again.
#[tokio::test]
async fn the_oldest_call_and_its_result_are_pruned_first() {
    let (_summarizer, scene) = start(&[]).await;
    assert_eq!(pruned(&scene, 90, "even").await, without(&["call call_4", "Result 4"]));
    let told = conversation(&scene.tidegate, "even", 1).await;
    let turn = &told["turns"][0];
    assert_eq!(turn["tokens_after_summary"], 900);
    let after = turn["tokens_after_prune"].as_u64().unwrap();
    assert!(after < 700 && after > 450, "{turn}");
    assert_eq!((&turn["summary_triggered"], &turn["prune_triggered"]), (&json!(true), &json!(true)));
    assert_eq!(metric(&scene.tidegate, "context_prune_count").await, 1.0);
    // What is pruned is in the summary all the same.
    assert_eq!(told["summaries"][0]["covered"], 16);
}

/// Where all chatter is not enough, what the assistant said goes, and nothing that the user said.
#[tokio::test]
async fn answers_are_pruned_after_calls_and_questions_never() {
    let (_summarizer, scene) = start(&[]).await;
    let chatter = ["call call_4", "Result 4", "call call_5", "Result 5"];
    let left = pruned(&scene, 20, "even").await;
    let answers = ["Answer 3", "Answer 4", "Answer 5", "Answer 6"];
    let gone: Vec<&str> = answers.into_iter().filter(|name| !left.contains(&(*name).to_owned())).collect();
    assert!(!gone.is_empty() && answers.starts_with(&gone), "the oldest first: {left:?}");
    assert_eq!(left, without(&[&chatter[..], &gone].concat()));
}

/// A message that a fact of the summary rests on is an anchor, and its call with it: the other goes for it.
#[tokio::test]
async fn messages_the_summary_rests_on_are_kept() {
    let (_summarizer, scene) = start(&[FOURTH_RESULT]).await;
    assert_eq!(pruned(&scene, 90, "even").await, without(&["call call_5", "Result 5"]));
}

/// An anchor stays beside its summary also when the next summary fails and what came since has to be cut.
#[tokio::test]
async fn an_anchor_survives_a_truncation() {
    let (summarizer, scene) = start(&[FOURTH_RESULT]).await;
    let mut messages = sized(&scene, AFTER, &talk(90), EIGHTH_QUESTION, 900).await;
    assert_eq!(ask(&scene, "even", "c", &messages).await.status, 200);
    summarizer.breaks();
    messages.push(message("assistant", &format!("Answer 9: {}", "it is fine. ".repeat(60))));
    messages.push(message("user", &format!("Question 10: {}", "how is it? ".repeat(60))));
    let reply = ask(&scene, "even", "c", &messages).await;
    assert_eq!((reply.status, reply.header("x-tidegate-degraded")), (200, Some("summarizer_server_error")));
    assert!(edited(&reply, "dropped") > 0 && figure(&reply, AFTER) <= 1_000);
    let sent = Sent(scene.upstream.requests().pop().unwrap().json());
    assert!(sent.summary().is_some() && sent.has("earlier turns of this conversation are missing here"));
    let left = left(&sent);
    for name in ["call call_4", "Result 4", "Question 10"] {
        assert!(left.iter().any(|one| one == name), "{name} in {left:?}");
    }
}

/// Met differently: where four turns are more than there is room for, they are folded as well before a request is refused.
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

/// By default as many turns are left alone as by a summary, so that there is nothing more to go; 90 % of the budget is no reason to
/// say so.
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
