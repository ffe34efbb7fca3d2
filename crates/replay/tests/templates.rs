//! Strict chat templates accept every masked or summarized request that they accept directly, with `fold.placement = "merge"`.

#![allow(clippy::unwrap_used, reason = "a panic in a test is its failure message")]

use bytes::Bytes;
use serde_json::{Value, json};
use tidegate_config::{Flags, Source, load};
use tidegate_replay::{Policy, Recorded, Setup, Shown, Stage};
use tidegate_testkit::Trajectory;

/// User and assistant alternate, from a user message on, as in Gemma's template. There are no tools.
fn alternates(messages: &[Value]) -> bool {
    let talk = messages.iter().skip_while(|message| message["role"] == "system");
    talk.enumerate().all(|(index, message)| message["role"] == ["user", "assistant"][index % 2])
}

/// Mistral's rules: a user message first, none directly after tool results or another one, and results only after their calls.
fn is_ordered(messages: &[Value]) -> bool {
    let mut last = "system";
    messages.iter().all(|message| {
        let role = message["role"].as_str().unwrap();
        let is_legal = match role {
            "system" => last == "system",
            "user" => matches!(last, "system" | "assistant"),
            "assistant" => matches!(last, "user" | "tool"),
            _ => matches!(last, "assistant" | "tool"),
        };
        last = role;
        is_legal
    })
}

/// The requests of a conversation: one before each assistant message.
fn requests(model: &str, messages: &[Value]) -> Vec<Bytes> {
    let ends = messages.iter().enumerate().filter(|(_, message)| message["role"] == "assistant");
    let body = |end| json!({ "model": model, "messages": messages[..end] }).to_string().into();
    ends.map(|(end, _)| body(end)).collect()
}

/// A chat without tools.
fn chat(run: &Trajectory, seed: u64) -> Vec<Value> {
    let is_talk = |message: &Value| message["role"] != "system";
    let talk: Vec<Value> = run.messages(seed).into_iter().filter(is_talk).collect();
    let roles = ["user", "assistant"].into_iter().cycle();
    let turn = |(message, role): (Value, &str)| json!({ "role": role, "content": message["content"] });
    talk.into_iter().zip(roles).map(turn).collect()
}

/// A tool loop, and every few turns an answer and another question.
fn agent(run: &Trajectory, seed: u64) -> Vec<Value> {
    let mut messages = Vec::new();
    for message in run.messages(seed) {
        if message["role"] == "user" && messages.len() > 1 {
            messages.push(json!({ "role": "assistant", "content": "That is settled." }));
        }
        messages.push(message);
    }
    messages
}

/// Checks every forwarded request. Returns how many were edited.
fn check(
    kind: &str,
    accepts: fn(&[Value]) -> bool,
    conversation: fn(&Trajectory, u64) -> Vec<Value>,
) -> usize {
    let text = "[context.fold]\nplacement = \"merge\"\n[context.budget]\nmax_input = 3500\n";
    let settings = load(Source::new("proxy.toml", text), &Flags::default(), &|_| None).unwrap();
    let names = ["raw", "masking", "masking:every_turn", "summarization", "hybrid"];
    let policies: Vec<Policy> = names.iter().map(|name| name.parse().unwrap()).collect();
    let setup =
        Setup { settings, main: names.len(), policies, regimes: vec!["0.1".parse().unwrap()], gap: 20_000 };
    let mut stage = Stage::new(&setup);
    let (mut edited, mut rejected) = (0, Vec::new());
    for seed in 1..=12 {
        let (output, question_every) = (120.0, 2 + seed as usize % 4);
        let run = Trajectory { turns: 40, output, system: 60, question_every, ..Trajectory::default() };
        let bodies = requests("gpt-4.1", &conversation(&run, seed));
        let mut shown = |shown: Shown<'_>| {
            let Some(forwarded) = shown.forwarded.filter(|forwarded| forwarded != shown.sent) else { return };
            let body: Value = serde_json::from_slice(&forwarded).unwrap();
            edited += 1;
            if !accepts(body["messages"].as_array().unwrap()) {
                let roles = body["messages"].as_array().unwrap().iter();
                let roles: String = roles.map(|message| &message["role"].as_str().unwrap()[..1]).collect();
                rejected.push(format!("{} {seed}.{}: {roles}", shown.policy, shown.request));
            }
        };
        for body in &bodies {
            let body: Value = serde_json::from_slice(body).unwrap();
            assert!(accepts(body["messages"].as_array().unwrap()), "{kind} {seed}: {body}");
        }
        stage.watch(&Recorded::from_bodies(format!("{kind}-{seed}"), bodies), Some(&mut shown));
    }
    assert!(
        rejected.is_empty(),
        "{} of {edited} {kind} requests, such as\n{}",
        rejected.len(),
        rejected[..rejected.len().min(12)].join("\n")
    );
    edited
}

#[test]
fn alternation_templates_accept_what_they_accept_directly() {
    assert!(check("chat", alternates, chat) > 100);
}

#[test]
fn mistrals_rules_hold_for_agents() {
    assert!(check("agent", is_ordered, agent) > 100);
}
