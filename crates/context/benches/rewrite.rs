//! Compares a complete turn with parsing and serializing the request as a `serde_json::Value`.
//!
//! The conversation is an agent's: 200 messages, half of them tool output of about five kilobytes, 500 KB in all. `seen` is the
//! usual turn: the client resends its last request plus two messages. `first_seen` is a new conversation for a reader that is
//! already in use; every sample is another conversation. The tokenizer benchmarks use the same conversations, so that the results
//! can be compared. `messages_seen` and `responses_seen` are the usual turn of the same run in the other APIs. Run with `cargo bench -p tidegate-context --bench rewrite`.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot be set up should panic")]

use bytes::Bytes;
use divan::Bencher;
use std::hint::black_box;
use std::sync::Arc;
use tidegate_config::{Flags, Settings, Source, load};
use tidegate_context::{ConversationState, Turn, TurnInput, drive_offline, model_table};
use tidegate_engine::Timestamp;
use tidegate_tokens::{Encoding, Model, count};
use tidegate_wire::{Dialect, Meter, Reader, Unit, split};

fn main() {
    // The vocabulary is loaded once per process, not once per request.
    black_box(count(Encoding::O200k, ""));
    divan::main();
}

/// The proxy's state when a request arrives.
struct Fixture {
    reader: Reader,
    settings: Settings,
    model: Arc<Model>,
    state: Arc<ConversationState>,
}

impl Fixture {
    /// No message has been seen yet.
    fn unseen() -> Fixture {
        let settings = load(Source::none(), &Flags::default(), &|_| None).unwrap();
        let model = model_table(&settings.models).lookup("gpt-4o");
        Fixture { reader: Reader::default(), settings, model, state: Arc::default() }
    }

    /// All of conversation 0 but the last two messages has been seen.
    fn seen() -> Fixture {
        Fixture::seen_as(Dialect::Chat)
    }

    fn seen_as(dialect: Dialect) -> Fixture {
        let mut fixture = Fixture::unseen();
        let waypoint = fixture.rewrite_as(dialect, &body_as(dialect, 0, 198), 0).1;
        Arc::make_mut(&mut fixture.state).memory.add(waypoint.unwrap());
        fixture
    }

    /// Everything between the last byte from the client and the first byte to the upstream, without I/O.
    fn rewrite(&self, body: &Bytes, at: u64) -> (usize, Option<tidegate_engine::Waypoint>) {
        self.rewrite_as(Dialect::Chat, body, at)
    }

    fn rewrite_as(
        &self,
        dialect: Dialect,
        body: &Bytes,
        at: u64,
    ) -> (usize, Option<tidegate_engine::Waypoint>) {
        let reader = &self.reader;
        let outline = reader.outline(dialect, body).unwrap();
        black_box(reader.branch_points(body, &outline));
        let (context, model) = (self.settings.routes[0].context.clone(), self.model.clone());
        let input = TurnInput { now: Timestamp(at), ..TurnInput::new(body.clone(), outline, context, model) };
        let mut turn = Turn::new(input, self.state.clone());
        let outcome = drive_offline(&mut turn, reader).unwrap();
        (outcome.pieces.map_or(0, |pieces| pieces.len()), outcome.assessment.decision.waypoint)
    }
}

/// Generates a conversation with this many messages. A longer one continues a shorter one, and the number makes every message
/// unique.
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

