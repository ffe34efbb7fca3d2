//! Compares a forwarded request with the client's, item by item and byte by byte.

use crate::spelling::Spelling;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::HashMap;

const PLACEHOLDER: &str = "[OMITTED_OBSERVATION";

/// The items of a request, and the bytes around them.
pub(crate) struct Items<'a> {
    pub(crate) body: &'a [u8],
    pub(crate) before: &'a str,
    pub(crate) items: Vec<&'a str>,
    pub(crate) behind: &'a str,
}

/// What became of an item of the client's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Kept,
    /// A result, or one of several in it, is a placeholder.
    Masked,
    /// Texts of ours were added to it.
    Extended,
    Removed,
}

impl<'a> Items<'a> {
    pub(crate) fn of(spelling: Spelling, body: &'a [u8]) -> Items<'a> {
        let text = std::str::from_utf8(body).unwrap();
        let array = match spelling {
            Spelling::Chat | Spelling::Messages | Spelling::Claude => member(text, "messages"),
            Spelling::Responses => member(text, "input"),
        };
        let items = elements(array.unwrap());
        let (first, last) = (items[0], items[items.len() - 1]);
        let at = |part: &str| part.as_ptr() as usize - text.as_ptr() as usize;
        Items { body, before: &text[..at(first)], behind: &text[at(last) + last.len()..], items }
    }
}

/// Tells what became of each item that was sent, and fails with an item that is neither the client's nor a text of ours, or is out of
/// order.
pub(crate) fn fates(
    spelling: Spelling,
    sent: &Items<'_>,
    forwarded: &Items<'_>,
) -> Result<Vec<Fate>, String> {
    let mut fates = vec![Fate::Removed; sent.items.len()];
    let known: HashMap<&str, usize> = sent.items.iter().enumerate().map(|(at, item)| (*item, at)).collect();
    let masked_from = |item: &str| {
        let is_masked = |own: &str| masked(spelling, own, item).is_some_and(|masked| masked == item);
        item.contains(PLACEHOLDER).then(|| sent.items.iter().position(|own| is_masked(own))).flatten()
    };
    let place = |item: &&str| match known.get(item) {
        Some(at) => Some((*at, Fate::Kept)),
        None => masked_from(item).map(|at| (at, Fate::Masked)),
    };
    let places: Vec<Option<(usize, Fate)>> = forwarded.items.iter().map(place).collect();
    let mut from = 0;
    for (index, place) in places.iter().enumerate() {
        let item = forwarded.items[index];
        if let Some((at, fate)) = *place {
            if at < from {
                return Err(item.to_owned());
            }
            (fates[at], from) = (fate, at + 1);
            continue;
        }
        if !is_users(item) {
            return Err(item.to_owned());
        }
        // A summary may quote a message, so only those are looked at that can stand here.
        let to = places[index..].iter().flatten().next().map_or(sent.items.len(), |(at, _)| *at);
        let is_extended = |at: &usize| {
            let own = sent.items[*at];
            is_users(own) && texts(own).iter().all(|text| item.contains(text))
        };
        if let Some(at) = (from..to).find(is_extended) {
            (fates[at], from) = (Fate::Extended, at + 1);
        }
    }
    Ok(fates)
}

/// What was sent, with the placeholders of the forwarded item in place of its results.
fn masked(spelling: Spelling, sent: &str, item: &str) -> Option<String> {
    // Most items differ before their contents begin.
    if sent.get(..24) != item.get(..24) {
        return None;
    }
    match spelling {
        Spelling::Chat => with_placeholder(sent, item, "content"),
        Spelling::Responses => with_placeholder(sent, item, "output"),
        Spelling::Messages | Spelling::Claude => {
            let (blocks, others) = (elements(member(sent, "content")?), elements(member(item, "content")?));
            let mut masked = String::new();
            let mut from = 0;
            for (block, other) in blocks.iter().zip(&others).filter(|(block, other)| block != other) {
                let start = block.as_ptr() as usize - sent.as_ptr() as usize;
                masked.push_str(&sent[from..start]);
                masked.push_str(&with_placeholder(block, other, "content")?);
                from = start + block.len();
            }
            Some(masked + &sent[from..])
        }
    }
}

/// An object with the value of a member replaced by that of another object, if that is a placeholder.
fn with_placeholder(object: &str, other: &str, name: &str) -> Option<String> {
    let (old, new) = (member(object, name)?, member(other, name)?);
    let start = old.as_ptr() as usize - object.as_ptr() as usize;
    let is_placeholder = serde_json::from_str::<String>(new).is_ok_and(|text| text.starts_with(PLACEHOLDER));
    let keeps_parts = elements(new).len() == 1 && new.contains(PLACEHOLDER);
    (is_placeholder || keeps_parts)
        .then(|| format!("{}{new}{}", &object[..start], &object[start + old.len()..]))
}

fn member<'a>(object: &'a str, name: &str) -> Option<&'a str> {
    let members: HashMap<String, &'a RawValue> = serde_json::from_str(object).ok()?;
    members.get(name).map(|value| value.get())
}

/// The elements of an array; none if it is none.
fn elements(array: &str) -> Vec<&str> {
    let elements: Vec<&RawValue> = serde_json::from_str(array).unwrap_or_default();
    elements.into_iter().map(RawValue::get).collect()
}

fn is_users(item: &str) -> bool {
    member(item, "role") == Some("\"user\"")
}

/// The texts of a message, and the calls that it answers, as they are spelled.
fn texts(item: &str) -> Vec<&str> {
    let Some(content) = member(item, "content") else { return Vec::new() };
    if content.starts_with('"') {
        return vec![content.trim_matches('"')];
    }
    let own = |block| member(block, "tool_use_id").or(member(block, "text"));
    elements(content).into_iter().filter_map(own).map(|text| text.trim_matches('"')).collect()
}

/// The rules of chat completions: each result directly follows its call, and each call has its results.
#[track_caller]
pub(crate) fn assert_valid_chat(request: &Value) {
    let mut open: Vec<&str> = Vec::new();
    for message in request["messages"].as_array().unwrap() {
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap();
            let at = open.iter().position(|call| *call == id).expect("a result without its call");
            open.remove(at);
            continue;
        }
        assert!(open.is_empty(), "calls without results: {open:?}");
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        open.extend(calls.map(|call| call["id"].as_str().unwrap()));
        assert!(!message["content"].is_null() || !open.is_empty(), "an empty message");
    }
    assert!(open.is_empty(), "calls without results: {open:?}");
}
