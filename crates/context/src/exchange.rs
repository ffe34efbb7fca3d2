//! What the model has recalled, put back where it stood: the client does not know of it and does not send it.
//!
//! So each request continues the one before it as the provider has it in its cache, and the model knows what it has read. An exchange is
//! found by the digest of the conversation at the message that it follows, what was put back before included. Texts are looked up again
//! instead of stored: the client sends the originals.

use crate::RecallRequest;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashMap;
use tidegate_engine::{Digest, Role};
use tidegate_wire::{CallBeside, Dialect, Outline, Reader, RecallCall, chain};

/// Everything that the model has recalled for one answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// What came before the answer.
    rounds: Vec<Round>,
    /// What was called in the answer, beside calls of the client's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    beside: Vec<Beside>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Round {
    message: String,
    results: Vec<Recalled>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Beside {
    at: usize,
    call: String,
    /// The ids of the client's own calls in the same answer. Another answer, as a retry may get, has others.
    own: Vec<String>,
    result: Recalled,
}

/// A call and its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recalled {
    id: String,
    arguments: String,
    /// `None` if an original answers the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// How much of the original there was room for, if not for all that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    most: Option<usize>,
}

impl Recalled {
    /// `text` is the answer to a call that no original answers.
    #[must_use]
    pub fn new(call: &RecallCall, text: Option<String>) -> Recalled {
        Recalled { id: call.id.clone(), arguments: call.arguments.clone(), text, most: None }
    }

    /// An answer from an original, with at most this much of it.
    pub(crate) fn within(call: &RecallCall, most: Option<usize>) -> Recalled {
        Recalled { most, ..Recalled::new(call, None) }
    }

    /// The message with the result, given the messages before it. `None` if the original is not among them.
    fn message(&self, before: &[(Digest, Cow<'_, [u8]>)]) -> Option<Vec<u8>> {
        let text = match &self.text {
            Some(text) => text.clone(),
            None => {
                let request = RecallRequest::read(&self.arguments).ok()?;
                let (_, raw) = before.iter().find(|(digest, _)| request.reference.is_of(*digest))?;
                let view = Dialect::Chat.read_message(raw).ok()?;
                match self.most {
                    Some(most) => request.answer_within(&view.text(), most),
                    None => request.answer(&view.text()),
                }
            }
        };
        let call = RecallCall { id: self.id.clone(), arguments: String::new() };
        Some(call.result(&text))
    }
}

impl Exchange {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rounds.is_empty() && self.beside.is_empty()
    }

    /// Adds an answer that did nothing but recall.
    pub fn add(&mut self, message: &[u8], results: Vec<Recalled>) {
        self.rounds.push(Round { message: String::from_utf8_lossy(message).into_owned(), results });
    }

    /// Adds a call that the client did not get, among others that it did.
    pub fn add_beside(&mut self, beside: CallBeside, result: Recalled) {
        self.beside.push(Beside { at: beside.at, call: beside.json, own: beside.own, result });
    }
}

/// The most exchanges that follow each other at one message: retries of an answer that broke off.
const MAX_REPEATED: usize = 16;

/// Puts exchanges back into a request, each by the digest of the conversation at the message that it follows. `None` if there is nothing to
/// put back.
#[must_use]
pub fn put_back(
    reader: &Reader,
    body: &Bytes,
    outline: &Outline,
    exchanges: &HashMap<Digest, Exchange>,
) -> Option<Bytes> {
    let gists = reader.gists(body, outline).filter(|_| outline.dialect == Dialect::Chat)?;
    let mut writer =
        Writer { body, written: Vec::new(), copied: 0, seen: Vec::new(), digest: Digest::default() };
    let mut beside: &[Beside] = &[];
    for (index, (span, (role, canonical))) in outline.messages.iter().zip(&gists).enumerate() {
        if role.is_instruction() {
            continue;
        }
        let merged = match std::mem::take(&mut beside) {
            [] => None,
            calls if *role == Role::Assistant => {
                with_calls(span.of(body), calls).map(|merged| (merged, calls))
            }
            _ => None,
        };
        if let Some((merged, calls)) = merged {
            writer.replace(span.range(), merged, calls);
            continue;
        }
        writer.see(*canonical, Cow::Borrowed(span.of(body)));
        // Between a call and its results there is room for nothing.
        let next = gists.get(index + 1).map(|(role, _)| *role);
        if matches!(next, Some(Role::Tool)) {
            continue;
        }
        for _ in 0..MAX_REPEATED {
            let Some(exchange) = exchanges.get(&writer.digest) else { break };
            if !exchange.rounds.is_empty() && !writer.insert(span.range().end, &exchange.rounds) {
                break;
            }
            beside = &exchange.beside;
            if exchange.rounds.is_empty() {
                break;
            }
        }
    }
    writer.finish()
}

/// Writes the request with what is put back.
struct Writer<'a> {
    body: &'a Bytes,
    written: Vec<u8>,
    /// How much of the body is in `written`.
    copied: usize,
    /// All messages so far but instructions, each with the digest of the conversation there.
    seen: Vec<(Digest, Cow<'a, [u8]>)>,
    digest: Digest,
}

impl<'a> Writer<'a> {
    fn see(&mut self, canonical: [u8; 32], message: Cow<'a, [u8]>) {
        self.digest = chain(self.digest, &canonical);
        self.seen.push((self.digest, message));
    }

