//! Break-even masking follows the kind of cache: explicit breakpoints count as an automatic cache if the request has one, and as no
//! cache if it has none.

#![allow(clippy::unwrap_used, reason = "a panic is the failure message of a test")]

use proptest::prelude::*;
use serde_json::{Value, json};
use tidegate_config::{Flags, Source, load};
use tidegate_context::{ConversationState, Turn, TurnInput, drive_offline, model_table};
use tidegate_engine::Timestamp;
use tidegate_wire::{Dialect, Reader};

/// Where the requests of a run have a breakpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Marker {
    Nowhere,
    System,
    Tools,
    Newest,
    /// Instructions behind the newest message.
    Inner,
    /// The whole request asks for it.
    Request,
}

/// The request after so many results, which have these numbers of words.
fn body(words: &[usize], marker: Marker, breakpoint: &Value) -> String {
    let mut messages = vec![json!({"role": "system", "content": "You are a pilot."})];
    messages.push(json!({"role": "user", "content": "Find the ship that is late."}));
    for (number, words) in words.iter().enumerate() {
        let id = format!("c{number}");
        let call = json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}});
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": "word ".repeat(*words)}));
    }
    let mark = |message: &mut Value| {
        let text = message["content"].take();
        message["content"] = json!([{"type": "text", "text": text, "cache_control": breakpoint}]);
    };
    match marker {
        Marker::System => mark(&mut messages[0]),
        Marker::Newest => mark(messages.last_mut().unwrap()),
        Marker::Inner => {
            messages.push(json!({"role": "system", "content": "Be brief."}));
            mark(messages.last_mut().unwrap());
        }
        Marker::Nowhere | Marker::Tools | Marker::Request => {}
    }
    let mut tool = json!({"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}});
    if marker == Marker::Tools {
        tool["cache_control"] = breakpoint.clone();
    }
    let mut body = json!({"model": "tide-1", "tools": [tool], "messages": messages});
    if marker == Marker::Request {
        body["cache_control"] = breakpoint.clone();
    }
    body.to_string()
}

/// How many results are masked at each request of a run.
fn masked(cache: &str, marker: Marker, words: &[usize]) -> Vec<usize> {
    masked_after(1_000, cache, (marker, &json!({"type": "ephemeral"})), words)
}

/// The same with this pause between the requests, in milliseconds.
fn masked_after(
    pause: u64,
    cache: &str,
    (marker, breakpoint): (Marker, &Value),
    words: &[usize],
) -> Vec<usize> {
    let file = format!(
        "[models.\"tide-1\"]\nwindow = 1000000\ninput = 1.0\ncached_input = 0.1\ncache_write = 1.25\ncache = \"{cache}\"\ncache_ttl = \"5m\"\n\
         [context.mask]\nkeep = {{ turns = 2 }}\n"
    );
    let settings = load(Source::new("proxy.toml", &file), &Flags::default(), &|_| None).unwrap();
    let model = model_table(&settings.models).lookup("tide-1");
    let (reader, mut state) = (Reader::default(), ConversationState::default());
    let request = |turns: usize| {
        let body = body(&words[..turns], marker, breakpoint);
        let outline = reader.outline(Dialect::Chat, body.as_bytes()).unwrap();
        let input = TurnInput {
            now: Timestamp(pause * turns as u64),
            ..TurnInput::new(body.into(), outline, settings.routes[0].context.clone(), model.clone())
        };
        let mut turn = Turn::new(input, state.clone());
        let outcome = drive_offline(&mut turn, &reader).unwrap();
        let decision = outcome.assessment.decision;
        if let Some(waypoint) = decision.waypoint {
            state.memory.add(waypoint);
        }
        decision.plan.masked.len()
    };
    (1..=words.len()).map(request).collect()
}

#[test]
fn a_breakpoint_can_make_the_cache_live_for_an_hour() {
    let words = [100; 12];
    let all: Vec<usize> = (1..=words.len()).map(|turns| turns.saturating_sub(2)).collect();
    let short = json!({"type": "ephemeral"});
    let long = json!({"type": "ephemeral", "ttl": "1h"});
    let minutes = |minutes: u64| minutes * 60_000;
    for marker in [Marker::Newest, Marker::Inner, Marker::Request] {
        let masked =
            |pause, breakpoint| masked_after(minutes(pause), "explicit", (marker, breakpoint), &words);
        assert_eq!(masked(6, &short), all, "{marker:?}: the cache is cold, so masking costs nothing");
        let paced = masked(6, &long);
        assert!(
            paced.iter().zip(&all).filter(|(one, other)| one < other).count() > 4,
            "{marker:?}: {paced:?}"
        );
        assert_eq!(masked(61, &long), all, "{marker:?}");
    }
    // Other caches do not ask the request.
    let automatic = masked_after(minutes(6), "automatic", (Marker::Newest, &long), &words);
    assert_eq!(automatic, all);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn breakpoints_decide_whether_there_is_a_cache(words in prop::collection::vec(20usize..400, 4..20)) {
        let automatic = masked("automatic", Marker::Nowhere, &words);
        let none = masked("none", Marker::Nowhere, &words);
        for marker in [Marker::Nowhere, Marker::System, Marker::Tools, Marker::Newest, Marker::Request] {
            let expected = match marker {
                Marker::Newest | Marker::Request => &automatic,
                Marker::Inner => unreachable!("it adds a message"),
                // What is cached ends before the first result.
                Marker::Nowhere | Marker::System | Marker::Tools => &none,
            };
            prop_assert_eq!(&masked("explicit", marker, &words), expected, "{:?}", marker);
            // Other caches need no breakpoints.
            prop_assert_eq!(&masked("automatic", marker, &words), &automatic, "{:?}", marker);
            prop_assert_eq!(&masked("none", marker, &words), &none, "{:?}", marker);
        }
        let inner = |cache| masked(cache, Marker::Inner, &words);
        prop_assert_eq!(inner("explicit"), inner("automatic"), "instructions behind messages cache them, too");
        let all: Vec<usize> = (1..=words.len()).map(|turns| turns.saturating_sub(2)).collect();
        prop_assert_eq!(none, all, "without a cache, every result is masked when it leaves the window");
    }
}
