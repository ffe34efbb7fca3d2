//! Property tests of automatic recall: generated chats grow turn by turn through the code that the proxy runs, are retried, edited and
//! continued by a process that knows only what the store has.

#![allow(clippy::unwrap_used, reason = "a panic is the failure message of a test")]

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::Arc;
use tidegate_config::{Context, Flags, Source, load};
use tidegate_context::{
    Assessment, ConversationState, Ending, Outcome, Rule, SavedFold, Turn, TurnInput, drive_offline,
    model_table,
};
use tidegate_engine::{Memory, Strategy as Kind, SummaryLimit, Timestamp, Tokens, Verdict};
use tidegate_tokens::Model;
use tidegate_wire::{Dialect, Reader, assemble};

/// A route, and what the store has of one conversation.
struct Scene {
    context: Arc<Context>,
    model: Arc<Model>,
    dialect: Dialect,
    reader: Reader,
    memory: Memory,
    folds: Vec<SavedFold>,
    now: u64,
}

struct Exchange {
    outcome: Box<Outcome>,
    sent: Value,
    forwarded: Value,
}

const POLICY: &str = "[models.m]\nwindow = 4000\nencoding = \"o200k_base\"\n[context]\nstrategy = \"summarization\"\n\
     [context.budget]\noverhead_reserve = { min = 0, ratio = 0.0, fixed = 0 }\noutput_reserve = { cap = 500, ratio = 1.0, min = 0 }\n\
     [context.fold]\nwhen = { budget_ratio = 0.7 }\nkeep = { turns = 2 }\nmode = \"inline\"\nmax_tokens = 200\n[context.prune]\nkeep = { turns = 2 }\n";

impl Scene {
    fn new(extra: &str) -> Scene {
        let text = format!("{POLICY}{extra}");
        let settings = load(Source::new("test.toml", text), &Flags::default(), &|_| None).unwrap();
        Scene {
            context: settings.routes[0].context.clone(),
            model: model_table(&settings.models).lookup("m"),
            dialect: Dialect::Chat,
            reader: Reader::default(),
            memory: Memory::default(),
            folds: Vec::new(),
            now: 1_000_000,
        }
    }

    fn with(strategy: Kind, auto: bool) -> Scene {
        let mut scene = Scene::new("");
        let context = Arc::make_mut(&mut scene.context);
        (context.strategy, context.recall.auto) = (strategy, auto);
        scene
    }

    /// With a summary that has room for the task alone, so that facts come back as excerpts.
    fn with_short_summaries() -> Scene {
        let mut scene = Scene::with(Kind::Summarization, true);
        Arc::make_mut(&mut scene.context).fold.max_tokens = SummaryLimit::Tokens(Tokens(120));
        scene
    }

    fn input(&self, body: &Bytes, reader: &Reader) -> TurnInput {
        let outline = reader.outline(self.dialect, body).unwrap();
        let (context, model) = (self.context.clone(), self.model.clone());
        TurnInput { now: Timestamp(self.now), ..TurnInput::new(body.clone(), outline, context, model) }
    }

    /// What a process forwards that has read nothing yet, with what the store has.
    fn plan(&self, messages: &[Value], reader: &Reader) -> (Turn, Exchange) {
        let sent = json!({"model": "m", "messages": messages});
        let body = Bytes::from(sent.to_string());
        let state = ConversationState::new(self.memory.clone(), self.folds.clone(), None);
        let mut turn = Turn::new(self.input(&body, reader), state);
        let outcome = drive_offline(&mut turn, reader).unwrap();
        let forwarded = outcome.pieces.as_ref().map_or(body.to_vec(), |pieces| assemble(&body, pieces));
        let forwarded = serde_json::from_slice(&forwarded).unwrap();
        (turn, Exchange { outcome, sent, forwarded })
    }

    /// Sends a request and stores what was decided.
    fn send(&mut self, messages: &[Value]) -> Exchange {
        let (turn, exchange) = self.plan(messages, &self.reader);
        if exchange.outcome.ending == Ending::Forward {
            self.folds = turn.state().folds().to_vec();
            if let Some(waypoint) = exchange.outcome.assessment.decision.waypoint.clone() {
                self.memory.add(waypoint);
            }
        }
        self.now += 2_000;
        exchange
    }

    fn count(&self, body: &Value) -> Tokens {
        let reader = Reader::default();
        let body = Bytes::from(body.to_string());
        let input = TurnInput { strategy: Kind::Passthrough, ..self.input(&body, &reader) };
        let assessment = input.assess(&ConversationState::default(), &reader, Rule::Decide).unwrap();
        assessment.decision.plan.before
    }
}

impl Exchange {
    fn assessment(&self) -> &Assessment {
        &self.outcome.assessment
    }

    fn messages(&self) -> &[Value] {
        self.forwarded["messages"].as_array().unwrap()
    }

