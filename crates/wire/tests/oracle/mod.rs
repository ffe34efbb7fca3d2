//! Checks what must hold for any body, with `serde_json` as the reference.

use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;
use tidegate_wire::{
    Dialect, Edit, MAX_DEPTH, MessageFacts, Outline, OwnText, Placeholder, Side, Unreadable, assemble,
    splice, split,
};

const PLACEHOLDER: &str = "[\"gone\"]";

/// Splits, reads and splices the body, and compares the results with `serde_json`'s. `seed` selects the edits.
pub(crate) fn check(body: &[u8], seed: u64) {
    let ours = read_all(body);
    match (&ours, expected(body)) {
        (Ok((outline, _)), Some(slices)) => {
            let cut: Vec<&[u8]> = outline.messages.iter().map(|span| span.of(body)).collect();
            assert_eq!(cut, slices);
        }
        // Duplicate members are not checked here.
        (Err(Unreadable::Ambiguous(_)), Some(_)) | (Err(_), None) => {}
        (Ok(_), None) => panic!("accepted, but invalid"),
        (Err(error), Some(_)) => panic!("valid, but {error}"),
    }
    if let Ok((outline, facts)) = ours {
        check_splice(body, &outline, &facts, seed);
    }
    check_in(Dialect::Messages, body, seed);
    check_in(Dialect::Responses, body, seed);
}

pub(crate) fn read_all(body: &[u8]) -> Result<(Outline, Vec<MessageFacts>), Unreadable> {
    read_all_in(Dialect::Chat, body)
}

/// Checks in the other dialects what holds without a reference for their messages: what is accepted is valid JSON, and stays valid with
/// as many messages when everything in it is edited.
fn check_in(dialect: Dialect, body: &[u8], seed: u64) {
    let Ok((outline, facts)) = read_all_in(dialect, body) else { return };
    assert!(serde_json::from_slice::<IgnoredAny>(body).is_ok(), "accepted, but invalid");
    let mut edits = Vec::new();
    for (message, facts) in facts.iter().enumerate() {
        if !facts.maskable.is_empty() {
            edits.push(Edit::Mask { message, placeholder: Placeholder::new(PLACEHOLDER) });
        }
        if facts.extendable.is_some() {
            let side = if seed.is_multiple_of(2) { Side::Front } else { Side::Back };
            edits.push(Edit::Extend { message, texts: vec![OwnText::new("\"ours\"", None)], side });
        }
    }
    let edited = assemble(body, &splice(body, &outline, &facts, &edits).unwrap());
    assert!(serde_json::from_slice::<IgnoredAny>(&edited).is_ok(), "edited, and no longer valid");
    let (after, _) = read_all_in(dialect, &edited).unwrap();
    assert_eq!(after.messages.len(), outline.messages.len());
    let without = assemble(body, &splice(body, &outline, &facts, &[]).unwrap());
    assert_eq!(without, body);
}

fn read_all_in(dialect: Dialect, body: &[u8]) -> Result<(Outline, Vec<MessageFacts>), Unreadable> {
    let outline = split(dialect, body)?;
    let read = outline.messages.iter().map(|span| outline.dialect.read_facts(span.of(body)));
    let facts = read.collect::<Result<_, Unreadable>>()?;
    Ok((outline, facts))
}

/// Returns the slices of the messages, or `None` if the body must be refused.
fn expected(body: &[u8]) -> Option<Vec<&[u8]>> {
    let text = std::str::from_utf8(body).ok()?;
    serde_json::from_str::<IgnoredAny>(text).ok()?;
    if depth(body) > MAX_DEPTH {
        return None;
    }
    let members = members(text)?;
    let mut arrays = members.iter().filter(|(key, _)| decoded(key) == "messages");
    let (Some((_, array)), None) = (arrays.next(), arrays.next()) else { return None };
    let messages: Vec<&RawValue> = serde_json::from_str(array).ok()?;
    messages.iter().map(|raw| raw.get().starts_with('{').then(|| raw.get().as_bytes())).collect()
}