/// The same run as a request of another API, with as many messages or items.
fn body_as(dialect: Dialect, conversation: usize, messages: usize) -> Bytes {
    let file = format!("src/parser_{conversation:04}.rs");
    let system = format!("You are an autonomous programmer. Your file is {file}. ").repeat(12);
    let task = format!("Please fix the failing test in {file} and explain.");
    let command = |number: usize| format!("sed -n {number},80p {file}");
    let steps = || (0..messages / 2).map(|number| (number, format!("call_{number}"), output(&file, number)));
    match dialect {
        Dialect::Chat => body(conversation, messages),
        Dialect::Messages => {
            let mut all = vec![serde_json::json!({"role": "user", "content": task})];
            for (number, id, output) in steps() {
                let call = serde_json::json!({"type": "tool_use", "id": id, "name": "run", "input": {"command": command(number)}});
                let said = serde_json::json!({"type": "text", "text": "Let me look at it."});
                all.push(serde_json::json!({"role": "assistant", "content": [said, call]}));
                let result = serde_json::json!({"type": "tool_result", "tool_use_id": id, "content": output});
                all.push(serde_json::json!({"role": "user", "content": [result]}));
            }
            let tools = serde_json::json!([{"name": "run", "description": "Runs a command", "input_schema": {"type": "object"}}]);
            serde_json::json!({"model": "gpt-4o", "stream": true, "max_tokens": 1000, "system": system, "tools": tools, "messages": all})
                .to_string()
                .into()
        }
        Dialect::Responses => {
            let mut all = vec![serde_json::json!({"role": "user", "content": task})];
            for (number, id, output) in steps() {
                let arguments = serde_json::json!({"command": command(number)}).to_string();
                all.push(serde_json::json!({"type": "function_call", "call_id": id, "name": "run", "arguments": arguments}));
                all.push(
                    serde_json::json!({"type": "function_call_output", "call_id": id, "output": output}),
                );
            }
            let tools =
                serde_json::json!([{"type": "function", "name": "run", "parameters": {"type": "object"}}]);
            serde_json::json!({"model": "gpt-4o", "stream": true, "store": false, "instructions": system, "tools": tools, "input": all})
                .to_string()
                .into()
        }
    }
}

/// Source code as a tool prints it: short lines, quotes, tabs.
fn output(file: &str, number: usize) -> String {
    let line = |at: usize| {
        format!(
            "{at:>4}\t    let token_{at} = self.expect(\"{}\", Kind::Name)?; // {number}\n",
            ["if", "else", "fn"][at % 3]
        )
    };
    std::iter::once(format!("{file}\n")).chain((number..number + 70).map(line)).collect()
}

/// Generates a new conversation on each call.
fn conversations() -> impl FnMut() -> Bytes {
    let mut conversation = 0;
    move || {
        conversation += 1;
        body(conversation, 200)
    }
}

#[divan::bench]
fn seen(bencher: Bencher) {
    let fixture = Fixture::seen();
    let body = body(0, 200);
    fixture.rewrite(&body, 1);
    bencher.bench(|| black_box(fixture.rewrite(&body, 1)));
}

#[divan::bench]
fn messages_seen(bencher: Bencher) {
    seen_as(bencher, Dialect::Messages);
}

#[divan::bench]
fn responses_seen(bencher: Bencher) {
    seen_as(bencher, Dialect::Responses);
}

fn seen_as(bencher: Bencher, dialect: Dialect) {
    let fixture = Fixture::seen_as(dialect);
    let body = body_as(dialect, 0, 200);
    fixture.rewrite_as(dialect, &body, 1);
    bencher.bench(|| black_box(fixture.rewrite_as(dialect, &body, 1)));
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
    let fixture = Fixture::seen();
    bencher.with_inputs(conversations()).bench_local_refs(|body| black_box(fixture.rewrite(body, 1)));
}

/// Counts the tokens of the parsed texts.
#[divan::bench]
fn tokenize_texts(bencher: Bencher) {
    let model = Fixture::unseen().model;
    let meter = Meter { encoding: model.encoding, images: model.images, unit: Unit::Tokens };
    let mut bodies = conversations();
    let views = || {
        // The parsed messages borrow from the body, and divan needs an owned input.
        let body: &'static [u8] = bodies().to_vec().leak();
        let messages = split(Dialect::Chat, body).unwrap().messages;
        messages.iter().map(|span| Dialect::Chat.read_message(span.of(body)).unwrap()).collect::<Vec<_>>()
    };
    bencher
        .with_inputs(views)
        .bench_local_refs(|views| views.iter().map(|view| meter.measure(view).tokens.0).sum::<u64>());
}

/// Counts the tokens of the raw 500 KB body.
#[divan::bench]
fn tokenize_body(bencher: Bencher) {
    let mut bodies = conversations();
    bencher
        .with_inputs(|| String::from_utf8(bodies().to_vec()).unwrap())
        .bench_local_refs(|body| count(Encoding::O200k, body));
}