    /// The excerpts in the newest user message.
    fn recalled(&self) -> &str {
        let user = self.messages().iter().rev().find(|message| message["role"] == "user").unwrap();
        let text = user["content"].as_str().or_else(|| user["content"][0]["text"].as_str()).unwrap();
        text.split_once("<earlier_excerpts>")
            .map_or("", |(_, rest)| rest.split("</earlier_excerpts>").next().unwrap())
    }
}

fn message(role: &str, content: &str) -> Value {
    json!({"role": role, "content": content})
}

/// Small talk with a fact in some turns.
fn chat(turns: usize) -> Vec<Value> {
    let mut messages = vec![message("system", "You are a helpful assistant.")];
    for turn in 0..turns {
        let said = match turn {
            13 => "By the way, the spare key is hidden under the blue flowerpot.".to_owned(),
            15 => "My sister Mathilda moved to Reykjavik last spring.".to_owned(),
            17 => "我的护照号码是 E12345678，会议定在星期五下午三点。".to_owned(),
            _ => format!("Let us talk about topic {turn}: rivers, mountains, trains and how long people travel by them. ").repeat(3),
        };
        messages.push(message("user", &said));
        messages.push(message(
            "assistant",
            &format!("I see, that is interesting. Tell me more about number {turn}.").repeat(4),
        ));
    }
    messages
}

fn grown(scene: &mut Scene, messages: &[Value]) {
    for end in 1..messages.len() {
        if messages[end - 1]["role"] == "user" {
            scene.send(&messages[..end]);
        }
    }
}

fn asked(messages: &[Value], question: &str) -> Vec<Value> {
    [messages, &[message("user", question)]].concat()
}

#[test]
fn what_was_folded_comes_back_when_the_user_asks() {
    for strategy in [Kind::Summarization, Kind::Hybrid, Kind::Window] {
        let mut scene = Scene::with(strategy, true);
        let messages = chat(40);
        grown(&mut scene, &messages);
        for (question, answer) in [
            ("Where is the spare key?", "blue flowerpot"),
            ("Where does Mathilda live now?", "Reykjavik"),
            ("会议是星期几？", "星期五"),
        ] {
            let question = asked(&messages, question);
            let (_, exchange) = scene.plan(&question, &Reader::default());
            assert!(exchange.forwarded.to_string().contains(answer), "{strategy:?}: {}", exchange.forwarded);
            let last = exchange.messages().last().unwrap()["content"].as_str().unwrap();
            assert!(last.ends_with(question.last().unwrap()["content"].as_str().unwrap()), "{last}");
            let figures = &exchange.outcome.figures;
            assert_eq!(figures.recalled > 0, exchange.recalled().contains(answer));
            assert_eq!(figures.recalled_tokens > Tokens::ZERO, figures.recalled > 0);
            // What the summary says already is not said twice.
            assert!(figures.recalled > 0 || strategy != Kind::Window);
            scene.now += 2_000;
        }
        let (_, idle) = scene.plan(&asked(&messages, "ok"), &Reader::default());
        assert_eq!(idle.recalled(), "", "nothing bears on it");
    }
}

#[test]
fn an_excerpt_never_makes_a_summary_due() {
    let mut scene = Scene::with_short_summaries();
    let mut messages = vec![message("system", "You are a helpful assistant.")];
    let mut recalled = 0;
    for turn in 0..40 {
        let said = format!("The barge{turn} lies in harbour{turn}, and that is a long way by the river. ");
        messages.push(message("user", &said.repeat(4)));
        scene.send(&messages);
        messages.push(message("assistant", "I see, that is interesting."));
        let names: Vec<String> = (0..turn).map(|turn| format!("barge{turn} and harbour{turn}")).collect();
        let question = format!("How far is it from {}?", names.join(" to "));
        let (_, exchange) = scene.plan(&asked(&messages, &question), &Reader::default());
        let figures = &exchange.outcome.figures;
        let plan = &exchange.assessment().decision.plan;
        let due = plan.budget.input.unwrap().share(0.7);
        let without = plan.after.saturating_sub(figures.recalled_tokens);
        assert!(without >= due || plan.after < due, "{turn}: {without} {} {due}", plan.after);
        recalled += figures.recalled;
    }
    assert!(recalled > 0);
}

