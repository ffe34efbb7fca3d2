//! Tells calls of the recall tool in a stream from the client's own, delta by delta.

use crate::recall_offer::RECALL_TOOL;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The calls of an answer, as far as they have arrived.
#[derive(Debug, Default)]
pub(super) struct RecallCalls {
    calls: BTreeMap<u64, Call>,
    /// The number of the client's own calls so far, in all answers.
    own: u64,
}

#[derive(Debug)]
enum Call {
    /// Its name so far begins like ours, or is ours, and can still go on. Nothing of it has reached the client.
    Undecided(Value),
    Recall,
    /// The client's own, with its index in what the client gets.
    Own(u64),
}

impl RecallCalls {
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Whether there are calls of ours, and none of the client's.
    pub(super) fn are_recalls(&self) -> bool {
        !self.calls.is_empty() && self.calls.values().all(|call| matches!(call, Call::Recall))
    }

    /// Begins the next answer of the same stream.
    pub(super) fn next_answer(&mut self) {
        self.calls.clear();
    }

    /// Takes calls of ours out of a delta, and numbers those of the client densely. Returns whether that changes anything.
    pub(super) fn filter(&mut self, delta: &mut Map<String, Value>) -> bool {
        let Some(Value::Array(calls)) = delta.get("tool_calls") else { return false };
        let mut kept = Vec::new();
        for (position, call) in calls.iter().enumerate() {
            if !call.is_object() {
                kept.push(call.clone());
                continue;
            }
            let index = call["index"].as_u64().unwrap_or(position as u64);
            if !self.calls.contains_key(&index) {
                // One call follows another, so the name of the last one is complete.
                kept.extend(self.complete());
            }
            kept.extend(self.filter_call(index, call.clone()));
        }
        let is_changed = kept != *calls;
        if kept.is_empty() {
            delta.remove("tool_calls");
        } else {
            delta.insert("tool_calls".to_owned(), Value::Array(kept));
        }
        is_changed
    }

    /// Decides what is undecided, because no name goes on. Returns the client's own calls that were held back.
    pub(super) fn complete(&mut self) -> Vec<Value> {
        let RecallCalls { calls, own } = self;
        let decide = |call: &mut Call| {
            let Call::Undecided(so_far) = call else { return None };
            let held = so_far.take();
            let (decided, passed) = decided(held, own);
            *call = decided;
            passed
        };
        calls.values_mut().filter_map(decide).collect()
    }

    fn filter_call(&mut self, index: u64, mut call: Value) -> Option<Value> {
        match self.calls.get(&index) {
            Some(Call::Recall) => return None,
            Some(Call::Own(number)) => {
                call["index"] = json!(number);
                return Some(call);
            }
            Some(Call::Undecided(so_far)) => call = joined(so_far, &call),
            None => {}
        }
        if can_become_ours(&call) {
            self.calls.insert(index, Call::Undecided(call));
            return None;
        }
        let (decided, passed) = decided(call, &mut self.own);
        self.calls.insert(index, decided);
        passed
    }
}

/// Whose a call is whose name is complete, and what the client gets of it.
fn decided(mut call: Value, own: &mut u64) -> (Call, Option<Value>) {
    if is_function(&call) && name(&call) == RECALL_TOOL {
        return (Call::Recall, None);
    }
    let number = *own;
    *own += 1;
    call["index"] = json!(number);
    (Call::Own(number), Some(call))
}

/// Whether it depends on what follows whose a call is. Arguments follow the name, so once they have begun, the name is complete.
fn can_become_ours(call: &Value) -> bool {
    let has_arguments = call["function"]["arguments"].as_str().is_some_and(|text| !text.is_empty());
    is_function(call) && !has_arguments && RECALL_TOOL.starts_with(name(call))
}

fn name(call: &Value) -> &str {
    call["function"]["name"].as_str().unwrap_or_default()
}

fn is_function(call: &Value) -> bool {
    call["type"].as_str().is_none_or(|kind| kind == "function")
}

