//! What recall adds to a request of a chat with 1,000 messages, of which a summary stands for all but a few.
//!
//! `warm` is the usual turn: a new question after a history that was read before. Compare `warm/recall` with `warm/without`, and `repeated`,
//! a further step of a tool loop whose excerpt is repeated. `cold` is the first request after a restart, which the proxy reads on a
//! blocking thread. Run with `cargo bench -p tidegate-context --bench recall`.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot be set up should panic")]

use bytes::Bytes;
use divan::Bencher;
use serde_json::{Value, json};
use std::hint::black_box;
use std::sync::Arc;
use tidegate_config::{Flags, Source, load};
use tidegate_context::{ConversationState, Outcome, Turn, TurnInput, drive_offline, model_table};
use tidegate_engine::Timestamp;
use tidegate_tokens::{Encoding, count};
use tidegate_wire::{Dialect, Reader};

const MESSAGES: usize = 1_000;

fn main() {
    // The vocabulary is loaded once per process, not once per request.
    black_box(count(Encoding::O200k, ""));
    divan::main();
}

struct Fixture {
    reader: Reader,
    context: Arc<tidegate_config::Context>,
    model: Arc<tidegate_tokens::Model>,
    state: ConversationState,
    messages: Vec<Value>,
}

impl Fixture {
    fn new(auto: bool) -> Fixture {
        let policy = format!(
            "[models.m]\nwindow = 16000\nencoding = \"o200k_base\"\n[context]\nstrategy = \"summarization\"\n[context.fold]\n\
             when = {{ budget_ratio = 0.7 }}\nmode = \"inline\"\n[context.recall]\nauto = {auto}\n"
        );
        let settings = load(Source::new("bench.toml", policy), &Flags::default(), &|_| None).unwrap();
        let mut fixture = Fixture {
            reader: Reader::default(),
            context: settings.routes[0].context.clone(),
            model: model_table(&settings.models).lookup("m"),
            state: ConversationState::default(),
            messages: (0..MESSAGES).map(message).collect(),
        };
        let (turn, outcome) = fixture.turn(&fixture.asking(0), &fixture.reader);
        assert!(outcome.figures.folded > MESSAGES / 2);
        fixture.state = (**turn.state()).clone();
        fixture.state.memory.add(outcome.assessment.decision.waypoint.unwrap());
        fixture
    }

    /// The chat with another question at its end.
    fn asking(&self, question: usize) -> Bytes {
        let text = format!(
            "What did I say about wreck{} and the lighthouse of berth{}?",
            question % 400,
            question % 37
        );
        let question = json!({"role": "user", "content": text});
        let messages = [self.messages.as_slice(), &[question]].concat();
        json!({"model": "m", "messages": messages}).to_string().into()
    }

    fn turn(&self, body: &Bytes, reader: &Reader) -> (Turn, Box<Outcome>) {
        let outline = reader.outline(Dialect::Chat, body).unwrap();
        let input = TurnInput::new(body.clone(), outline, self.context.clone(), self.model.clone());
        let mut turn = Turn::new(TurnInput { now: Timestamp(1), ..input }, self.state.clone());
        let outcome = drive_offline(&mut turn, reader).unwrap();
        (turn, outcome)
    }
}

/// About 500 bytes of talk, in words of which some are rare.
fn message(number: usize) -> Value {
    let role = if number.is_multiple_of(2) { "user" } else { "assistant" };
    let words = [
        "harbour",
        "the",
        "lighthouse",
        "was",
        "seen",
        "from",
        "berth",
        "in",
        "fog",
        "and",
        "rain",
        "we",
        "waited",
    ];
    let word = |at: usize| match (number * 31 + at * 17) % 9 {
        0 => format!("wreck{}", (number * 7 + at) % 400),
        1 => format!("berth{}", (number + at) % 37),
        _ => words[(number * 13 + at * 5) % words.len()].to_owned(),
    };
    let text = (0..80).map(word).collect::<Vec<_>>().join(" ");
    json!({"role": role, "content": text})
}

#[divan::bench(args = ["recall", "without"])]
fn warm(bencher: Bencher, which: &str) {
    let fixture = Fixture::new(which == "recall");
    let mut question = 0;
    let asking = || {
        question += 1;
        fixture.asking(question)
    };
    bencher.with_inputs(asking).bench_local_refs(|body| black_box(fixture.turn(body, &fixture.reader)));
}

#[divan::bench]
fn repeated(bencher: Bencher) {
    let mut fixture = Fixture::new(true);
    let outcome = fixture.turn(&fixture.asking(5), &fixture.reader).1;
    assert!(outcome.figures.recalled > 0);
    fixture.state.memory.add(outcome.assessment.decision.waypoint.unwrap());
    let mut body: Value = serde_json::from_slice(&fixture.asking(5)).unwrap();
    let more =
        [json!({"role": "assistant", "content": "Let me see."}), json!({"role": "user", "content": "ok"})];
    body["messages"].as_array_mut().unwrap().extend(more);
    let body = Bytes::from(body.to_string());
    bencher.bench_local(|| black_box(fixture.turn(&body, &fixture.reader)));
}

#[divan::bench(args = ["recall", "without"])]
fn cold(bencher: Bencher, which: &str) {
    let fixture = Fixture::new(which == "recall");
    let body = fixture.asking(3);
    bencher.with_inputs(Reader::default).bench_local_refs(|reader| black_box(fixture.turn(&body, reader)));
}
