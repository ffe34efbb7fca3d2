//! The rules of the Responses API for a request, from its public reference.

use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// Asserts that a request follows the API's rules: each result comes after its call, each call has its result unless the provider knows
/// it, each reasoning item is followed by what it led to, and no text is empty.
#[track_caller]
pub fn assert_valid(request: &Value) {
    let Some(items) = request["input"].as_array() else {
        assert!(request["input"].is_string());
        return;
    };
    let is_opaque = items.iter().any(|item| item["type"] == "item_reference");
    let mut open: HashSet<&str> = HashSet::new();
    for (index, item) in items.iter().enumerate() {
        let kind = item["type"].as_str().unwrap_or("message");
        let call_id = item["call_id"].as_str();
        if kind.ends_with("_output") {
            let call = call_id.or(item["id"].as_str()).unwrap();
            assert!(open.remove(call) || is_opaque, "a result without its call at {index}: {item}");
        } else if let Some(call) = call_id {
            assert!(open.insert(call), "two calls with one id at {index}");
        } else if kind == "reasoning" {
            let next = items.get(index + 1).unwrap_or(&Value::Null);
            assert!(is_models(next), "reasoning without what it led to at {index}: {next}");
        } else if kind == "message" {
            assert_ne!(item["content"], "", "an empty message at {index}");
        }
    }
    assert!(open.is_empty(), "calls without results: {open:?}");
}

fn is_models(item: &Value) -> bool {
    item["role"] == "assistant"
        || item["type"].as_str().is_some_and(|kind| kind != "message" && !kind.ends_with("_output"))
}

/// Asserts that a forwarded request keeps together what belongs together in the client's: an item that the provider has named with the
/// reasoning before it, and a reference or an unknown item with its neighbours.
#[track_caller]
pub fn assert_kept_together(sent: &Value, forwarded: &Value) {
    let (Some(sent), Some(forwarded)) = (sent["input"].as_array(), forwarded["input"].as_array()) else {
        return;
    };
    let key = |item: &Value| item["id"].as_str().or(item["call_id"].as_str()).map(str::to_owned);
    let kept: HashSet<String> = forwarded.iter().filter_map(key).collect();
    let mut reasons: HashMap<String, String> = HashMap::new();
    let mut last = None;
    for (index, item) in sent.iter().enumerate() {
        if item["role"] == "user" {
            last = None;
        } else if item["type"] == "reasoning" {
            last = key(item);
        } else if let (Some(id), Some(reasoning)) = (item["id"].as_str(), &last) {
            reasons.insert(id.to_owned(), reasoning.clone());
        }
        if item["type"] == "item_reference" && kept.contains(&key(item).unwrap()) {
            let neighbours = [index.checked_sub(1).map(|before| &sent[before]), sent.get(index + 1)];
            for neighbour in neighbours.into_iter().flatten().filter_map(key) {
                assert!(kept.contains(&neighbour), "{neighbour} was taken from {item}");
            }
        }
    }
    for (item, reasoning) in &reasons {
        assert!(!kept.contains(item) || kept.contains(reasoning), "{item} has lost {reasoning}");
    }
}
