//! Sections 3, 6 and 7: three triggers in order of priority, with one summarization each time.

use super::turns::{INSTRUCTION, answer, body, exchanged, headers, question, recent, send, turn, turns};
use crate::conformance::scene::{Scene, completion, message};
use crate::conformance::summarizer::{Summarizer, with_fact};
use crate::support::reply::{Reply, edited, figure};
use serde_json::{Value, json};

const FACT: &str = "The piers are short.";

/// Windows with input budgets of 1,000 and 1,001 tokens: `2530 − 506 − 1024` and `2531 − 506 − 1024`.
const MODELS: &str = "[models.\"even\"]\nwindow = 2530\nencoding = \"o200k_base\"\n\
                      [models.\"odd\"]\nwindow = 2531\nencoding = \"o200k_base\"\n";

/// A model whose window is too large for any token threshold.
const WIDE: &str = "gpt-4o";

/// Sends a turn with this model and `words` additional words.
async fn turn_with(scene: &Scene, model: &str, name: &str, number: usize, words: usize) -> Reply {
    scene.upstream.answer(completion(&answer(number)));
    let text = question(number) + &"word ".repeat(words);
    let messages = [message("system", INSTRUCTION), message("user", &text)];
    let reply = send(scene.tidegate.address, &headers(name), &body(model, &messages)).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    scene.upstream.next_request().await;
    reply
}

/// Sends four turns, and a fifth with `tokens` in all: its eight recent messages are more than six, but no overflow.
async fn fifth_turn_of(scene: &Scene, tokens: u64, model: &str) -> Reply {
    let name = format!("{model}-{tokens}");
    for number in 1..=4 {
        turn_with(scene, WIDE, &format!("probe-{name}"), number, 0).await;
        turn_with(scene, WIDE, &name, number, 0).await;
    }
    let probe = turn_with(scene, WIDE, &format!("probe-{name}"), 5, 0).await;
    let missing = tokens - figure(&probe, "x-tidegate-tokens-before");
    let reply = turn_with(scene, model, &name, 5, usize::try_from(missing).unwrap()).await;
    assert_eq!(figure(&reply, "x-tidegate-tokens-before"), tokens);
    reply
}

#[tokio::test]
async fn a_summary_is_made_at_seventy_percent_of_the_budget() {
    let summarizer = Summarizer::start(&with_fact(FACT)).await;
    let scene = Scene::start("rolling-memory", &(summarizer.settings("") + MODELS)).await;
    let below = fifth_turn_of(&scene, 700, "odd").await;
    assert_eq!(figure(&below, "x-tidegate-budget"), 1_001);
    assert_eq!((below.header("x-tidegate-trigger"), edited(&below, "folded")), (None, 0));
    let at = fifth_turn_of(&scene, 700, "even").await;
    assert_eq!(figure(&at, "x-tidegate-budget"), 1_000);
    // Of eight recent messages, two are more than six.
    assert_eq!((at.header("x-tidegate-trigger"), edited(&at, "folded")), (Some("budget"), 2));
    assert_eq!(summarizer.asked().len(), 1);
}

/// User turns and messages are counted separately: ten user turns are about twenty messages.
#[tokio::test]
async fn a_summary_is_made_every_ten_user_turns() {
    let summarizer = Summarizer::start(&with_fact(FACT)).await;
    let settings = summarizer.settings("when = { budget_ratio = 0.70, messages = 100, user_turns = 10 }");
    let scene = Scene::start("rolling-memory", &settings).await;
    for number in 1..=30 {
        let (reply, sent) = turn(&scene, "c", number).await;
        let is_due = number % 10 == 0;
        assert_eq!(reply.header("x-tidegate-trigger"), is_due.then_some("turns"), "turn {number}");
        assert_eq!(summarizer.asked().len(), number / 10, "turn {number}");
        if is_due {
            let kept: Vec<String> = [exchanged(number - 3..=number - 1), vec![question(number)]].concat();
            assert_eq!(recent(&sent), kept);
        }
    }
}

/// All three triggers at once, then two, then one. One summary is made each time.
#[tokio::test]
async fn tokens_precede_overflow_and_overflow_precedes_turns() {
    let when =
        |messages: usize| format!("when = {{ budget_ratio = 0.70, messages = {messages}, user_turns = 7 }}");
    for (messages, model, trigger) in [(11, "even", "budget"), (11, WIDE, "messages"), (100, WIDE, "turns")] {
        let summarizer = Summarizer::start(&with_fact(FACT)).await;
        let scene = Scene::start("rolling-memory", &(summarizer.settings(&when(messages)) + MODELS)).await;
        for number in 1..=6 {
            turn_with(&scene, WIDE, "c", number, 0).await;
        }
        assert!(summarizer.asked().is_empty());
        let reply = turn_with(&scene, model, "c", 7, 300).await;
        assert_eq!(reply.header("x-tidegate-trigger"), Some(trigger));
        assert_eq!((summarizer.asked().len(), edited(&reply, "folded")), (1, 6), "{trigger}");
    }
}

/// The client gets the answer of the upstream after the summary was made.
#[tokio::test]
async fn the_request_continues_after_the_summary() {
    let summarizer = Summarizer::start(&with_fact(FACT)).await;
    let scene = Scene::start("rolling-memory", &summarizer.settings("")).await;
    let (reply, _) = turns(&scene, "c", 1..=7).await;
    let response: Value = reply.json();
    assert_eq!(response["choices"][0]["message"]["content"], json!(answer(7)));
    assert_eq!((summarizer.asked().len(), scene.upstream.requests().len()), (1, 7));
}

/// A client cannot shorten messages that it does not send, so six messages over budget are folded further and not refused. That
/// takes no second summarization.
#[tokio::test]
async fn six_messages_over_budget_are_folded_further() {
    let summarizer = Summarizer::start(&with_fact(FACT)).await;
    let scene = Scene::start("rolling-memory", &(summarizer.settings("") + MODELS)).await;
    for number in 1..=5 {
        turn_with(&scene, WIDE, "c", number, 400).await;
    }
    let reply = turn_with(&scene, "even", "c", 6, 0).await;
    assert!(figure(&reply, "x-tidegate-tokens-after") <= 1_000);
    assert_eq!((reply.header("x-tidegate-degraded"), summarizer.asked().len()), (None, 1));
}
