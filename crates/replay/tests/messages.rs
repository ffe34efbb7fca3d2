//! Conversations of Anthropic's messages under every strategy: what is forwarded follows the API's rules, is the client's own but for
//! the planned edits, is the same each time, and costs no more than it would unedited.

#![allow(clippy::unwrap_used, reason = "a panic in a test is its failure message")]

use bytes::Bytes;
use serde_json::{Value, json};
use tidegate_config::{Flags, Source, load};
use tidegate_replay::{Policy, Recorded, Replayed, Setup, Shown, Stage};
use tidegate_testkit::Trajectory;
use tidegate_testkit::messages_api::{assert_valid, breakpoints};

const POLICIES: [&str; 6] = ["raw", "masking", "masking:every_turn", "summarization", "hybrid", "window"];

const PLACEHOLDER: &str = "[OMITTED_OBSERVATION";

/// An agent's conversation: thinking, calls (two at once in every third step), results, and now and then a question beside them.
fn conversation(run: &Trajectory, seed: u64) -> Vec<Value> {
    let mut messages: Vec<Value> = Vec::new();
    let mut step = 0;
    for message in run.messages(seed) {
        let text = message["content"].clone();
        match message["role"].as_str().unwrap() {
            "system" => {}
            "user" if messages.last().is_some_and(|last| last["role"] == "user") => {
                let last = messages.last_mut().unwrap()["content"].as_array_mut().unwrap();
                last.push(json!({ "type": "text", "text": text }));
            }
            "user" => messages.push(json!({ "role": "user", "content": text })),
            "assistant" if message["tool_calls"].is_null() => {
                messages.push(json!({ "role": "assistant", "content": [{ "type": "text", "text": text }] }));
            }
            "assistant" => {
                step += 1;
                let id = &message["tool_calls"][0]["id"];
                let mut blocks = vec![json!({ "type": "text", "text": text })];
                if step % 2 == 0 {
                    blocks.insert(
                        0,
                        json!({ "type": "thinking", "thinking": "Hm.", "signature": format!("s{step}") }),
                    );
                }
                blocks.push(
                    json!({ "type": "tool_use", "id": id, "name": "shell", "input": { "step": step } }),
                );
                if step % 3 == 0 {
                    let second = format!("{}-b", id.as_str().unwrap());
                    blocks.push(json!({ "type": "tool_use", "id": second, "name": "read", "input": {} }));
                }
                messages.push(json!({ "role": "assistant", "content": blocks }));
            }
            _ => {
                let id = message["tool_call_id"].as_str().unwrap();
                let content = if step % 2 == 0 { text } else { json!([{ "type": "text", "text": text }]) };
                let mut blocks =
                    vec![json!({ "type": "tool_result", "tool_use_id": id, "content": content })];
                if step % 3 == 0 {
                    let second = json!({ "type": "tool_result", "tool_use_id": format!("{id}-b"), "is_error": true, "content": "no such file" });
                    blocks.push(second);
                }
                messages.push(json!({ "role": "user", "content": blocks }));
            }
        }
    }
    messages
}

/// The requests of a client that marks its instructions and its last two user messages for the cache.
fn requests(messages: &[Value]) -> Vec<Bytes> {
    let ends = (0..messages.len()).filter(|&end| messages[end]["role"] == "assistant");
    let request = |end: usize| {
        let mut sent = messages[..end].to_vec();
        for message in sent.iter_mut().rev().filter(|message| message["role"] == "user").take(2) {
            if let Value::String(text) = &message["content"] {
                message["content"] = json!([{ "type": "text", "text": text }]);
            }
            let block = message["content"].as_array_mut().unwrap().last_mut().unwrap();
            block["cache_control"] = json!({ "type": "ephemeral" });
        }
        let system =
            json!([{ "type": "text", "text": "Be exact.", "cache_control": { "type": "ephemeral" } }]);
        let model = "claude-sonnet-4-5";
        Bytes::from(
            json!({ "model": model, "max_tokens": 500, "system": system, "messages": sent }).to_string(),
        )
    };
    ends.map(request).collect()
}

/// A message without what an edit may change: markers, the contents of results, and the texts of a user message, which may have more.
fn core(message: &Value) -> Vec<Value> {
    let mut core = vec![message["role"].clone()];
    for block in message["content"].as_array().into_iter().flatten() {
        let mut block = block.clone();
        let members = block.as_object_mut().unwrap();
        members.remove("cache_control");
        match members["type"].as_str().unwrap() {
            "tool_result" => drop(members.remove("content")),
            "text" if message["role"] == "user" => continue,
            _ => {}
        }
        core.push(block);
    }
    core
}