/// Two deltas of a call as one.
fn joined(before: &Value, next: &Value) -> Value {
    let mut call = before.clone();
    for (key, value) in next.as_object().into_iter().flatten() {
        if key != "function" && !value.is_null() {
            call[key] = value.clone();
        }
    }
    if !call["function"].is_object() {
        call["function"] = json!({});
    }
    for part in ["name", "arguments"] {
        let text = |call: &Value| call["function"][part].as_str().unwrap_or_default().to_owned();
        let both = text(before) + &text(next);
        if !both.is_empty() || next["function"][part].is_string() {
            call["function"][part] = Value::from(both);
        }
    }
    call
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The deltas of a call whose name and arguments arrive in pieces, the name in these.
    fn deltas(index: u64, name: &[&str], arguments: &[&str]) -> Vec<Value> {
        let first = json!({ "index": index, "id": format!("c{index}"), "type": "function",
            "function": { "name": name[0], "arguments": "" } });
        let rest = name[1..].iter().map(|name| json!({ "index": index, "function": { "name": name } }));
        let said = arguments.iter().map(|text| json!({ "index": index, "function": { "arguments": text } }));
        [first].into_iter().chain(rest).chain(said).collect()
    }

    /// What the client gets of an answer: the name and the arguments of each of its calls.
    fn passed(deltas: impl IntoIterator<Item = Value>) -> (Vec<(String, String)>, RecallCalls) {
        let mut calls = RecallCalls::default();
        let mut got: Vec<(String, String)> = Vec::new();
        let mut take = |call: &Value| {
            let at = call["index"].as_u64().unwrap() as usize;
            got.resize(got.len().max(at + 1), Default::default());
            got[at].0 += name(call);
            got[at].1 += call["function"]["arguments"].as_str().unwrap_or_default();
        };
        for call in deltas {
            let mut delta = json!({ "tool_calls": [call] }).as_object().unwrap().clone();
            calls.filter(&mut delta);
            delta.get("tool_calls").and_then(Value::as_array).into_iter().flatten().for_each(&mut take);
        }
        calls.complete().iter().for_each(&mut take);
        (got, calls)
    }

    proptest! {
        /// Whatever the names, and however they come: the client gets its own calls whole and in order, and none of ours.
        #[test]
        fn the_client_gets_its_own_calls(
            named in prop::collection::vec((0usize..6, any::<prop::sample::Index>(), 0usize..3), 1..5),
        ) {
            let names = ["t", "tidegate", "tidegate_recall", "tidegate_recall_all", "tidegate_search", "ls"];
            let call = |(index, (name, cut, arguments)): (usize, &(usize, prop::sample::Index, usize))| {
                let (one, other) = names[*name].split_at(cut.index(names[*name].len() + 1));
                let pieces: Vec<&str> = [one, other].into_iter().filter(|piece| !piece.is_empty()).collect();
                deltas(index as u64, &pieces, &["{\"of\":", "1}"][..*arguments])
            };
            let (got, calls) = passed(named.iter().enumerate().flat_map(call));
            let own = named.iter().filter(|(name, ..)| names[*name] != RECALL_TOOL);
            let expected: Vec<(String, String)> = own
                .map(|(name, _, arguments)| (names[*name].to_owned(), ["{\"of\":", "1}"][..*arguments].concat()))
                .collect();
            prop_assert_eq!(calls.are_recalls(), expected.is_empty());
            prop_assert_eq!(got, expected);
        }
    }

    #[test]
    fn calls_can_be_interleaved() {
        let mut all = deltas(0, &["ls"], &["{}"]);
        all.extend(deltas(1, &["tide"], &[]));
        all.push(json!({ "index": 0, "function": { "arguments": " " } }));
        all.push(json!({ "index": 1, "function": { "name": "_table", "arguments": "{}" } }));
        let (got, _) = passed(all);
        let text = |name: &str, arguments: &str| (name.to_owned(), arguments.to_owned());
        assert_eq!(got, [text("ls", "{} "), text("tide_table", "{}")]);
    }

    #[test]
    fn another_kind_of_tool_is_not_ours() {
        let custom = json!({ "index": 0, "id": "c", "type": "custom", "custom": { "name": RECALL_TOOL, "input": "" } });
        assert_eq!(passed([custom]).0.len(), 1);
    }
}
