//! Takes calls of the recall tool out of a stream of chat completion chunks.
//!
//! Everything else passes as it comes, until a call of ours begins. If the answer turns out to be nothing but such calls, its end is held
//! back, another answer follows in the same stream, and the client sees one.

use super::recall_answer::{Asked, CallBeside, asked, beside, end_without_calls};
use crate::recall_offer::RECALL_TOOL;
use crate::{Dialect, SideReader, Usage};
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// The longest event that is looked into.
const MAX_EVENT: usize = 4 << 20;

/// A stream for the client, made of one or more of the upstream's.
#[derive(Debug, Default)]
pub struct RecallStream {
    /// The beginning of an event.
    partial: Vec<u8>,
    /// How many answers came before this one.
    round: usize,
    /// What identifies the first answer, and with it the stream.
    id: Option<Value>,
    created: Option<Value>,
    calls: HashMap<u64, Call>,
    /// The number of the client's own calls so far, in all answers.
    own: u64,
    reader: Option<Box<SideReader>>,
    /// Whether calls of ours are still answered.
    is_answered: bool,
    /// Whether the answer has just ended with calls of ours among others.
    is_mixed: bool,
}

/// A call in the answer.
#[derive(Debug)]
enum Call {
    /// Its name is not complete.
    Undecided(Value),
    Recall,
    /// The client's own, with its index in what the client gets.
    Own(u64),
}

impl RecallStream {
    #[must_use]
    pub fn new() -> RecallStream {
        let reader = Some(Box::new(SideReader::new(Dialect::Chat)));
        RecallStream { is_answered: true, reader, ..RecallStream::default() }
    }

    /// Reads bytes of the present answer, and returns what the client gets of them.
    pub fn feed(&mut self, data: &[u8]) -> Vec<u8> {
        if let Some(reader) = &mut self.reader {
            reader.feed(data);
        }
        self.partial.extend_from_slice(data);
        let mut passed = Vec::new();
        let mut from = 0;
        while let Some(end) = event_end(&self.partial, from) {
            let event = self.partial[from..end].to_vec();
            self.pass(&event, &mut passed);
            from = end;
        }
        self.partial.drain(..from);
        // What is no stream of events, or has one that nobody could hold, is not ours to judge.
        if self.partial.len() > MAX_EVENT {
            passed.append(&mut self.partial);
        }
        passed
    }

    /// Ends the present answer. Returns what the model asked for, if that is all it did; otherwise the stream is over.
    pub fn end(&mut self, rest: &mut Vec<u8>) -> Option<(Asked, Option<Usage>)> {
        rest.append(&mut self.partial);
        let asks = self.is_answered && self.only_asks();
        let answer = self.reader.as_ref().filter(|_| asks).map(|reader| reader.answer().clone())?;
        let usage = answer.usage;
        asked(answer).map(|asked| (asked, usage))
    }

    /// Begins the next answer of the same stream. In the last one, calls of ours only disappear.
    pub fn next_answer(&mut self, is_last: bool) {
        self.round += 1;
        self.calls.clear();
        self.partial.clear();
        self.is_answered = !is_last;
        self.reader = Some(Box::new(SideReader::new(Dialect::Chat)));
    }

    /// The calls of ours among others, once: when the answer has ended, and before the client gets its end.
    pub fn take_beside(&mut self) -> Vec<CallBeside> {
        let is_mixed = std::mem::take(&mut self.is_mixed);
        let reader = self.reader.as_ref().filter(|_| is_mixed);
        reader.map(|reader| beside(reader.answer())).unwrap_or_default()
    }

    /// Whether the answer so far has calls of ours, and none of the client's.
    fn only_asks(&self) -> bool {
        let has = |wanted: fn(&Call) -> bool| self.calls.values().any(wanted);
        has(|call| matches!(call, Call::Recall))
            && !has(|call| matches!(call, Call::Own(_) | Call::Undecided(_)))
    }

