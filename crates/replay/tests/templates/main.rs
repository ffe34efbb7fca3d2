//! Strict chat templates accept every request that they accept directly, under every strategy: over generated conversations, at a budget
//! that they outgrow. In chats, the profiles of documents are held to templates that take
//! system messages between others.

#![allow(clippy::unwrap_used, reason = "a panic in a test is its failure message")]

mod conversations;

use bytes::Bytes;
use conversations::{Random, agent, chat, text_agent};
use serde_json::{Value, json};
use tidegate_config::{Flags, Source, load};
use tidegate_replay::{Policy, Recorded, Setup, Shown, Stage};

/// User and assistant alternate, from a user message on, as in Gemma's template. There are no tools.
fn alternates(messages: &[Value]) -> bool {
    let talk = messages.iter().skip_while(|message| message["role"] == "system");
    talk.enumerate().all(|(index, message)| message["role"] == ["user", "assistant"][index % 2])
}

/// Mistral's rules: a user message first, none directly after tool results or another one, no answer after an answer, and results only
/// after their calls, each of them once.
fn is_ordered(messages: &[Value]) -> bool {
    let (mut last, mut open) = ("system", Vec::new());
    messages.iter().all(|message| {
        let role = message["role"].as_str().unwrap();
        let is_legal = match role {
            "system" => last == "system",
            "user" => matches!(last, "system" | "assistant") && open.is_empty(),
            "assistant" => matches!(last, "user" | "tool") && open.is_empty(),
            _ => {
                let call = open.iter().position(|id| *id == message["tool_call_id"]);
                call.map(|call| open.remove(call)).is_some()
            }
        };
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        open.extend(calls.map(|call| call["id"].clone()));
        last = role;
        is_legal
    })
}

/// The same rules where system messages may stand between others, except between calls and their results. What follows one may be an answer.
fn takes_system_messages(messages: &[Value]) -> bool {
    let parts = messages.chunk_by(|one, next| (one["role"] == "system") == (next["role"] == "system"));
    parts.filter(|part| part[0]["role"] != "system").all(|part| {
        // The question is in the summary.
        let question = json!({ "role": "user" });
        let is_answer = part[0]["role"] == "assistant";
        is_ordered(&[if is_answer { std::slice::from_ref(&question) } else { &[] }, part].concat())
            && part.last().is_none_or(|last| last["tool_calls"].is_null())
    })
}

const POLICIES: [&str; 6] = ["raw", "masking", "masking:every_turn", "summarization", "hybrid", "window"];

/// Settings that fold, prune, truncate and cut at many places.
const SETTINGS: [&str; 9] = [
    "",
    "[context.fold]\nmode = \"inline\"\nwhen = { user_turns = 3 }\nkeep = { turns = 2 }\n",
    "[context.fold]\nmode = \"inline\"\nwhen = { turns = 4 }\nkeep = { messages = 3 }\n",
    "[context.fold]\nmode = \"inline\"\nkeep = { tokens = 700 }\npin_task = true\n",
    "[context.fold]\nmode = \"inline\"\nwhen = { turns = 6 }\nkeep = { turns = 1 }\npin_task = true\n",
    "[context.fold]\nkeep = { turns = 12 }\n[context.prune]\nwhen = { budget_ratio = 0.6 }\nkeep = { turns = 2 }\n",
    "[context.fold]\nkeep = { messages = 20 }\n[context.prune]\nwhen = { budget_ratio = 0.8 }\nkeep = { messages = 3 }\n",
    "[context.window]\nhead_min = 1\ntail_min = 1\nhead_max = 4\ntail_max = 7\n",
    "[context.window]\nhead_ratio = 0.4\ntail_ratio = 0.5\nhead_max = 9\n[context.mask]\nkeep = { turns = 2 }\n",
];

/// The profiles that put a system message of their own where their document says. The marker of `story` is a user message, which `check` notes.
const DOCUMENTS: [&str; 3] =
    ["profile = \"assistant\"\n", "profile = \"budgeted-chat\"\n", "profile = \"rolling-memory\"\n"];

/// Sends conversations under every policy and setting, and checks every edited request. Returns how many were edited, by policy.
fn check(
    kind: &str,
    accepts: fn(&[Value]) -> bool,
    conversation: fn(&mut Random) -> Vec<Value>,
) -> Vec<usize> {
    check_under(&SETTINGS, &POLICIES, kind, accepts, conversation)
}

