//! With default settings, no request that the upstream would accept is refused.

#![allow(clippy::unwrap_used, reason = "a panic is the failure message of a test")]

use proptest::prelude::*;
use std::sync::Arc;
use tidegate_config::{Flags, Settings, Source, load};
use tidegate_context::{ConversationState, Ending, Turn, TurnInput, drive_offline, model_table};
use tidegate_engine::{AnswerRoom, ContextWindow, Tokens};
use tidegate_tokens::{Encoding, Model, count};
use tidegate_wire::{Dialect, Reader};

/// Names that are published, typical of a family, hosted by many, aliases, and unknown.
const NAMES: [&str; 16] = [
    "gpt-4",
    "gpt-4-turbo",
    "gpt-4o",
    "gpt-5",
    "gpt-5-next",
    "gpt-6-preview",
    "gpt-3.5-turbo",
    "claude-sonnet-4-5",
    "gemini-2.5-pro",
    "mistral-small",
    "deepseek-v4",
    "llama-4-maverick",
    "llama-3.3-70b",
    "ft:gpt-4o:acme::id",
    "my-deployment",
    "",
];

/// Hosts of providers, hosts that look like them, and others.
const HOSTS: [&str; 9] = [
    "api.openai.com",
    "EU.api.openai.com:443",
    "generativelanguage.googleapis.com",
    "api.mistral.ai",
    "api.openai.com.example.org",
    "my-api.openai.com",
    "acme.openai.azure.com",
    "127.0.0.1:8000",
    "[::1]:8000",
];

/// Whether a host is that of the provider who has published a model.
fn is_provider(host: &str, model: &str) -> bool {
    match host {
        "api.openai.com" | "EU.api.openai.com:443" => {
            model.starts_with("gpt-") || model.starts_with("ft:gpt-")
        }
        "generativelanguage.googleapis.com" => model.starts_with("gemini-"),
        "api.mistral.ai" => model.starts_with("mistral-"),
        _ => false,
    }
}

/// Adds definitions of tools to a request.
fn with_tools(body: String, count: usize, schema: &str) -> String {
    let mut body: serde_json::Value = serde_json::from_str(&body).unwrap();
    let tool = |number: usize| {
        let own = serde_json::json!({"name": format!("tool_{number}"), "description": "Reads the tide tables of a harbour. ".repeat(20),
            schema: {"type": "object", "properties": {"harbour": {"type": "string", "description": "Its name."}}}});
        match body.get("input").is_some() || schema == "input_schema" {
            true => own,
            false => serde_json::json!({"type": "function", "function": own}),
        }
    };
    if count > 0 {
        let tools: Vec<serde_json::Value> = (0..count).map(tool).collect();
        body["tools"] = tools.into();
    }
    body.to_string()
}

/// What the model sees: how many tokens of its own one of ours is, in percent. Other vocabularies than ours differ by up to four times.
fn real(counted: u64, model: &Model, percent: u64) -> u64 {
    match model.accuracy(1.0) {
        tidegate_engine::Accuracy::Exact => counted,
        tidegate_engine::Accuracy::Within(times) => counted * percent.max((100.0 / times) as u64 + 1) / 100,
    }
}

fn settings(file: &str) -> Settings {
    load(Source::new("proxy.toml", file), &Flags::default(), &|_| None).unwrap()
}