    fn see_own(&mut self, message: Vec<u8>) -> Option<()> {
        let canonical = Dialect::Chat.read_facts(&message).ok()?.canonical;
        self.see(canonical, Cow::Owned(message));
        Some(())
    }

    fn copy(&mut self, to: usize) {
        self.written.extend_from_slice(&self.body[self.copied..to]);
        self.copied = to;
    }

    /// Inserts whole answers and their results behind a message, all of them or none.
    fn insert(&mut self, after: usize, rounds: &[Round]) -> bool {
        let (seen, digest) = (self.seen.len(), self.digest);
        let mut own = Vec::new();
        let inserted = rounds.iter().try_for_each(|round| {
            let mut add = |writer: &mut Self, message: Vec<u8>| {
                own.push(b',');
                own.extend_from_slice(&message);
                writer.see_own(message)
            };
            add(self, round.message.clone().into_bytes())?;
            round.results.iter().try_for_each(|result| {
                let message = result.message(&self.seen)?;
                add(self, message)
            })
        });
        if inserted.is_none() {
            self.seen.truncate(seen);
            self.digest = digest;
            return false;
        }
        self.copy(after);
        self.written.extend_from_slice(&own);
        true
    }

    /// Replaces an answer by one with calls of ours in it, and adds their results.
    fn replace(&mut self, span: std::ops::Range<usize>, merged: Vec<u8>, calls: &[Beside]) {
        let results: Option<Vec<Vec<u8>>> =
            calls.iter().map(|call| call.result.message(&self.seen)).collect();
        let readable = Dialect::Chat.read_facts(&merged).is_ok();
        let Some(results) = results.filter(|_| readable) else {
            // The answer stays as the client has it.
            let raw = self.body.slice(span);
            self.see_own(raw.to_vec());
            return;
        };
        self.copy(span.start);
        self.written.extend_from_slice(&merged);
        self.copied = span.end;
        self.see_own(merged);
        for result in results {
            self.written.push(b',');
            self.written.extend_from_slice(&result);
            self.see_own(result);
        }
    }

