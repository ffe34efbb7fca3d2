//! The reader: what it reports about a request, and that its caches never change the result.

#![allow(clippy::unwrap_used, reason = "a panic in a test is its failure message")]

use tidegate_engine::{Digest, Kind, Role, Tokens};
use tidegate_tokens::{Encoding, ImageRule, count};
use tidegate_wire::{Dialect, Meter, ParsedRequest, ReadOptions, Reader, Unit, chain, split};

const METER: Meter = Meter { encoding: Encoding::O200k, images: ImageRule::DEFAULT, unit: Unit::Tokens };

fn plain() -> ReadOptions<'static> {
    ReadOptions {
        meter: METER,
        user_observations: None,
        excluded_tools: None,
        placeholder: Tokens(10),
        shortening: None,
        untrimmed_tools: None,
        factor: 1.0,
        finds_cuts: true,
        indexes: false,
    }
}

fn read(reader: &Reader, body: &str, options: &ReadOptions<'_>) -> ParsedRequest {
    let outline = reader.outline(Dialect::Chat, body.as_bytes()).unwrap();
    let lookup = reader.look_up(&outline, options);
    reader.read(body.as_bytes(), &outline, options, lookup).unwrap()
}

fn body(messages: &[&str]) -> String {
    format!(r#"{{"model":"gpt-4o","messages":[{}]}}"#, messages.join(","))
}

const CALL: &str = r#"{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"ls","arguments":"{}"}}]}"#;
const RESULT: &str = r#"{"role":"tool","tool_call_id":"a","content":"one two three four five six seven eight nine ten eleven"}"#;
const USER: &str = r#"{"role":"user","content":"OBSERVATION: it is green"}"#;
const SYSTEM: &str = r#"{"role":"system","content":"be brief"}"#;

#[test]
fn a_message_that_was_read_needs_no_more_reading() {
    let reader = Reader::default();
    let body = body(&[SYSTEM, USER, CALL, RESULT]);
    let outline = reader.outline(Dialect::Chat, body.as_bytes()).unwrap();
    assert!(reader.unread_bytes(&outline) > 100);
    read(&reader, &body, &plain());
    assert_eq!(reader.unread_bytes(&outline), 0);
}

#[test]
fn caches_keep_to_their_size() {
    let reader = Reader::with_cache(1 << 20);
    for number in 0..2_000 {
        let message = format!(r#"{{"role":"user","content":"{number} {}"}}"#, "a tide ".repeat(100));
        read(&reader, &body(&[USER, &message]), &plain());
    }
    let bytes = reader.cache_bytes();
    assert!((100_000..2 << 20).contains(&bytes), "{bytes}");
}

#[test]
fn digests_are_those_of_the_chain_whether_cached_or_not() {
    let reader = Reader::default();
    let messages = [SYSTEM, USER, CALL, RESULT, SYSTEM, USER, CALL, RESULT];
    for length in [2, 4, 8, 3, 8, 1, 5] {
        let body = body(&messages[..length]);
        let request = read(&reader, &body, &plain());
        let mut digest = Digest::default();
        let expected = split(Dialect::Chat, body.as_bytes()).unwrap().messages.into_iter().map(|span| {
            let facts = Dialect::Chat.read_facts(span.of(body.as_bytes())).unwrap();
            if !facts.role.is_instruction() {
                digest = chain(digest, &facts.canonical);
            }
            digest
        });
        let found: Vec<Digest> = request.messages.iter().map(|message| message.digest).collect();
        assert_eq!(found, expected.collect::<Vec<_>>(), "{length} messages");
    }
}

#[test]
fn a_branch_has_digests_of_its_own() {
    let reader = Reader::default();
    let other = r#"{"role":"user","content":"something else"}"#;
    let one = read(&reader, &body(&[USER, CALL, RESULT, USER]), &plain());
    let two = read(&reader, &body(&[other, CALL, RESULT, USER]), &plain());
    assert!(one.messages.iter().zip(&two.messages).all(|(one, two)| one.digest != two.digest));
    let edited = read(&reader, &body(&[USER, CALL, other, USER]), &plain());
    assert_eq!(one.messages[1].digest, edited.messages[1].digest);
    assert_ne!(one.messages[3].digest, edited.messages[3].digest);
}

#[test]
fn only_messages_that_are_not_cached_are_read() {
    let reader = Reader::default();
    let first = body(&[USER, CALL]);
    let outline = reader.outline(Dialect::Chat, first.as_bytes()).unwrap();
    assert_eq!(reader.look_up(&outline, &plain()).uncached_bytes, USER.len() + CALL.len());
    read(&reader, &first, &plain());
    let longer = body(&[USER, CALL, RESULT]);
    let outline = reader.outline(Dialect::Chat, longer.as_bytes()).unwrap();
    assert_eq!(reader.look_up(&outline, &plain()).uncached_bytes, RESULT.len());
    // Another vocabulary counts differently, so nothing that was counted by the first is used.
    let estimate = Meter { encoding: Encoding::Estimate, ..METER };
    assert_eq!(
        reader.look_up(&outline, &ReadOptions { meter: estimate, ..plain() }).uncached_bytes,
        longer.len() - bytes_outside_messages(&longer)
    );
}

/// The number of bytes of a body outside its messages.
fn bytes_outside_messages(body: &str) -> usize {
    body.len()
        - split(Dialect::Chat, body.as_bytes())
            .unwrap()
            .messages
            .iter()
            .map(|span| span.range().len())
            .sum::<usize>()
}

#[test]
fn observations_are_tool_results_tagged_messages_and_matching_user_messages() {
    let tagged = r#"{"role":"user","observation":{"type":"tool_output"},"content":"a long output of some tool, really"}"#;
    let body = body(&[USER, tagged, CALL, RESULT]);
    let reader = Reader::default();
    let kinds = |options: &ReadOptions<'_>| -> Vec<Kind> {
        read(&reader, &body, options).messages.iter().map(|message| message.kind).collect()
    };
    use Kind::{Observation, Speech};
    assert_eq!(kinds(&plain()), [Speech, Observation, Speech, Observation]);
    let observes = |text: &str| text.starts_with("OBSERVATION:");
    let by_pattern = ReadOptions { user_observations: Some(("^OBSERVATION:", &observes)), ..plain() };
    assert_eq!(kinds(&by_pattern), [Observation, Observation, Speech, Observation]);
    // A match of one route's pattern does not affect other routes.
    assert_eq!(kinds(&plain()), [Speech, Observation, Speech, Observation]);
}

#[test]
fn a_masked_message_costs_its_frame_and_the_placeholder() {
    let reader = Reader::default();
    let request = read(&reader, &body(&[CALL, RESULT]), &plain());
    let content = count(Encoding::O200k, "one two three four five six seven eight nine ten eleven");
    let result = request.messages[1];
    assert_eq!(result.role, Role::Tool);
    assert_eq!(result.masked, Some(result.tokens.saturating_sub(content) + Tokens(10)));
    assert_eq!(request.messages[0].masked, None);
}

#[test]
fn excluded_tools_are_found_through_their_calls_and_names() {
    let named = r#"{"role":"function","name":"ls","content":"one two three"}"#;
    let excludes = |tool: &str| tool == "ls";
    let options = ReadOptions { excluded_tools: Some(&excludes), ..plain() };
    let reader = Reader::default();
    let request = read(&reader, &body(&[CALL, RESULT, named]), &options);
    assert_eq!(request.messages[1].masked, None);
    assert_eq!(request.messages[2].masked, None);
    let request = read(&reader, &body(&[CALL, RESULT, named]), &plain());
    assert!(request.messages[1].masked.is_some() && request.messages[2].masked.is_some());
}

#[test]
fn the_factor_applies_to_every_count() {
    let reader = Reader::default();
    let body = r#"{"messages":[{"role":"user","content":"hello"}],"tools":[{"type":"function","function":{"name":"f"}}]}"#;
    let once = read(&reader, body, &plain());
    let twice = read(&reader, body, &ReadOptions { factor: 2.0, ..plain() });
    assert_eq!(twice.messages[0].tokens.0, 2 * once.messages[0].tokens.0);
    assert_eq!(twice.fixed.0, 2 * once.fixed.0);
    assert!(once.fixed > Tokens(3), "tool schemas count");
}

#[test]
fn the_first_message_that_is_not_an_instruction_identifies_a_conversation() {
    let reader = Reader::default();
    let opening = |messages: &[&str]| {
        let body = body(messages);
        let outline = reader.outline(Dialect::Chat, body.as_bytes()).unwrap();
        reader.branch_points(body.as_bytes(), &outline).map(|points| points.opening)
    };
    assert_eq!(opening(&[SYSTEM, USER]), opening(&[USER, CALL, RESULT]));
    assert_ne!(opening(&[SYSTEM, USER]), opening(&[SYSTEM, CALL]));
    assert_eq!(opening(&[SYSTEM]), None);
    assert_eq!(opening(&[]), None);
}

#[test]
fn an_invalid_message_is_refused_and_not_cached() {
    let reader = Reader::default();
    let broken = r#"{"messages":[{"role":"user","content":tru}]}"#;
    for _ in 0..2 {
        let outline = reader.outline(Dialect::Chat, broken.as_bytes()).unwrap();
        let lookup = reader.look_up(&outline, &plain());
        assert!(reader.read(broken.as_bytes(), &outline, &plain(), lookup).is_err());
    }
}
