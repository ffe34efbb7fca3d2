//! Measures each step of a request whose messages are cached, compared with a `serde_json::Value` round trip.
//!
//! The body has 200 messages in 500 KB, like those of a coding agent: tool calls and their outputs, with escaped line breaks and
//! quotes. 100 messages are masked. `messages_…` and `responses_…` measure the same run in the other APIs.

#![allow(clippy::unwrap_used, reason = "the body is generated here and valid")]

use divan::{Bencher, black_box};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;
use tidegate_engine::Digest;
use tidegate_wire::{
    Dialect, Edit, Fingerprint, Fingerprinter, MessageFacts, Outline, Piece, Placeholder, Span, chain,
    splice, split, split_and_fingerprint,
};

const MESSAGES: usize = 200;
const BODY_BYTES: usize = 500_000;

fn main() {
    divan::main();
}

#[divan::bench]
fn serde_json_value_round_trip(bencher: Bencher<'_, '_>) {
    let body = body();
    bencher.bench_local(|| {
        let mut value: serde_json::Value = serde_json::from_slice(black_box(&body)).unwrap_or_default();
        if let Some(messages) = value["messages"].as_array_mut() {
            for message in messages.iter_mut().skip(1).step_by(2).take(100) {
                message["content"] = "[OMITTED_OBSERVATION: too old; available in memory store]".into();
            }
        }
        value.to_string().into_bytes()
    });
}

#[divan::bench]
fn cached_path(bencher: Bencher<'_, '_>) {
    let cached = Cached::new();
    bencher.bench_local(|| {
        let outline = black_box(&cached).outline();
        let facts = cached.look_up(&outline);
        (black_box(digests(&facts)), cached.mask(&outline, &facts))
    });
}

#[divan::bench]
fn messages_cached_path(bencher: Bencher<'_, '_>) {
    cached_path_as(bencher, Dialect::Messages);
}

#[divan::bench]
fn responses_cached_path(bencher: Bencher<'_, '_>) {
    cached_path_as(bencher, Dialect::Responses);
}

fn cached_path_as(bencher: Bencher<'_, '_>, dialect: Dialect) {
    let cached = Cached::of(dialect);
    bencher.bench_local(|| {
        let outline = black_box(&cached).outline();
        let facts = cached.look_up(&outline);
        (black_box(digests(&facts)), cached.mask(&outline, &facts))
    });
}

#[divan::bench]
fn messages_step_split(bencher: Bencher<'_, '_>) {
    let body = body_of(Dialect::Messages);
    bencher.bench_local(|| split(Dialect::Messages, black_box(&body)));
}

/// Here each item is looked at for its side, too.
#[divan::bench]
fn responses_step_split(bencher: Bencher<'_, '_>) {
    let body = body_of(Dialect::Responses);
    bencher.bench_local(|| split(Dialect::Responses, black_box(&body)));
}

#[divan::bench]
fn step_utf8(bencher: Bencher<'_, '_>) {
    let body = body();
    bencher.bench_local(|| simdutf8::basic::from_utf8(black_box(&body)).is_ok());
}

#[divan::bench]
fn step_split(bencher: Bencher<'_, '_>) {
    let body = body();
    bencher.bench_local(|| split(Dialect::Chat, black_box(&body)));
}

#[divan::bench]
fn step_split_and_fingerprint(bencher: Bencher<'_, '_>) {
    let cached = Cached::new();
    bencher.bench_local(|| {
        split_and_fingerprint(Dialect::Chat, black_box(&cached.body), &cached.fingerprinter, |_| true)
    });
}

#[divan::bench]
fn step_look_up(bencher: Bencher<'_, '_>) {
    let cached = Cached::new();
    let outline = cached.outline();
    bencher.bench_local(|| cached.look_up(black_box(&outline)));
}

#[divan::bench]
fn step_chain(bencher: Bencher<'_, '_>) {
    let cached = Cached::new();
    let facts = cached.look_up(&cached.outline());
    bencher.bench_local(|| digests(black_box(&facts)));
}

#[divan::bench]
fn step_splice_100_masks(bencher: Bencher<'_, '_>) {
    let cached = Cached::new();
    let outline = cached.outline();
    let facts = cached.look_up(&outline);
    bencher.bench_local(|| cached.mask(black_box(&outline), &facts));
}

/// The cost of messages that are not cached, without counting their tokens.
#[divan::bench]
fn uncached_read_and_hash(bencher: Bencher<'_, '_>) {
    let body = body();
    let outline = split(Dialect::Chat, &body).unwrap();
    bencher.bench_local(|| {
        let read = outline.messages.iter().map(|span| Dialect::Chat.read_facts(span.of(&body)).unwrap());
        read.collect::<Vec<_>>()
    });
}

