//! Section 7: what is summarized, what a summary contains, and what it replaces.

use super::chat::{answer, chat, question};
use crate::conformance::operator::conversation;
use crate::conformance::scene::{Scene, message};
use crate::conformance::summarizer::Summarizer;
use crate::support::command::{command, run};
use serde_json::{Value, json};
use tempfile::TempDir;

fn full_summary() -> Value {
    json!({
        "summary_text": "Three piers were ordered.",
        "key_facts": [{ "text": "Pier 1 needs 100 planks.", "rests_on": [1] }],
        "open_questions": [{ "text": "Who delivers the planks?", "rests_on": [3] }],
        "decisions": [{ "text": "Oak is used.", "rests_on": [2] }],
        "action_items": [{ "text": "Order the planks.", "rests_on": [4] }],
    })
}

#[tokio::test]
async fn all_but_the_last_four_turns_are_summarized() {
    let summarizer = Summarizer::start(&full_summary()).await;
    let scene = Scene::start("budgeted-chat", &summarizer.settings("")).await;
    let (_, sent) = scene.send("c", &chat(8)).await;
    let (_, material) = &summarizer.asked()[0];
    for turn in 1..=8 {
        let is_read = |text: String| material.contains(text.trim_end());
        assert_eq!((is_read(question(turn)), is_read(answer(turn))), (turn <= 3, turn <= 3), "turn {turn}");
        // Summarized messages are no longer sent.
        assert_eq!(sent.contents().contains(&question(turn).as_str()), turn > 3, "turn {turn}");
    }
}

#[tokio::test]
async fn the_model_the_operator_and_the_command_see_a_text_and_four_lists() {
    let summarizer = Summarizer::start(&full_summary()).await;
    let scene = Scene::start("budgeted-chat", &summarizer.settings("")).await;
    let (_, sent) = scene.send("c", &chat(8)).await;
    // For the model: a system message of headings and bullets.
    let message = sent.summary().expect("a summary");
    let text = message["content"].as_str().unwrap();
    assert_eq!(message["role"], "system");
    for (heading, entry) in [
        ("Summary", "Three piers were ordered."),
        ("Decisions", "Oak is used."),
        ("Key facts", "Pier 1 needs 100 planks."),
        ("Open questions", "Who delivers the planks?"),
        ("Action items", "Order the planks."),
    ] {
        assert!(text.contains(&format!("## {heading}\n- {entry}\n")), "{heading} in {text}");
    }
    // For the operator: the fields by name.
    let page = conversation(&scene.tidegate, "c", 1).await;
    let one = &page["summaries"][0];
    assert_eq!(
        (&one["summary"], &one["covered"], &one["author"]),
        (&full_summary(), &json!(6), &json!("gpt-4o-mini"))
    );
    // And on the command line.
    let elsewhere = TempDir::new().unwrap();
    let admin = scene.tidegate.admin.to_string();
    let mut show = command(elsewhere.path());
    show.args(["conversations", "show", "c", "--admin", &admin]);
    let shown = run(&mut show).await.out;
    for entry in
        ["Three piers were ordered.", "Oak is used.", "Who delivers the planks?", "Order the planks."]
    {
        assert!(shown.contains(entry), "{entry} in {shown}");
    }
}

/// Only the newest summary is sent, and the summarizer gets the previous one.
#[tokio::test]
async fn a_new_summary_replaces_the_previous_one() {
    let summarizer = Summarizer::start(&full_summary()).await;
    let scene = Scene::start("budgeted-chat", &summarizer.settings("")).await;
    scene.send("c", &chat(8)).await;
    summarizer.writes(&json!({ "summary_text": "All piers were ordered.", "decisions": ["Pine is used."] }));
    let (_, sent) = scene.send("c", &chat(16)).await;
    let records = sent.contents().iter().filter(|text| text.starts_with("<conversation_record>")).count();
    assert_eq!(records, 1);
    assert!(sent.has("Pine is used.") && !sent.has("Oak is used."));
    let asked = summarizer.asked();
    assert!(asked[1].1.contains("Oak is used."), "{}", asked[1].1);
    assert!(asked[1].1.contains(question(4).trim_end()) && !asked[1].1.contains(question(3).trim_end()));
    let page = conversation(&scene.tidegate, "c", 2).await;
    assert_eq!(page["summaries"].as_array().unwrap().len(), 2, "not both can be read back");
}