    fn pass(&mut self, event: &[u8], passed: &mut Vec<u8>) {
        let data = data_of(event);
        let is_plain = self.round == 0 && self.calls.is_empty() && self.id.is_some();
        if is_plain && memchr::memmem::find(&data, b"\"tool_calls\"").is_none() {
            return passed.extend_from_slice(event);
        }
        if data == b"[DONE]" {
            if !(self.is_answered && self.only_asks()) {
                passed.extend_from_slice(event);
            }
            return;
        }
        let Ok(Value::Object(mut chunk)) = serde_json::from_slice(&data) else {
            return passed.extend_from_slice(event);
        };
        match self.filter(&mut chunk) {
            Passed::AsItCame => passed.extend_from_slice(event),
            Passed::Changed => {
                passed.extend_from_slice(format!("data: {}\n\n", Value::Object(chunk)).as_bytes())
            }
            Passed::Nothing => {}
        }
    }

    fn filter(&mut self, chunk: &mut Map<String, Value>) -> Passed {
        let mut is_changed = self.same_stream(chunk);
        let Some(choices) = chunk.get_mut("choices").and_then(Value::as_array_mut) else {
            return if is_changed { Passed::Changed } else { Passed::AsItCame };
        };
        let Some(choice) = choices.first_mut() else {
            // Usage. The client gets that of the last answer.
            return match self.is_answered && self.only_asks() {
                true => Passed::Nothing,
                false if is_changed => Passed::Changed,
                false => Passed::AsItCame,
            };
        };
        let mut says_nothing = false;
        if let Some(delta) = choice.get_mut("delta").and_then(Value::as_object_mut) {
            let before = delta.len();
            if self.filter_calls(delta) {
                is_changed = true;
                says_nothing = !has_text(delta);
            }
            if self.round > 0 && delta.remove("role").is_some() {
                is_changed = true;
                says_nothing = !has_text(delta);
            }
            says_nothing |= before == 0 && self.round > 0;
        }
        let is_end = choice.get("finish_reason").is_some_and(|reason| !reason.is_null());
        self.is_mixed |=
            is_end && !self.only_asks() && self.calls.values().any(|call| matches!(call, Call::Recall));
        if is_end && self.only_asks() {
            if self.is_answered {
                choice["finish_reason"] = Value::Null;
                says_nothing =
                    choice.get("delta").and_then(Value::as_object).is_none_or(|delta| !has_text(delta));
                return if says_nothing { Passed::Nothing } else { Passed::Changed };
            }
            end_without_calls(choice);
            return Passed::Changed;
        }
        match (says_nothing && !is_end, is_changed) {
            (true, _) => Passed::Nothing,
            (false, true) => Passed::Changed,
            (false, false) => Passed::AsItCame,
        }
    }

    /// Gives a later answer the identity of the first one. Returns whether that changes anything.
    fn same_stream(&mut self, chunk: &mut Map<String, Value>) -> bool {
        if self.round == 0 {
            let known = |key: &str| chunk.get(key).cloned();
            // A chunk without an id counts, too: what follows is recognised by there having been one.
            self.id.get_or_insert_with(|| known("id").unwrap_or_default());
            self.created = self.created.take().or_else(|| known("created"));
            return false;
        }
        let first = [("id", self.id.clone()), ("created", self.created.clone())];
        for (key, value) in first {
            if let (Some(value), true) = (value.filter(|value| !value.is_null()), chunk.contains_key(key)) {
                chunk.insert(key.to_owned(), value);
            }
        }
        true
    }