#[test]
fn an_excerpt_stays_through_a_tool_loop_and_after_it() {
    let mut scene = Scene::with_short_summaries();
    let mut messages = chat(40);
    grown(&mut scene, &messages);
    messages.push(message("user", "Where is the spare key?"));
    let first = scene.send(&messages);
    assert!(first.recalled().contains("flowerpot"));
    let mut before = first.forwarded["messages"].clone();
    for step in 0..4 {
        let call = json!({"id": format!("c{step}"), "type": "function", "function": {"name": "look", "arguments": "{}"}});
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
        messages
            .push(json!({"role": "tool", "tool_call_id": format!("c{step}"), "content": "nothing there"}));
        // Another replica goes on.
        scene.reader = Reader::default();
        let next = scene.send(&messages);
        let (old, new) = (before.as_array().unwrap(), next.messages());
        assert_eq!(&new[..old.len()], &old[..], "step {step}");
        before = next.forwarded["messages"].clone();
    }
    messages.push(message("assistant", "It is under the flowerpot."));
    messages.push(message("user", "Thanks!"));
    let after = scene.send(&messages);
    let old = before.as_array().unwrap();
    assert_eq!(&after.messages()[..old.len()], &old[..]);
    assert_eq!(after.recalled(), "", "what is in the context is not brought back again");
}