fn check_under(
    settings: &[&str],
    names: &[&str],
    kind: &str,
    accepts: fn(&[Value]) -> bool,
    conversation: fn(&mut Random) -> Vec<Value>,
) -> Vec<usize> {
    let mut edited = vec![0; names.len()];
    let mut rejected = Vec::new();
    for (number, text) in settings.iter().enumerate() {
        let pattern = "user_pattern = \"^Observation:\"\n";
        let (profile, text) = if text.starts_with("profile") { (*text, "") } else { ("", *text) };
        let text = format!(
            "[context]\n{profile}[context.budget]\nmax_input = 3500\n[context.observations]\n{pattern}{text}"
        );
        let settings = load(Source::new("proxy.toml", &*text), &Flags::default(), &|_| None).unwrap();
        let policies: Vec<Policy> = names.iter().map(|name| name.parse().unwrap()).collect();
        let regimes = vec!["0.1".parse().unwrap()];
        let setup = Setup { settings, main: policies.len(), policies, regimes, gap: 20_000 };
        let mut stage = Stage::new(&setup);
        for seed in 1..=5 {
            let seed = seed + 100 * number as u64;
            let mut random = Random::new(seed);
            let bodies = requests(&conversation(&mut random));
            let mut shown = |shown: Shown<'_>| {
                let Some(forwarded) = shown.forwarded.filter(|forwarded| forwarded != shown.sent) else {
                    return;
                };
                let messages = messages(&forwarded);
                let policy = setup.policies.iter().position(|policy| policy == shown.policy).unwrap();
                edited[policy] += 1;
                if !accepts(&messages) {
                    let roles = messages.iter().map(|message| &message["role"].as_str().unwrap()[..1]);
                    let roles: String = roles.collect();
                    rejected.push(format!("{number}: {} {seed}.{}: {roles}", shown.policy, shown.request));
                }
            };
            assert!(bodies.iter().all(|body| accepts(&messages(body))), "{kind} {seed}");
            let mut recorded = Recorded::from_bodies(format!("{kind}-{seed}"), bodies);
            // Every other conversation has pinned notes.
            recorded.memory = seed.is_multiple_of(2).then(|| "The ship is Ada.".into());
            stage.watch(&recorded, Some(&mut shown));
        }
    }
    assert!(
        rejected.is_empty(),
        "{} of {edited:?} {kind} requests, such as\n{}",
        rejected.len(),
        rejected[..rejected.len().min(20)].join("\n")
    );
    edited
}

fn messages(body: &[u8]) -> Vec<Value> {
    let body: Value = serde_json::from_slice(body).unwrap();
    body["messages"].as_array().unwrap().clone()
}

/// The requests of a conversation: one before each assistant message.
fn requests(messages: &[Value]) -> Vec<Bytes> {
    let ends = messages.iter().enumerate().filter(|(_, message)| message["role"] == "assistant");
    let body = |end| json!({ "model": "gpt-4.1", "messages": messages[..end] }).to_string().into();
    ends.map(|(end, _)| body(end)).collect()
}

fn assert_many(edited: &[usize], at_least: [usize; POLICIES.len()]) {
    let enough = edited.iter().zip(at_least).all(|(edited, wanted)| *edited >= wanted);
    assert!(enough, "only {edited:?} requests were edited");
}

#[test]
fn alternation_templates_accept_chats() {
    assert_many(&check("chat", alternates, chat), [0, 200, 200, 1000, 1000, 1000]);
}

#[test]
fn alternation_templates_accept_agents_that_speak_in_text() {
    assert_many(&check("text agent", alternates, text_agent), [0, 400, 400, 1000, 1000, 1000]);
}

#[test]
fn mistrals_rules_hold_for_agents_with_tools() {
    assert_many(&check("agent", is_ordered, agent), [0, 400, 400, 1000, 1000, 1000]);
}

#[test]
fn the_profiles_of_documents_fit_templates_that_take_system_messages() {
    for document in DOCUMENTS {
        let edited =
            check_under(&[document], &["raw", "route:default"], document, takes_system_messages, chat);
        assert!(edited[1] > 20, "{document}: only {edited:?} requests were edited");
    }
}