/// Without an LLM the built-in summarizer fills the same fields.
#[tokio::test]
async fn the_built_in_summarizer_is_deterministic() {
    let mut messages = chat(8);
    messages[1] = message("user", &format!("Plan the harbour. We decided to use oak. {}", question(1)));
    messages[3] = message("user", &format!("We must never exceed 4200 euros. {}", question(2)));
    let mut bodies = Vec::new();
    for _ in 0..2 {
        let scene = Scene::start("budgeted-chat", "").await;
        let (_, sent) = scene.send("c", &messages).await;
        let text = sent.summary().unwrap()["content"].as_str().unwrap().to_owned();
        assert!(text.contains("oak") && text.contains("4200 euros"), "{text}");
        bodies.push(scene.upstream.requests()[0].body.clone());
    }
    assert!(bodies[0] == bodies[1], "two processes differ");
}

/// Four turns of the user stay, and the one that is being answered with all its tool calls.
#[tokio::test]
async fn the_unresolved_turn_is_never_summarized() {
    let scene = Scene::start("budgeted-chat", "").await;
    let mut messages = chat(8);
    for call in 1..=8 {
        let function = json!({ "name": "look", "arguments": json!({ "pier": call }).to_string() });
        let calls = json!([{ "id": format!("call_{call}"), "type": "function", "function": function }]);
        messages.push(json!({ "role": "assistant", "content": null, "tool_calls": calls }));
        let result = format!("pier {call} {}", "is fine ".repeat(30));
        messages.push(json!({ "role": "tool", "tool_call_id": format!("call_{call}"), "content": result }));
    }
    let (_, sent) = scene.send("c", &messages).await;
    assert!(sent.summary().is_some());
    let kept = messages.iter().position(|one| one["content"] == question(4)).unwrap();
    assert_eq!(sent.messages()[2..], messages[kept..]);
}

/// A summary is as long as what it keeps, however short the messages were. If it were as long as they are, they stay.
#[tokio::test]
async fn short_turns_lose_nothing_that_was_written_down() {
    let facts = ["Her name is Ottoline.", "The ferry leaves on 14 August.", "The plan is in harbour.ods."];
    let summarizer = Summarizer::start(&json!({ "key_facts": facts })).await;
    for (settings, facts) in
        [(summarizer.settings(""), facts), (String::new(), ["Ottoline", "14 August", "harbour.ods"])]
    {
        let scene = Scene::start("budgeted-chat", &settings).await;
        let (reply, sent) = scene.send("c", &short_turns()).await;
        assert_eq!(reply.header("x-tidegate-degraded"), None);
        assert!(facts.iter().all(|fact| sent.has(fact)), "{:?}", sent.contents());
        let is_told = |summary: &Value| summary["content"].as_str().unwrap().contains("\n- ");
        assert!(sent.summary().is_none_or(is_told), "{:?}", sent.contents());
    }
}

/// Eight questions of a few words, of which three hold a fact.
fn short_turns() -> Vec<Value> {
    let said = ["I am Ottoline.", "We take the ferry on 14 August.", "The plan is in harbour.ods."];
    let mut messages = Vec::new();
    for turn in 0..8 {
        let text = said
            .get(turn)
            .map_or_else(|| format!("And the pier {turn}? I wonder about it."), ToString::to_string);
        messages.push(message("user", &text));
        messages.push(message(
            "assistant",
            "It is noted, and I will remember it from now on, of course. Anything else?",
        ));
    }
    messages.pop();
    messages
}