fn check_splice(body: &[u8], outline: &Outline, facts: &[MessageFacts], seed: u64) {
    let mut random = Random(seed | 1);
    let mut edits = Vec::new();
    let mut want: Vec<Vec<(String, String)>> = Vec::new();
    let mut untouched = Vec::new();
    let new = bytes::Bytes::from_static(b"{\"new\":[1]}");
    let as_members = |raw: &[u8]| owned(members(std::str::from_utf8(raw).unwrap()).unwrap());
    let mut at = 0;
    while at <= facts.len() {
        if random.below(8) == 0 {
            edits.push(Edit::Insert { before: at, with: new.clone() });
            want.push(as_members(&new));
        }
        let Some(span) = outline.messages.get(at) else { break };
        let raw = span.of(body);
        let run = at..at + 1 + random.below(3).min(facts.len() - at - 1);
        match random.below(6) {
            0 => {
                at = run.end;
                edits.push(Edit::Replace { messages: run, with: new.clone() });
                want.push(as_members(&new));
                continue;
            }
            1 => {
                at = run.end;
                edits.push(Edit::Remove { messages: run });
                continue;
            }
            2 | 3 => {
                let mut members = as_members(raw);
                if !facts[at].maskable.is_empty() {
                    edits.push(Edit::Mask { message: at, placeholder: Placeholder::new(PLACEHOLDER) });
                    let content = members.iter_mut().find(|(key, _)| decoded(key) == "content");
                    content.unwrap().1 = serde_json::to_string(PLACEHOLDER).unwrap();
                }
                if facts[at].tag.is_some() {
                    edits.push(Edit::Untag { message: at });
                    members.retain(|(key, _)| decoded(key) != "observation");
                }
                want.push(members);
            }
            _ => {
                untouched.push((want.len(), raw));
                want.push(as_members(raw));
            }
        }
        at += 1;
    }

    let pieces = splice(body, outline, facts, &edits).unwrap();
    let out = assemble(body, &pieces);
    let after = split(Dialect::Chat, &out).unwrap();
    let array = |outline: &Outline| outline.array.range();
    assert_eq!(out[..array(&after).start], body[..array(outline).start]);
    assert_eq!(out[array(&after).end..], body[array(outline).end..]);
    serde_json::from_slice::<IgnoredAny>(&out).unwrap();
    let got: Vec<_> = after.messages.iter().map(|span| as_members(span.of(&out))).collect();
    assert_eq!(got, want);
    for (index, raw) in untouched {
        assert_eq!(after.messages[index].of(&out), raw);
    }
    if edits.is_empty() {
        assert_eq!(out, body);
        assert_eq!(pieces.len(), 1);
    }
}

fn owned(members: Vec<(&str, &str)>) -> Vec<(String, String)> {
    members.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// Decodes a raw key. One that cannot be decoded is none that has a meaning.
fn decoded(key: &str) -> String {
    serde_json::from_str(key).unwrap_or_default()
}

/// Returns the raw keys and values of an object.
fn members(text: &str) -> Option<Vec<(&str, &str)>> {
    struct Members;
    impl<'de> Visitor<'de> for Members {
        type Value = Vec<(&'de str, &'de str)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut members = Vec::new();
            while let Some((key, value)) = map.next_entry::<&RawValue, &RawValue>()? {
                members.push((key.get(), value.get()));
            }
            Ok(members)
        }
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let members = deserializer.deserialize_map(Members).ok()?;
    deserializer.end().ok()?;
    Some(members)
}

/// Returns the nesting depth of a valid document.
fn depth(body: &[u8]) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in body {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_string,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_string => depth -= 1,
            _ => {}
        }
    }
    deepest
}

/// A small random number generator. Its whole state is the seed, so that a failure can be repeated.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}