/// A chat of `turns` turns, with tool results, whose messages have `words` words.
fn body(name: &str, turns: usize, words: usize, max_tokens: Option<u64>) -> String {
    let text = "word ".repeat(words);
    let mut messages = vec![serde_json::json!({"role": "system", "content": text})];
    for turn in 0..turns {
        let id = format!("c{turn}");
        messages.push(serde_json::json!({"role": "user", "content": text}));
        messages.push(serde_json::json!({"role": "assistant", "content": text, "tool_calls":
            [{"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}}]}));
        messages.push(serde_json::json!({"role": "tool", "tool_call_id": id, "content": text}));
    }
    let mut body = serde_json::json!({"model": name, "messages": messages});
    if let Some(limit) = max_tokens {
        body["max_tokens"] = limit.into();
    }
    body.to_string()
}

/// The same as one of Anthropic's messages.
fn messages_body(name: &str, turns: usize, words: usize, max_tokens: Option<u64>) -> String {
    let text = "word ".repeat(words);
    let mut messages = vec![serde_json::json!({"role": "user", "content": text})];
    for turn in 0..turns {
        let id = format!("c{turn}");
        let call = serde_json::json!({"type": "tool_use", "id": id, "name": "f", "input": {}});
        messages.push(
            serde_json::json!({"role": "assistant", "content": [{"type": "text", "text": text}, call]}),
        );
        let result = serde_json::json!({"type": "tool_result", "tool_use_id": id, "content": text});
        messages
            .push(serde_json::json!({"role": "user", "content": [result, {"type": "text", "text": text}]}));
    }
    let max_tokens = max_tokens.unwrap_or(1);
    serde_json::json!({"model": name, "max_tokens": max_tokens, "system": text, "messages": messages})
        .to_string()
}

/// The same as a request for a response.
fn responses_body(name: &str, turns: usize, words: usize, max_tokens: Option<u64>) -> String {
    let text = "word ".repeat(words);
    let mut items = vec![serde_json::json!({"role": "user", "content": text})];
    for turn in 0..turns {
        let id = format!("c{turn}");
        items.push(serde_json::json!({"role": "assistant", "content": text}));
        items.push(
            serde_json::json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"}),
        );
        items.push(serde_json::json!({"type": "function_call_output", "call_id": id, "output": text}));
    }
    let mut body = serde_json::json!({"model": name, "instructions": text, "input": items});
    if let Some(max_tokens) = max_tokens {
        body["max_output_tokens"] = max_tokens.into();
    }
    body.to_string()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn what_the_upstream_accepts_is_not_refused(
        name in prop::sample::select(&NAMES[..]),
        (turns, words) in (0usize..12, 1usize..16_000),
        max_tokens in prop::option::of(1u64..40_000),
        // The window of the upstream, where it is its own choice.
        window in 1_000u64..2_000_000,
        learnt in prop::option::of(1_000u64..200_000),
        estimated in any::<bool>(),
        configured in prop::option::weighted(0.3, 2_000u64..200_000),
        percent in 25u64..400,
        host in prop::sample::select(&HOSTS[..]),
        // How many tools a request has, and how much of what we count for them the model sees, in percent.
        (tools, shown) in (0usize..40, 0u64..=100),
        dialect in prop::sample::select(&[Dialect::Chat, Dialect::Messages, Dialect::Responses][..]),
    ) {
        let mut file = String::new();
        if (estimated || configured.is_some()) && !name.is_empty() {
            file = format!("[models.\"{name}\"]\n");
            if estimated {
                file.push_str("encoding = \"estimate\"\n");
            }
            if let Some(window) = configured {
                file.push_str(&format!("window = {window}\n"));
            }
        }
        let settings = settings(&file);
        let model = model_table(&settings.models).lookup(name);
        let body = match dialect {
            Dialect::Chat => with_tools(body(name, turns, words, max_tokens), tools, "parameters"),
            Dialect::Messages => with_tools(messages_body(name, turns, words, max_tokens), tools, "input_schema"),
            Dialect::Responses => with_tools(responses_body(name, turns, words, max_tokens), tools, "parameters"),
        };
        let reader = Reader::default();
        let outline = reader.outline(dialect, body.as_bytes()).unwrap();
        let context = settings.routes[0].context.clone();
        let input = TurnInput {
            learnt_window: learnt.map(Tokens),
            at_provider: model.is_served_by(host),
            ..TurnInput::new(body.into(), outline, context, Arc::clone(&model))
        };
        let outcome = drive_offline(&mut Turn::new(input, ConversationState::default()), &reader).unwrap();
        // A provider has the windows that it has published, unless it says otherwise. Any other upstream has windows of its own choice.
        let window = match model.window {
            ContextWindow::Configured(window) => window.0,
            ContextWindow::Known(window) if is_provider(host, name) => learnt.unwrap_or(window.0),
            _ => window,
        };
        let rough = outcome.assessment.chat.rough.0;
        prop_assert_eq!(rough > 0, tools > 0);
        let needed = real(outcome.figures.after.0.saturating_sub(rough), &model, percent) + rough * shown / 100;
        let asked = match model.answer {
            // Messages always have a limit.
            AnswerRoom::Shared => max_tokens.unwrap_or(u64::from(dialect == Dialect::Messages)),
            AnswerRoom::Separate => 0,
        };
        if needed + asked <= window {
            prop_assert_eq!(outcome.ending, Ending::Forward, "{} of {} + {} in {}, {:?}", name, needed, asked, window, dialect);
        }
    }
}

/// The texts that an estimate gets most wrong: long runs that a vocabulary has one token for.
#[test]
fn the_error_bound_of_the_estimate_holds_for_runs_of_one_character() {
    for run in [" ", "-", "=", "\n", "a", "0", "\t", "é", "日", "🙂"] {
        let text = run.repeat(20_000);
        let estimated = count(Encoding::Estimate, &text).0;
        for encoding in [Encoding::O200k, Encoding::Cl100k] {
            let real = count(encoding, &text).0;
            assert!(estimated <= 40 * real, "{run:?}: {estimated} for {real} in {encoding}");
        }
    }
}

/// An error or a list can name anything; only what the request can have exceeded is believed.
#[test]
fn a_request_exceeds_what_it_can_have_exceeded() {
    let settings = settings("");
    let input = |name: &str, max_tokens| {
        let body = body(name, 0, 1, max_tokens);
        let outline = Reader::default().outline(Dialect::Chat, body.as_bytes()).unwrap();
        let model = model_table(&settings.models).lookup(name);
        TurnInput::new(body.into(), outline, settings.routes[0].context.clone(), model)
    };
    let none = Tokens::ZERO;
    let exact = input("gpt-4o", None);
    assert!(exact.can_exceed(Tokens(130_000), none, Tokens(128_000)));
    assert!(exact.can_exceed(Tokens(120_000), none, Tokens(128_000)), "providers add tokens of their own");
    assert!(!exact.can_exceed(Tokens(60_000), none, Tokens(128_000)));
    assert!(exact.can_exceed(Tokens(60_000), Tokens(40_000), Tokens(128_000)), "images are estimated");
    assert!(input("gpt-4o", Some(80_000)).can_exceed(Tokens(60_000), none, Tokens(128_000)));
    let estimated = input("somebodys-own", None);
    assert!(estimated.can_exceed(Tokens(40_000), none, Tokens(128_000)));
    assert!(!estimated.can_exceed(Tokens(20_000), none, Tokens(128_000)));
}