#[divan::bench]
fn uncached_read_only(bencher: Bencher<'_, '_>) {
    let body = body();
    let outline = split(Dialect::Chat, &body).unwrap();
    let is_read = |span: &&Span| Dialect::Chat.read_message(span.of(&body)).is_ok();
    bencher.bench_local(|| outline.messages.iter().filter(is_read).count());
}

struct Cached {
    dialect: Dialect,
    body: Vec<u8>,
    fingerprinter: Fingerprinter,
    cache: HashMap<Fingerprint, Arc<MessageFacts>>,
    placeholder: Placeholder,
}

impl Cached {
    fn new() -> Cached {
        Cached::of(Dialect::Chat)
    }

    fn of(dialect: Dialect) -> Cached {
        let body = body_of(dialect);
        let fingerprinter = Fingerprinter::new(42);
        let mut cache = HashMap::new();
        for span in split(dialect, &body).unwrap().messages {
            let raw = span.of(&body);
            let facts = dialect.read_facts(raw).unwrap();
            cache.insert(fingerprinter.of(raw), Arc::new(facts));
        }
        let placeholder = Placeholder::new("[OMITTED_OBSERVATION: too old; available in memory store]");
        Cached { dialect, body, fingerprinter, cache, placeholder }
    }

    fn outline(&self) -> Outline {
        split_and_fingerprint(self.dialect, &self.body, &self.fingerprinter, |_| true).unwrap()
    }

    fn look_up(&self, outline: &Outline) -> Vec<Arc<MessageFacts>> {
        outline.fingerprints.iter().filter_map(|fingerprint| self.cache.get(fingerprint).cloned()).collect()
    }

    fn mask(&self, outline: &Outline, facts: &[Arc<MessageFacts>]) -> Vec<Piece> {
        let edits: Vec<Edit> = (0..100)
            .map(|index| Edit::Mask { message: 2 * index + 1, placeholder: self.placeholder.clone() })
            .collect();
        splice(&self.body, outline, facts, &edits).unwrap()
    }
}

fn digests(facts: &[Arc<MessageFacts>]) -> Vec<Digest> {
    let mut digest = Digest::default();
    let step = |facts: &Arc<MessageFacts>| {
        digest = chain(digest, &facts.canonical);
        digest
    };
    facts.iter().map(step).collect()
}

fn body() -> Vec<u8> {
    body_of(Dialect::Chat)
}

fn body_of(dialect: Dialect) -> Vec<u8> {
    let mut body = String::from(r#"{"model":"gpt-4.1","stream":true,"tools":["#);
    for index in 0..12 {
        let comma = if index == 0 { "" } else { "," };
        let _ = write!(
            body,
            r#"{comma}{{"type":"function","function":{{"name":"tool_{index}","description":"Runs it.","parameters":{{"type":"object","properties":{{"command":{{"type":"string"}}}}}}}}}}"#
        );
    }
    let _ = write!(body, r#"],"{}":["#, dialect.messages_key());
    let text_bytes = 2 * BODY_BYTES / MESSAGES - 400;
    for index in 0..MESSAGES / 2 {
        body.push_str(if index == 0 { "" } else { ", " });
        let _ = match dialect {
            Dialect::Chat => write!(
                body,
                r#"{{"role": "assistant", "content": "I look at it, step {index}.", "tool_calls": [{{"id": "call_{index}", "type": "function", "function": {{"name": "run", "arguments": "{{\"command\": \"cat src/module_{index}.py\"}}"}}}}]}}, {{"role": "tool", "tool_call_id": "call_{index}", "content": ""#
            ),
            Dialect::Messages => write!(
                body,
                r#"{{"role": "assistant", "content": [{{"type": "text", "text": "I look at it, step {index}."}}, {{"type": "tool_use", "id": "call_{index}", "name": "run", "input": {{"command": "cat src/module_{index}.py"}}}}]}}, {{"role": "user", "content": [{{"type": "tool_result", "tool_use_id": "call_{index}", "content": ""#
            ),
            Dialect::Responses => write!(
                body,
                r#"{{"type": "function_call", "call_id": "call_{index}", "name": "run", "arguments": "{{\"command\": \"cat src/module_{index}.py\"}}"}}, {{"type": "function_call_output", "call_id": "call_{index}", "output": ""#
            ),
        };
        lines(&mut body, index, text_bytes);
        body.push_str(if dialect == Dialect::Messages { "\"}]}" } else { "\"}" });
    }
    body.push_str("]}");
    body.into_bytes()
}

/// Appends escaped lines of code. The numbers make every message different.
fn lines(body: &mut String, message: usize, bytes: usize) {
    let end = body.len() + bytes;
    let mut line = 0;
    while body.len() < end {
        line += 1;
        let _ = write!(
            body,
            r#"    def method_{message}_{line}(self, value):\n        if value[{line}] is None: return self.table.get(\"key_{line}\", {{}})\n"#
        );
    }
}