    fn finish(mut self) -> Option<Bytes> {
        if self.written.is_empty() {
            return None;
        }
        self.copy(self.body.len());
        Some(self.written.into())
    }
}

/// The answer of a client with calls of ours among its own. `None` if it is not the answer that they stood in.
fn with_calls(raw: &[u8], calls: &[Beside]) -> Option<Vec<u8>> {
    #[derive(Deserialize)]
    struct Message<'a> {
        #[serde(borrow)]
        tool_calls: Vec<&'a RawValue>,
    }
    let own = serde_json::from_slice::<Message<'_>>(raw).ok()?.tool_calls;
    #[derive(Deserialize)]
    struct Call {
        id: String,
    }
    let ids = own.iter().map(|call| serde_json::from_str::<Call>(call.get()).map(|call| call.id));
    let ids: Vec<String> = ids.collect::<Result<_, _>>().ok()?;
    if calls.iter().any(|call| call.own != ids) {
        return None;
    }
    let place = |value: &RawValue| value.get().as_ptr() as usize - raw.as_ptr() as usize;
    let last = own.last().map(|last| place(last) + last.get().len())?;
    let mut merged = Vec::new();
    let mut copied = 0;
    for (before, call) in calls.iter().enumerate() {
        // Those of ours that stand before it are not among the client's.
        match own.get(call.at.checked_sub(before)?) {
            Some(next) => {
                merged.extend_from_slice(&raw[copied..place(next)]);
                copied = place(next);
                merged.extend_from_slice(call.call.as_bytes());
                merged.push(b',');
            }
            None => {
                merged.extend_from_slice(&raw[copied..last]);
                copied = last;
                merged.push(b',');
                merged.extend_from_slice(call.call.as_bytes());
            }
        }
    }
    merged.extend_from_slice(&raw[copied..]);
    Some(merged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};
    use tidegate_engine::Reference;

    const TEXT: &str = "one\ntwo\nthree";

    /// One answer of a model: how many calls of ours each of its rounds has, and then the calls of the answer, which are ours or not.
    type Turn = (Vec<usize>, Vec<bool>);

    /// A conversation as the upstream knows it, as its client does, and what it has recalled.
    #[derive(Default)]
    struct Scene {
        upstream: Vec<Value>,
        client: Vec<Value>,
        digest: Digest,
        exchanges: HashMap<Digest, Exchange>,
        calls: usize,
        reference: Option<Reference>,
    }

    impl Scene {
        fn both(&mut self, message: Value) {
            self.client.push(message.clone());
            self.upstream(message);
        }

        fn upstream(&mut self, message: Value) {
            let canonical = Dialect::Chat.read_facts(message.to_string().as_bytes()).unwrap().canonical;
            self.digest = chain(self.digest, &canonical);
            self.reference.get_or_insert(Reference::of(self.digest));
            self.upstream.push(message);
        }

        fn call(&mut self, name: &str) -> Value {
            self.calls += 1;
            let arguments = match self.reference.filter(|_| !self.calls.is_multiple_of(3)) {
                Some(reference) => json!({ "ref": reference.to_string(), "lines": "2" }),
                None => json!({}),
            };
            let function = json!({ "name": name, "arguments": arguments.to_string() });
            json!({ "id": format!("c{}", self.calls), "type": "function", "function": function })
        }

        /// A call of ours, what is kept of it, and the message that answers it.
        fn recall(&mut self) -> (Value, Recalled, Value) {
            let made = self.call("tidegate_recall");
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            let call = RecallCall { id: text(&made["id"]), arguments: text(&made["function"]["arguments"]) };
            let is_found = RecallRequest::read(&call.arguments).is_ok();
            let literal = (!is_found).then(|| "no such thing".to_owned());
            let result = call.result(literal.as_deref().unwrap_or("two"));
            (made, Recalled::new(&call, literal), serde_json::from_slice(&result).unwrap())
        }

        fn turn(&mut self, (rounds, answer): &Turn) {
            let (anchor, mut exchange) = (self.digest, Exchange::default());
            for count in rounds {
                let recalls: Vec<_> = (0..*count).map(|_| self.recall()).collect();
                let calls: Vec<&Value> = recalls.iter().map(|(call, ..)| call).collect();
                let message = json!({ "role": "assistant", "content": null, "tool_calls": calls });
                let kept = recalls.iter().map(|(_, kept, _)| kept.clone()).collect();
                exchange.add(message.to_string().as_bytes(), kept);
                self.upstream(message);
                recalls.into_iter().for_each(|(.., result)| self.upstream(result));
            }
            if answer.contains(&true) {
                self.mixed(answer, &mut exchange);
            } else {
                self.both(json!({ "role": "assistant", "content": format!("answer {}", self.calls) }));
                self.both(json!({ "role": "user", "content": "and then?" }));
            }
            if exchange != Exchange::default() {
                self.exchanges.insert(anchor, exchange);
            }
        }