    /// Takes calls of ours out of a delta, and renumbers those of the client. Returns whether that changes anything.
    fn filter_calls(&mut self, delta: &mut Map<String, Value>) -> bool {
        let Some(Value::Array(calls)) = delta.get("tool_calls") else { return false };
        let mut kept = Vec::new();
        let mut is_changed = false;
        for (position, call) in calls.iter().enumerate() {
            let index = call["index"].as_u64().unwrap_or(position as u64);
            match self.filter_call(index, call.clone()) {
                Some(passed) => {
                    is_changed |= passed != *call;
                    kept.push(passed);
                }
                None => is_changed = true,
            }
        }
        if kept.is_empty() {
            delta.remove("tool_calls");
        } else {
            delta.insert("tool_calls".to_owned(), Value::Array(kept));
        }
        is_changed
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
        let name = call["function"]["name"].as_str().unwrap_or_default();
        let is_other = call["type"].as_str().is_some_and(|kind| kind != "function");
        if name == RECALL_TOOL && !is_other {
            self.calls.insert(index, Call::Recall);
            return None;
        }
        if RECALL_TOOL.starts_with(name) && !is_other {
            self.calls.insert(index, Call::Undecided(call));
            return None;
        }
        self.calls.insert(index, Call::Own(self.own));
        call["index"] = json!(self.own);
        self.own += 1;
        Some(call)
    }
}

enum Passed {
    AsItCame,
    Changed,
    Nothing,
}