/// Whether the words of a user message are still there.
fn keeps_words(sent: &Value, forwarded: &Value) -> bool {
    let words = |message: &Value| -> Vec<String> {
        let blocks = message["content"].as_array().into_iter().flatten();
        let blocks = blocks.filter_map(|block| block["text"].as_str());
        blocks.chain(message["content"].as_str()).map(str::to_owned).collect()
    };
    let forwarded = words(forwarded);
    words(sent).iter().all(|text| forwarded.iter().any(|kept| kept.contains(text)))
}

/// Checks that the forwarded messages are the client's, in the client's order.
fn check(sent: &Value, forwarded: &Value, policy: &str) {
    assert_valid(forwarded);
    assert!(breakpoints(forwarded) <= breakpoints(sent), "{policy}: a marker was added");
    for member in ["model", "max_tokens", "system"] {
        assert_eq!(sent[member], forwarded[member]);
    }
    let (sent, forwarded) = (sent["messages"].as_array().unwrap(), forwarded["messages"].as_array().unwrap());
    let mut rest = sent.iter();
    for message in forwarded {
        let core = core(message);
        if core.len() == 1 && message["role"] == "user" && !sent.iter().any(|sent| keeps_words(sent, message))
        {
            continue;
        }
        let found = rest.any(|sent| self::core(sent) == core && keeps_words(sent, message));
        assert!(found, "{policy}: not the client's: {message}");
    }
    let (end, forwarded) = (sent.last().unwrap(), forwarded.last().unwrap());
    assert_eq!(core(end), core(forwarded), "{policy}: the last message was changed");
}

fn replay(max_input: &str, mut shown: impl FnMut(Shown<'_>)) -> Vec<Replayed> {
    let text = format!("[context.fold]\nmode = \"inline\"\n{max_input}");
    let settings = load(Source::new("proxy.toml", &*text), &Flags::default(), &|_| None).unwrap();
    let policies: Vec<Policy> = POLICIES.iter().map(|name| name.parse().unwrap()).collect();
    let regimes = vec!["0.1".parse().unwrap()];
    let setup = Setup { settings, main: 1, policies, regimes, gap: 20_000 };
    let mut stage = Stage::new(&setup);
    let replayed = (1..=12).map(|seed| {
        let (output, question_every) = (150.0, 2 + seed as usize % 4);
        let run = Trajectory { turns: 40, output, system: 60, question_every, ..Trajectory::default() };
        let bodies = requests(&conversation(&run, seed));
        bodies.iter().for_each(|body| assert_valid(&serde_json::from_slice(body).unwrap()));
        stage.watch(&Recorded::from_bodies(format!("run-{seed}"), bodies), Some(&mut shown))
    });
    replayed.collect()
}

/// In a window that is too small, too.
#[test]
fn forwarded_requests_are_valid_and_the_clients_own() {
    let (mut masked, mut shortened) = (0, 0);
    replay("[context.budget]\nmax_input = 4000\n", |shown| {
        let Some(bytes) = shown.forwarded else { return };
        if bytes == shown.sent {
            return;
        }
        let forwarded = std::str::from_utf8(&bytes).unwrap();
        masked += usize::from(forwarded.contains(PLACEHOLDER));
        let parse = |bytes: &[u8]| -> Value { serde_json::from_slice(bytes).unwrap() };
        let (sent, forwarded) = (parse(shown.sent), parse(&bytes));
        let count = |request: &Value| request["messages"].as_array().unwrap().len();
        shortened += usize::from(count(&forwarded) < count(&sent));
        check(&sent, &forwarded, &shown.policy.to_string());
    });
    assert!(masked > 100 && shortened > 200, "{masked} masked, {shortened} shortened");
}

#[test]
fn the_same_conversation_gives_the_same_bytes() {
    let forwarded = || {
        let mut all = Vec::new();
        replay("[context.budget]\nmax_input = 4000\n", |shown| {
            all.push(shown.forwarded.map(|bytes| bytes.to_vec()))
        });
        all
    };
    assert!(forwarded() == forwarded());
}

/// Where nothing forces an edit, strategies cost hardly more than forwarding everything, with a marker that moves at every turn. A
/// conversation may end right after an edit that would have paid later.
#[test]
fn no_strategy_costs_more_than_none() {
    let replayed = replay("", |_| {});
    for (at, name) in POLICIES.iter().enumerate().filter(|(_, name)| !name.contains("every_turn")) {
        let ratio = |run: &Replayed| run.figures[0][at].cost.units / run.figures[0][0].cost.units;
        let ratios: Vec<f64> = replayed.iter().map(ratio).collect();
        let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
        assert!(mean <= 1.03 && ratios.iter().all(|ratio| *ratio <= 1.2), "{name}: {ratios:?}");
    }
}
