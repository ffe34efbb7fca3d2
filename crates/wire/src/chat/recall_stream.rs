//! Takes calls of the recall tool out of a stream of chat completion chunks.
//!
//! Everything else passes as it comes, until a call of ours begins. If the answer turns out to be nothing but such calls, its end is held
//! back, another answer follows in the same stream, and the client sees one.

use super::recall_answer::{Asked, CallBeside, asked, beside, end_without_calls, is_cut};
use super::recall_calls::RecallCalls;
use crate::{Dialect, SideReader, Usage};
use serde_json::{Map, Value, json};

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
    /// Whether the client knows who speaks, and whether it has a part of what is said.
    has_role: bool,
    has_text: bool,
    /// Whether the client asked for a form, which what is said in two answers does not have together.
    has_form: bool,
    calls: RecallCalls,
    reader: Option<Box<SideReader>>,
    /// Whether calls of ours are still answered.
    is_answered: bool,
    /// How the present answer has ended, once it has.
    ending: Option<Ending>,
}

/// How an answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// It says what the client gets.
    Said,
    /// It does nothing but ask us.
    Asks,
}

impl RecallStream {
    /// `has_form` is whether the request names the form of its answer.
    #[must_use]
    pub fn new(has_form: bool) -> RecallStream {
        let reader = Some(Box::new(SideReader::new(Dialect::Chat)));
        RecallStream { has_form, is_answered: true, reader, ..RecallStream::default() }
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
        let asks = self.ending == Some(Ending::Asks);
        let answer = self.reader.as_ref().filter(|_| asks).map(|reader| reader.answer().clone())?;
        let usage = answer.usage;
        asked(answer).map(|asked| (asked, usage))
    }

    /// Begins the next answer of the same stream. In the last one, calls of ours only disappear.
    pub fn next_answer(&mut self, is_last: bool) {
        self.round += 1;
        self.calls.next_answer();
        self.partial.clear();
        self.ending = None;
        self.is_answered = !is_last;
        self.reader = Some(Box::new(SideReader::new(Dialect::Chat)));
    }

    /// Whether the answer has ended that the client gets. What was returned last holds its end.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.ending == Some(Ending::Said)
    }

    /// The calls of ours among others, when the answer has ended.
    #[must_use]
    pub fn beside(&self) -> Vec<CallBeside> {
        let reader = self.reader.as_ref().filter(|_| self.is_over() && !self.calls.are_recalls());
        reader.map(|reader| beside(reader.answer())).unwrap_or_default()
    }

    fn pass(&mut self, event: &[u8], passed: &mut Vec<u8>) {
        let data = data_of(event);
        let has = |name: &[u8]| memchr::memmem::find(&data, name).is_some();
        let is_plain = self.round == 0 && self.calls.is_empty() && self.id.is_some();
        if is_plain && self.has_role && !self.has_form && !has(b"\"tool_calls\"") {
            return passed.extend_from_slice(event);
        }
        if data == b"[DONE]" {
            if self.ending != Some(Ending::Asks) {
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
            return match self.ending {
                Some(Ending::Asks) => Passed::Nothing,
                Some(Ending::Said) | None if is_changed => Passed::Changed,
                Some(Ending::Said) | None => Passed::AsItCame,
            };
        };
        let reason = choice.get("finish_reason").and_then(Value::as_str).filter(|reason| !reason.is_empty());
        let reason = reason.map(str::to_owned);
        let (mut says, mut is_less) = (false, false);
        if let Some(delta) = choice.get_mut("delta").and_then(Value::as_object_mut) {
            let was_empty = delta.is_empty();
            let is_filtered = self.calls.filter(delta);
            let has_role = delta.get("role").is_some_and(|role| !role.is_null());
            let is_repeated = has_role && self.has_role && self.round > 0;
            if is_repeated {
                delta.remove("role");
            }
            // The first delta of a call may be the first of all, and whoever speaks is named nowhere else.
            says = has_text(delta) || (has_role && !self.has_role);
            self.has_text |=
                delta.get("content").and_then(Value::as_str).is_some_and(|text| !text.is_empty());
            self.has_role |= has_role;
            is_changed |= is_filtered || is_repeated;
            is_less = is_filtered || is_repeated || (was_empty && self.round > 0);
        }
        let Some(reason) = reason else {
            return match is_changed {
                _ if is_less && !says => Passed::Nothing,
                true => Passed::Changed,
                false => Passed::AsItCame,
            };
        };
        let held = self.calls.complete();
        is_changed |= !held.is_empty();
        add_calls(choice, held);
        let only_asks = self.calls.are_recalls();
        let is_begun = self.has_form && self.has_text;
        if only_asks && self.is_answered && !is_begun && !is_cut(&reason) {
            self.ending = Some(Ending::Asks);
            choice["finish_reason"] = Value::Null;
            return if says { Passed::Changed } else { Passed::Nothing };
        }
        self.ending = Some(Ending::Said);
        if only_asks {
            end_without_calls(choice);
            is_changed = true;
        }
        if is_changed { Passed::Changed } else { Passed::AsItCame }
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
}

enum Passed {
    AsItCame,
    Changed,
    Nothing,
}

/// Adds calls to the delta of a choice, behind its own.
fn add_calls(choice: &mut Value, held: Vec<Value>) {
    if held.is_empty() {
        return;
    }
    let delta = &mut choice["delta"];
    if !delta.is_object() {
        *delta = json!({});
    }
    match delta.get_mut("tool_calls").and_then(Value::as_array_mut) {
        Some(calls) => calls.extend(held),
        None => delta["tool_calls"] = Value::Array(held),
    }
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
mod tests;