/// Two deltas of a call as one.
fn joined(before: &Value, next: &Value) -> Value {
    let mut call = before.clone();
    for (key, value) in next.as_object().into_iter().flatten() {
        if key != "function" && !value.is_null() {
            call[key] = value.clone();
        }
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

/// Whether a delta says anything.
fn has_text(delta: &Map<String, Value>) -> bool {
    let is_something =
        |value: &Value| !(value.is_null() || value == "" || value.as_array().is_some_and(Vec::is_empty));
    delta.iter().any(|(key, value)| key != "role" && is_something(value))
}

/// Where the event that begins at `from` ends, its empty line included.
fn event_end(bytes: &[u8], from: usize) -> Option<usize> {
    memchr::memchr_iter(b'\n', &bytes[from..]).map(|at| from + at).find_map(|at| match bytes[at + 1..] {
        [b'\n', ..] => Some(at + 2),
        [b'\r', b'\n', ..] => Some(at + 3),
        _ => None,
    })
}

/// The data of an event.
fn data_of(event: &[u8]) -> Vec<u8> {
    let lines = event.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data:"));
    let lines: Vec<&[u8]> = lines.map(<[u8]>::trim_ascii).collect();
    lines.join(&b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(id: &str, delta: Value, finish: Option<&str>) -> String {
        let chunk = json!({ "id": id, "created": 1, "object": "chat.completion.chunk", "model": "m",
            "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] });
        format!("data: {chunk}\n\n")
    }

    fn call(index: u64, name: &str, arguments: &str) -> Value {
        json!({ "tool_calls": [{ "index": index, "id": format!("c{index}"), "type": "function",
            "function": { "name": name, "arguments": arguments } }] })
    }

    const DONE: &str = "data: [DONE]\n\n";

    /// Feeds an answer in pieces of this length.
    fn fed(stream: &mut RecallStream, answer: &str, step: usize) -> String {
        let passed: Vec<u8> = answer.as_bytes().chunks(step).flat_map(|chunk| stream.feed(chunk)).collect();
        String::from_utf8(passed).unwrap()
    }

    fn asking() -> String {
        [
            chunk("a", json!({ "role": "assistant", "content": "Let me see. " }), None),
            chunk("a", call(0, RECALL_TOOL, ""), None),
            chunk(
                "a",
                json!({ "tool_calls": [{ "index": 0, "function": { "arguments": "{\"ref\":1}" } }] }),
                None,
            ),
            chunk("a", json!({}), Some("tool_calls")),
            "data: {\"id\":\"a\",\"choices\":[],\"usage\":{\"prompt_tokens\":7}}\n\n".to_owned(),
            DONE.to_owned(),
        ]
        .concat()
    }

    fn said(stream: &str) -> String {
        let chunks = stream.split("\n\n").filter_map(|event| event.strip_prefix("data: "));
        let chunks = chunks.filter_map(|data| serde_json::from_str::<Value>(data).ok());
        chunks
            .map(|chunk| chunk["choices"][0]["delta"]["content"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    #[test]
    fn an_answer_without_calls_passes_unchanged() {
        let answer = [
            ": hi\n\n".to_owned(),
            chunk("a", json!({ "role": "assistant", "content": "" }), None),
            chunk("a", json!({ "content": "42", "tool_calls": null }), None),
            chunk("a", json!({}), Some("stop")),
            DONE.to_owned(),
        ];
        for step in [1, 7, 10_000] {
            let mut stream = RecallStream::new();
            assert_eq!(fed(&mut stream, &answer.concat(), step), answer.concat());
            assert_eq!(stream.end(&mut Vec::new()), None);
        }
    }

    #[test]
    fn answers_to_recalls_are_one_stream() {
        for step in [1, 11, 10_000] {
            let mut stream = RecallStream::new();
            let first = fed(&mut stream, &asking(), step);
            assert_eq!(first, chunk("a", json!({ "role": "assistant", "content": "Let me see. " }), None));
            let (asked, usage) = stream.end(&mut Vec::new()).unwrap();
            assert_eq!(
                (asked.calls[0].id.as_str(), asked.calls[0].arguments.as_str()),
                ("c0", "{\"ref\":1}")
            );
            assert_eq!(usage.unwrap().prompt_tokens, 7);
            stream.next_answer(false);
            let answer = [
                chunk("b", json!({ "role": "assistant", "content": "" }), None),
                chunk("b", json!({ "content": "It is 42." }), None),
                chunk("b", json!({}), Some("stop")),
                DONE.to_owned(),
            ];
            let rest = fed(&mut stream, &answer.concat(), step);
            assert_eq!(said(&(first + &rest)), "Let me see. It is 42.");
            assert!(!rest.contains("role") && !rest.contains("\"b\"") && rest.ends_with(DONE), "{rest}");
            assert_eq!(rest.matches("\"finish_reason\":\"stop\"").count(), 1);
            assert_eq!(stream.end(&mut Vec::new()), None);
        }
    }

    #[test]
    fn the_clients_own_calls_are_numbered_densely() {
        let answer = [
            chunk("a", json!({ "role": "assistant", "content": null }), None),
            chunk("a", call(0, RECALL_TOOL, "{}"), None),
            chunk("a", call(1, "ls", ""), None),
            chunk("a", call(2, RECALL_TOOL, "{}"), None),
            chunk("a", call(3, "tide", ""), None),
            chunk(
                "a",
                json!({ "tool_calls": [{ "index": 3, "function": { "name": "_table", "arguments": "{}" } }] }),
                None,
            ),
            chunk("a", json!({ "tool_calls": [{ "index": 1, "function": { "arguments": "{}" } }] }), None),
            chunk("a", json!({}), Some("tool_calls")),
            DONE.to_owned(),
        ];
        let mut stream = RecallStream::new();
        let passed = fed(&mut stream, &answer.concat(), 13);
        assert!(!passed.contains(RECALL_TOOL) && passed.ends_with(DONE), "{passed}");
        let mut reader = SideReader::new(Dialect::Chat);
        reader.feed(passed.as_bytes());
        let calls: Vec<_> = reader
            .answer()
            .tool_calls
            .iter()
            .map(|call| (&*call.name, &*call.arguments, &*call.id))
            .collect();
        assert_eq!(calls, [("ls", "{}", "c1"), ("tide_table", "{}", "c3")]);
        assert_eq!(stream.end(&mut Vec::new()), None);
    }

    #[test]
    fn the_last_answer_asks_in_vain() {
        let mut stream = RecallStream::new();
        fed(&mut stream, &asking(), 100);
        stream.next_answer(true);
        let passed = fed(&mut stream, &asking(), 100);
        assert!(passed.contains("\"finish_reason\":\"stop\"") && passed.ends_with(DONE), "{passed}");
        assert!(!passed.contains("tool_calls") && passed.contains("usage"), "{passed}");
        assert_eq!(stream.end(&mut Vec::new()), None);
    }
}
