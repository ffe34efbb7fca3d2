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
}

impl Recalled {
    /// `text` is the answer to a call that no original answers.
    #[must_use]
    pub fn new(call: &RecallCall, text: Option<String>) -> Recalled {
        Recalled { id: call.id.clone(), arguments: call.arguments.clone(), text }
    }

    /// The message with the result, given the messages before it. `None` if the original is not among them.
    fn message(&self, before: &[(Digest, Cow<'_, [u8]>)]) -> Option<Vec<u8>> {
        let text = match &self.text {
            Some(text) => text.clone(),
            None => {
                let request = RecallRequest::read(&self.arguments).ok()?;
                let (_, raw) = before.iter().find(|(digest, _)| request.reference.is_of(*digest))?;
                let view = Dialect::Chat.read_message(raw).ok()?;
                request.answer(&view.text())
            }
        };
        let call = RecallCall { id: self.id.clone(), arguments: String::new() };
        Some(call.result(&text))
    }
}

impl Exchange {
    /// Adds an answer that did nothing but recall.
    pub fn add(&mut self, message: &[u8], results: Vec<Recalled>) {
        self.rounds.push(Round { message: String::from_utf8_lossy(message).into_owned(), results });
    }

    /// Adds a call that the client did not get, among others that it did.
    pub fn add_beside(&mut self, beside: CallBeside, result: Recalled) {
        self.beside.push(Beside { at: beside.at, call: beside.json, result });
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
