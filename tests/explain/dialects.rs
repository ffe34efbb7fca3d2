//! Requests of Anthropic's messages and of OpenAI's responses, and what the provider keeps or manages itself.

use super::command::explain;
use serde_json::{Value, json};

/// Keeps the last turn, and masks all before it whenever there is something to mask.
const ONE_TURN: &str = "[context.mask]\nkeep = { turns = 1 }\npace = \"every_turn\"\n";

fn output() -> String {
    "one line of output\n".repeat(40)
}

/// An agent that has read three files, as Anthropic's API has it.
fn messages(more: &Value) -> Value {
    let mut all = vec![json!({"role": "user", "content": "Why does the build fail?"})];
    for number in 0..3 {
        let id = format!("toolu_{number}");
        all.push(json!({"role": "assistant", "content": [
            {"type": "thinking", "thinking": "Which file?", "signature": "sig"},
            {"type": "tool_use", "id": id, "name": "read_file", "input": {}},
        ]}));
        all.push(json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": output()}]}));
    }
    merged(
        json!({"model": "claude-sonnet-4-5", "max_tokens": 64, "system": "Be brief.", "messages": all}),
        more,
    )
}

/// The same in items.
fn responses(more: &Value) -> Value {
    let mut all = vec![json!({"role": "user", "content": "Why does the build fail?"})];
    for number in 0..3 {
        let id = format!("call_{number}");
        all.push(json!({"type": "reasoning", "id": format!("rs_{number}"), "summary": []}));
        all.push(json!({"type": "function_call", "call_id": id, "name": "read_file", "arguments": "{}"}));
        all.push(json!({"type": "function_call_output", "call_id": id, "output": output()}));
    }
    merged(json!({"model": "gpt-5", "instructions": "Be brief.", "input": all}), more)
}

fn merged(mut body: Value, more: &Value) -> Value {
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

fn explained(body: &Value) -> Value {
    let output = explain(ONE_TURN, &body.to_string(), &["--json"]);
    serde_json::from_str(&output.out).unwrap_or_else(|_| panic!("{}{}", output.out, output.err))
}

/// The reasons of the tool results, and those of all messages, without repetitions.
fn reasons(explained: &Value) -> (Vec<&str>, Vec<&str>) {
    let all = explained["messages"].as_array().unwrap();
    let results = all.iter().filter(|one| one["kind"] == "observation");
    let mut every: Vec<&str> = all.iter().map(|one| one["reason"].as_str().unwrap()).collect();
    every.dedup();
    (results.map(|one| one["reason"].as_str().unwrap()).collect(), every)
}

#[test]
fn results_of_every_dialect_are_explained() {
    for body in [messages(&json!({})), responses(&json!({}))] {
        let explained = explained(&body);
        let (results, _) = reasons(&explained);
        assert_eq!(results, ["outside_window", "outside_window", "unresolved_end"], "{explained}");
        assert_eq!(explained["verdict"]["ending"], "edited");
        let tools = explained["messages"].as_array().unwrap().iter().filter(|one| one["tool"] == "read_file");
        assert_eq!(tools.count(), 3, "{explained}");
    }
}

#[test]
fn what_the_provider_manages_is_said_to_be_its() {
    let clearing = json!({"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}});
    let compaction = json!({"context_management": [{"type": "compaction", "compact_threshold": 200_000}]});
    for body in [messages(&clearing), responses(&compaction)] {
        let explained = explained(&body);
        assert_eq!(reasons(&explained).1, ["native"], "{explained}");
        assert_eq!(explained["verdict"]["ending"], "as_sent");
        let why = explained["messages"][0]["why"].as_str().unwrap();
        assert_eq!(why, "the provider manages the context, as the request asks: context.native = \"defer\"");
        let note = explained["masking"]["note"].as_str().unwrap();
        assert!(note.contains("left to the provider"), "{note}");
    }
}

#[test]
fn a_history_of_the_providers_is_not_judged_by_a_window() {
    let explained = explained(&responses(&json!({"previous_response_id": "resp_1"})));
    assert_eq!(reasons(&explained).1, ["upstream_history"], "{explained}");
    assert_eq!(explained["verdict"]["ending"], "as_sent");
    let why = explained["messages"][0]["why"].as_str().unwrap();
    assert!(why.starts_with("the provider keeps the messages before these"), "{why}");
}
