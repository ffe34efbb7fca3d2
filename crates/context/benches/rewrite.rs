//! What Tidegate does to a request before it forwards it, against parsing and writing it with `serde_json::Value`.
//!
//! The conversation is an agent's: 200 messages, half of them tool output of some five kilobytes, 500 KB in all. "Seen" is what
//! happens at every turn: the client resends what it sent last time plus two messages. "First seen" is a conversation of which
//! no message was ever seen, by a reader that has run for a while, as that of a proxy has: every sample is another
//! conversation, written just before. What counts the tokens alone gets the same conversations, so that the two can be
//! compared. Run with `cargo bench -p tidegate-context --bench rewrite`.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot be set up has nothing to say")]

use bytes::Bytes;
use divan::Bencher;
use std::hint::black_box;
use std::sync::Arc;
use tidegate_config::{Flags, Settings, Source, load};
use tidegate_context::{ConversationState, TurnInput, drive_offline, model_table};
use tidegate_engine::Timestamp;
use tidegate_tokens::{Encoding, Model, count};
use tidegate_wire::{Dialect, Meter, Reader, Unit, split};

fn main() {
    // The vocabulary is loaded once per process, not once per request.
    black_box(count(Encoding::O200k, ""));
    divan::main();
}

/// What a proxy has at hand when a request comes.
struct Turn {
    reader: Reader,
    settings: Settings,
    model: Arc<Model>,
    state: Arc<ConversationState>,
}

impl Turn {
    /// Nothing has been seen yet.
    fn unseen() -> Turn {
        let settings = load(Source::none(), &Flags::default(), &|_| None).unwrap();
        let model = model_table(&settings.models).lookup("gpt-4o");
        Turn { reader: Reader::default(), settings, model, state: Arc::default() }
    }

    /// All of conversation 0 but the last two messages has been seen.
    fn seen() -> Turn {
        let mut turn = Turn::unseen();
        let waypoint = turn.rewrite(&body(0, 198), 0).1;
        Arc::make_mut(&mut turn.state).memory.add(waypoint.unwrap());
        turn
    }

    /// Everything between the last byte from the client and the first byte to the upstream, without I/O.
    fn rewrite(&self, body: &Bytes, at: u64) -> (usize, Option<tidegate_engine::Waypoint>) {
        let reader = &self.reader;
        let outline = reader.outline(Dialect::Chat, body).unwrap();
        black_box(reader.opening_digest(body, &outline));
        let (context, model) = (self.settings.routes[0].context.clone(), self.model.clone());
        let input = TurnInput { now: Timestamp(at), ..TurnInput::new(body.clone(), outline, context, model) };
        let mut turn = tidegate_context::Turn::new(input, self.state.clone());
        let outcome = drive_offline(&mut turn, reader).unwrap();
        (outcome.pieces.map_or(0, |pieces| pieces.len()), outcome.assessment.decision.waypoint)
    }
}

/// The same conversation at any length, so that a longer one continues a shorter one. Its number is woven into every message.
fn body(conversation: usize, messages: usize) -> Bytes {
    let file = format!("src/parser_{conversation:04}.rs");
    let system = format!("You are an autonomous programmer. Your file is {file}. ");
    let mut all = vec![
        serde_json::json!({"role": "system", "content": system.repeat(12)}),
        serde_json::json!({"role": "user", "content": format!("Please fix the failing test in {file} and explain.")}),
    ];
    for number in 0.. {
        if all.len() >= messages {
            break;
        }
        let call = serde_json::json!({"id": format!("call_{number}"), "type": "function",
            "function": {"name": "run", "arguments": format!("{{\"command\": \"sed -n {number},80p {file}\"}}")}});
        all.push(
            serde_json::json!({"role": "assistant", "content": "Let me look at it.", "tool_calls": [call]}),
        );
        all.push(serde_json::json!({"role": "tool", "tool_call_id": format!("call_{number}"), "content": output(&file, number)}));
    }
    let tools = serde_json::json!([{"type": "function", "function": {"name": "run", "description": "Runs a command",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}}}]);
    serde_json::json!({"model": "gpt-4o", "stream": true, "tools": tools, "messages": all}).to_string().into()
}

/// Source code, as a tool shows it: short lines, quotes, tabs.
fn output(file: &str, number: usize) -> String {
    let line = |at: usize| {
        format!(
            "{at:>4}\t    let token_{at} = self.expect(\"{}\", Kind::Name)?; // {number}\n",
            ["if", "else", "fn"][at % 3]
        )
    };
    std::iter::once(format!("{file}\n")).chain((number..number + 70).map(line)).collect()
}

/// One conversation after the other, none like any before.
fn conversations() -> impl FnMut() -> Bytes {
    let mut conversation = 0;
    move || {
        conversation += 1;
        body(conversation, 200)
    }
}

#[divan::bench]
fn seen(bencher: Bencher) {
    let turn = Turn::seen();
    let body = body(0, 200);
    turn.rewrite(&body, 1);
    bencher.bench(|| black_box(turn.rewrite(&body, 1)));
}

#[divan::bench]
fn value_round_trip(bencher: Bencher) {
    let body = body(0, 200);
    bencher.bench(|| {
        let value: serde_json::Value = serde_json::from_slice(&body).unwrap();
        black_box(serde_json::to_vec(&value).unwrap())
    });
}

#[divan::bench]
fn first_seen(bencher: Bencher) {
    let turn = Turn::seen();
    bencher.with_inputs(conversations()).bench_local_refs(|body| black_box(turn.rewrite(body, 1)));
}

/// Only the texts in it, already read, counted once.
#[divan::bench]
fn tokenize_texts(bencher: Bencher) {
    let turn = Turn::unseen();
    let meter = Meter { encoding: turn.model.encoding, images: turn.model.images, unit: Unit::Tokens };
    let mut bodies = conversations();
    let views = || {
        // What has been read borrows from the body, and divan wants an input that borrows from nothing.
        let body: &'static [u8] = bodies().to_vec().leak();
        let messages = split(Dialect::Chat, body).unwrap().messages;
        messages.iter().map(|span| Dialect::Chat.read_message(span.of(body)).unwrap()).collect::<Vec<_>>()
    };
    bencher
        .with_inputs(views)
        .bench_local_refs(|views| views.iter().map(|view| meter.measure(view).tokens.0).sum::<u64>());
}

/// All 500 KB of it, counted once as they came.
#[divan::bench]
fn tokenize_body(bencher: Bencher) {
    let mut bodies = conversations();
    bencher
        .with_inputs(|| String::from_utf8(bodies().to_vec()).unwrap())
        .bench_local_refs(|body| count(Encoding::O200k, body));
}