        /// An answer with calls of which some are the client's.
        fn mixed(&mut self, answer: &[bool], exchange: &mut Exchange) {
            let (mut all, mut own, mut results) = (Vec::new(), Vec::new(), Vec::new());
            let mut kept_beside = Vec::new();
            for (at, is_own) in answer.iter().enumerate() {
                if *is_own {
                    let call = self.call("look");
                    own.push(call.clone());
                    all.push(call);
                    continue;
                }
                let (made, kept, result) = self.recall();
                kept_beside.push((at, made.clone(), kept));
                all.push(made);
                results.push(result);
            }
            let ids: Vec<String> =
                own.iter().map(|call: &Value| call["id"].as_str().unwrap().to_owned()).collect();
            for (at, made, kept) in kept_beside {
                let call = RecallCall { id: String::new(), arguments: String::new() };
                let own = ids.clone();
                exchange.add_beside(CallBeside { at, call, json: made.to_string(), own }, kept);
            }
            let message =
                |calls: &[Value]| json!({ "role": "assistant", "content": null, "tool_calls": calls });
            self.client.push(message(&own));
            self.upstream(message(&all));
            results.into_iter().for_each(|result| self.upstream(result));
            for call in own {
                self.both(json!({ "role": "tool", "tool_call_id": call["id"], "content": "done" }));
            }
        }
    }

    proptest! {
        /// The upstream sees the conversation as it was, whatever stood beside what.
        #[test]
        fn what_is_put_back_is_what_was_there(
            turns in prop::collection::vec((prop::collection::vec(1usize..3, 0..3), prop::collection::vec(any::<bool>(), 0..5)), 1..6),
        ) {
            let mut scene = Scene::default();
            scene.both(json!({ "role": "user", "content": TEXT }));
            turns.iter().for_each(|turn| scene.turn(turn));
            let reader = Reader::default();
            let body = |messages: &[Value]| Bytes::from(json!({ "messages": messages }).to_string());
            let sent = body(&scene.client);
            let outline = reader.outline(Dialect::Chat, &sent).unwrap();
            // What is stored is text.
            let stored = scene.exchanges.iter().map(|(end, exchange)| {
                let text = serde_json::to_string(exchange).unwrap();
                (*end, serde_json::from_str(&text).unwrap())
            });
            let whole = put_back(&reader, &sent, &outline, &stored.collect()).unwrap_or(sent);
            let whole: Value = serde_json::from_slice(&whole).unwrap();
            prop_assert_eq!(whole["messages"].as_array().unwrap(), &scene.upstream);
        }
    }

    #[test]
    fn another_answer_has_other_calls() {
        let mut scene = Scene::default();
        scene.both(json!({ "role": "user", "content": TEXT }));
        scene.turn(&(vec![], vec![false, true]));
        let other = scene.client[1]["tool_calls"][0]["id"].as_str().unwrap().to_owned();
        let sent = json!({ "messages": scene.client }).to_string().replace(&other, "another");
        let reader = Reader::default();
        let outline = reader.outline(Dialect::Chat, sent.as_bytes()).unwrap();
        assert_eq!(put_back(&reader, &sent.into(), &outline, &scene.exchanges), None);
    }

    #[test]
    fn a_history_that_was_changed_has_recalled_nothing() {
        let mut scene = Scene::default();
        scene.both(json!({ "role": "user", "content": TEXT }));
        scene.turn(&(vec![1], vec![]));
        scene.client[0]["content"] = "another beginning".into();
        let reader = Reader::default();
        let sent = Bytes::from(json!({ "messages": scene.client }).to_string());
        let outline = reader.outline(Dialect::Chat, &sent).unwrap();
        assert_eq!(put_back(&reader, &sent, &outline, &scene.exchanges), None);
    }
}
