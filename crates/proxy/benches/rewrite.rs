//! What Tidegate does to a request before it forwards it, against parsing and writing it with `serde_json::Value`.
//!
//! The conversation is an agent's: 200 messages, half of them tool output of some five kilobytes, 500 KB in all. "Seen" is what
//! happens at every turn: the client resends what it sent last time plus two messages. Run with
//! `cargo bench -p tidegate-proxy --bench rewrite`.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot be set up has nothing to say")]

use divan::Bencher;
use std::hint::black_box;
use std::sync::Arc;
use tidegate_config::{Flags, Settings, Source, load};
use tidegate_engine::{Memory, Timestamp};
use tidegate_proxy::{Question, model_table};
use tidegate_tokens::{Encoding, Model, count};
use tidegate_wire::{Meter, Reader, read_message, split};

fn main() {
    // The vocabulary is loaded once per process, not once per request.
    black_box(count(Encoding::O200k, ""));
    divan::main();
}

/// A reader that has seen everything but the last two messages, and the request with them.
struct Turn {
    reader: Reader,
    settings: Settings,
    model: Arc<Model>,
    memory: Memory,
    body: Vec<u8>,
}

impl Turn {
    /// A conversation that nobody has seen.
    fn unseen() -> Turn {
        let settings = load(Source::none(), &Flags::default(), &|_| None).unwrap();
        let model = model_table(&settings.models).lookup("gpt-4o");
        Turn { reader: Reader::default(), settings, model, memory: Memory::default(), body: body(200) }
    }

    fn new() -> Turn {
        let mut turn = Turn { body: body(198), ..Turn::unseen() };
        let waypoint = turn.rewrite(&turn.reader, 0).1;
        turn.memory.add(waypoint.unwrap());
        turn.body = body(200);
        turn
    }

    /// Everything between the last byte from the client and the first byte to the upstream, without I/O.
    fn rewrite(&self, reader: &Reader, at: u64) -> (usize, Option<tidegate_engine::Waypoint>) {
        let outline = reader.outline(&self.body).unwrap();
        black_box(reader.opening(&self.body, &outline));
        let question = Question {
            body: &self.body,
            outline: &outline,
            context: &self.settings.routes[0].context,
            strategy: self.settings.routes[0].context.strategy,
            model: &self.model,
            factor: 1.0,
        };
        let assessment = question.assess(reader, &self.memory, Timestamp(at)).unwrap();
        let pieces = assessment.pieces(&question).unwrap();
        (pieces.map_or(0, |pieces| pieces.len()), assessment.decision.waypoint)
    }
}

/// The same conversation at any length, so that a longer one continues a shorter one.
fn body(messages: usize) -> Vec<u8> {
    let mut all = vec![
        serde_json::json!({"role": "system", "content": "You are an autonomous programmer. ".repeat(20)}),
        serde_json::json!({"role": "user", "content": "Please fix the failing test in src/parser.rs and explain."}),
    ];
    for number in 0.. {
        if all.len() >= messages {
            break;
        }
        let call = serde_json::json!({"id": format!("call_{number}"), "type": "function",
            "function": {"name": "run", "arguments": format!("{{\"command\": \"sed -n {number},80p src/parser.rs\"}}")}});
        all.push(
            serde_json::json!({"role": "assistant", "content": "Let me look at it.", "tool_calls": [call]}),
        );
        all.push(serde_json::json!({"role": "tool", "tool_call_id": format!("call_{number}"), "content": output(number)}));
    }
    let tools = serde_json::json!([{"type": "function", "function": {"name": "run", "description": "Runs a command",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}}}]);
    serde_json::to_vec(
        &serde_json::json!({"model": "gpt-4o", "stream": true, "tools": tools, "messages": all}),
    )
    .unwrap()
}

/// Source code, as a tool shows it: short lines, quotes, tabs.
fn output(number: usize) -> String {
    let line = |at: usize| {
        format!(
            "{at:>4}\t    let token_{at} = self.expect(\"{}\", Kind::Name)?; // {number}\n",
            ["if", "else", "fn"][at % 3]
        )
    };
    (number..number + 70).map(line).collect()
}

#[divan::bench]
fn seen(bencher: Bencher) {
    let turn = Turn::new();
    turn.rewrite(&turn.reader, 1);
    bencher.bench(|| black_box(turn.rewrite(&turn.reader, 1)));
}

#[divan::bench]
fn value_round_trip(bencher: Bencher) {
    let body = body(200);
    bencher.bench(|| {
        let value: serde_json::Value = serde_json::from_slice(&body).unwrap();
        black_box(serde_json::to_vec(&value).unwrap())
    });
}

#[divan::bench]
fn first_seen(bencher: Bencher) {
    let turn = Turn::unseen();
    bencher.with_inputs(Reader::default).bench_refs(|reader| black_box(turn.rewrite(reader, 1)));
}

/// Only the texts in it, already read, counted once.
#[divan::bench]
fn tokenize_texts(bencher: Bencher) {
    let turn = Turn::unseen();
    let outline = split(&turn.body).unwrap();
    let views: Vec<_> =
        outline.messages.iter().map(|span| read_message(span.of(&turn.body)).unwrap()).collect();
    let meter = Meter { encoding: turn.model.encoding, images: turn.model.images };
    bencher.bench(|| views.iter().map(|view| meter.measure(view).tokens.0).sum::<u64>());
}

/// All 500 KB of it, counted once as they came.
#[divan::bench]
fn tokenize_body(bencher: Bencher) {
    let body = String::from_utf8(body(200)).unwrap();
    bencher.bench(|| count(Encoding::O200k, &body));
}