#[test]
fn anthropics_messages_get_excerpts_after_their_results() {
    let mut scene = Scene::with_short_summaries();
    scene.dialect = Dialect::Messages;
    let mut messages = chat(40);
    messages.remove(0);
    grown(&mut scene, &messages);
    let result = json!({"type": "tool_result", "tool_use_id": "t1", "content": "done"});
    let text = json!({"type": "text", "text": "And where is the spare key?"});
    messages.push(message("user", "Run it"));
    messages.push(json!({"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "run", "input": {}}]}));
    scene.send(&messages[..messages.len() - 1]);
    messages.push(json!({"role": "user", "content": [result, text]}));
    let exchange = scene.send(&messages);
    let content = exchange.messages().last().unwrap()["content"].as_array().unwrap();
    assert_eq!((&content[0], &content[1]), (&result, &text));
    assert!(content[2]["text"].as_str().unwrap().contains("flowerpot"), "{content:?}");
}

#[test]
fn a_route_without_recall_adds_nothing() {
    for extra in ["[context.recall]\nauto = false\n", "[store]\nraw = false\n"] {
        let mut scene = Scene::new(extra);
        let messages = chat(40);
        grown(&mut scene, &messages);
        let (_, exchange) = scene.plan(&asked(&messages, "Where is the spare key?"), &Reader::default());
        assert!(exchange.outcome.figures.folded > 0 && exchange.outcome.figures.recalled == 0);
        assert!(!exchange.forwarded.to_string().contains("earlier_excerpts"));
    }
}

/// What one turn of a generated chat says: words of a small vocabulary, so that messages have words in common.
#[derive(Clone, Debug)]
struct Said {
    user: Vec<u8>,
    steps: u8,
    answer: Vec<u8>,
    is_retried: bool,
    is_parts: bool,
}

fn said() -> impl Strategy<Value = Said> {
    let words = |most| prop::collection::vec(any::<u8>(), 1..most);
    let steps = prop_oneof![3 => Just(0), 1 => 1u8..4];
    (words(120), steps, words(120), any::<bool>(), any::<bool>()).prop_map(
        |(user, steps, answer, is_retried, is_parts)| Said { user, steps, answer, is_retried, is_parts },
    )
}

fn text(words: &[u8]) -> String {
    let word = |byte: &u8| match byte % 4 {
        0 => format!("word{byte}"),
        1 => format!("{}", u32::from(*byte) * 7919),
        2 => "the".to_owned(),
        _ => ["quick", "brown", "Hafen", "会议", "naïve", "\"quoted\"", "</earlier_excerpts>", "line\n"]
            [usize::from(byte / 32)]
        .to_owned(),
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn requests(turns: &[Said]) -> Vec<(Vec<Value>, bool)> {
    let mut messages = vec![message("system", "Be brief.")];
    let mut requests = Vec::new();
    for (number, turn) in turns.iter().enumerate() {
        let said = text(&turn.user);
        messages.push(match turn.is_parts {
            true => json!({"role": "user", "content": [{"type": "text", "text": said}]}),
            false => message("user", &said),
        });
        requests.push((messages.clone(), turn.is_retried));
        for step in 0..turn.steps {
            let id = format!("c{number}_{step}");
            let call = json!({"id": id, "type": "function", "function": {"name": "look", "arguments": "{}"}});
            messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
            messages.push(json!({"role": "tool", "tool_call_id": id, "content": text(&turn.answer)}));
            requests.push((messages.clone(), false));
        }
        messages.push(message("assistant", &text(&turn.answer)));
    }
    requests
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, max_shrink_iters: 500, ..ProptestConfig::default() })]

    #[test]
    fn the_promises_hold_with_recall(
        turns in prop::collection::vec(said(), 8..40),
        strategy in prop::sample::select(vec![Kind::Summarization, Kind::Hybrid, Kind::Window]),
        window in prop::sample::select(vec![1_200u64, 2_500, 4_000, 8_000]),
        edited in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut scene = Scene::with(strategy, true);
        let mut model = (*scene.model).clone();
        model.window = tidegate_engine::ContextWindow::Configured(Tokens(window));
        scene.model = model.into();
        let mut requests = requests(&turns);
        if let Some(edited) = edited {
            // The client goes back, says something else and returns.
            let mut other = edited.get(&requests).clone();
            let at = other.0.iter().rposition(|message| message["role"] == "user").unwrap();
            other.0[at] = message("user", "word4 the quick word8");
            other.0.truncate(at + 1);
            let place = edited.index(requests.len()) + 1;
            requests.insert(place, other);
        }
        let mut previous: Option<Exchange> = None;
        for (messages, is_retried) in &requests {
            for time in 0..if *is_retried { 2 } else { 1 } {
                let (_, elsewhere) = scene.plan(messages, &Reader::default());
                let exchange = scene.send(messages);
                check(&scene, &exchange, &elsewhere, previous.as_ref(), time > 0)?;
                if exchange.outcome.ending == Ending::Forward {
                    previous = Some(exchange);
                }
            }
        }
    }
}

fn check(
    scene: &Scene,
    exchange: &Exchange,
    elsewhere: &Exchange,
    previous: Option<&Exchange>,
    is_retry: bool,
) -> Result<(), TestCaseError> {
    // Deterministic, in every process.
    prop_assert_eq!(&exchange.forwarded, &elsewhere.forwarded);
    let assessment = exchange.assessment();
    let plan = &assessment.decision.plan;
    // Never in the way, and never over budget.
    if plan.verdict != Verdict::Fits {
        prop_assert!(assessment.excerpts.is_empty());
        return Ok(());
    }
    let counted = scene.count(&exchange.forwarded);
    prop_assert!(counted <= plan.after, "{} {}", counted, plan.after);
    prop_assert!(plan.budget.input.is_none_or(|input| plan.after <= input));
    // The client's own words stay whole, in order, and everything else is ours.
    let removed = |index: &usize| {
        plan.folded.as_ref().is_some_and(|folded| folded.removed.contains(index))
            || plan.dropped.contains(index)
    };
    let sent = exchange.sent["messages"].as_array().unwrap();
    let mut forwarded = exchange.messages().iter();
    for index in (0..sent.len()).filter(|index| !removed(index)) {
        let is_it = |message: &&Value| {
            let same_role =
                message["role"] == sent[index]["role"] && message["tool_calls"] == sent[index]["tool_calls"];
            same_role
                && (plan.masked.contains(&index) || ends_with(&message["content"], &sent[index]["content"]))
        };
        prop_assert!(forwarded.any(|message| is_it(&message)), "message {} is missing", index);
    }
    // Only what has left is brought back, and all of it once.
    let mut seen = Vec::new();
    for excerpt in &assessment.excerpts {
        prop_assert!(!removed(&excerpt.message));
        prop_assert!(excerpt.sources.iter().all(&removed), "{:?}", excerpt);
        prop_assert_eq!(excerpt.text.matches("earlier_excerpts").count(), 2);
        seen.extend(excerpt.excerpt.passages.iter().copied());
    }
    let count = seen.len();
    seen.sort_unstable();
    seen.dedup();
    prop_assert_eq!(seen.len(), count);
    // Between two decisions, the request is the previous one and new messages.
    let Some(previous) = previous else { return Ok(()) };
    let continues = sent.starts_with(previous.sent["messages"].as_array().unwrap());
    let is_decided = plan.cause.is_some() || exchange.outcome.due.is_some();
    // A window in a tiny budget is moved without a cause of its own; how often, tests/folding/window.rs measures.
    let is_window = plan.window.is_some() || previous.assessment().decision.plan.window.is_some();
    if continues && !is_decided && !is_window && previous.assessment().decision.plan.cause.is_none() {
        let before = previous.messages();
        let changed = before.iter().zip(exchange.messages()).position(|(one, other)| one != other);
        prop_assert_eq!(
            changed,
            None,
            "the prefix has changed: {:?} {:?}",
            plan,
            previous.assessment().decision.plan
        );
    }
    // A retry changes nothing, unless one of the two had to decide something: make a summary, or make room.
    if is_retry && continues && !is_decided && previous.assessment().decision.plan.cause.is_none() {
        prop_assert_eq!(&exchange.forwarded, &previous.forwarded, "a retry");
    }
    Ok(())
}

fn ends_with(forwarded: &Value, sent: &Value) -> bool {
    match (forwarded, sent) {
        (Value::String(forwarded), Value::String(sent)) => {
            forwarded.ends_with(sent.as_str()) || forwarded.starts_with(sent.as_str())
        }
        (Value::Array(forwarded), Value::Array(sent)) => sent.iter().all(|part| forwarded.contains(part)),
        (forwarded, sent) => forwarded == sent,
    }
}
