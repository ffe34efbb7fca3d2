//! Reads forwarded requests without using the code under test.

use crate::play::Exchange;
use proptest::prelude::TestCaseError;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Returns whether each message was masked, by comparing both bodies. Fails at the first differing byte that is neither in the
/// content of a masked message nor in a tag.
pub(crate) fn masks(exchange: &Exchange<'_>) -> Result<Vec<bool>, TestCaseError> {
    let placeholder = serde_json::to_string(exchange.scenario.policy.placeholder).unwrap();
    let sent = &exchange.body.bytes;
    let mut rest = exchange.forwarded();
    let mut at = 0;
    let mut masks = Vec::new();
    for (message, place) in exchange.sent.iter().zip(&exchange.body.messages) {
        rest = skip(rest, &sent[at..place.start])?;
        let kept = message.spelled.edited(None);
        let masked = message.spelled.content.is_some().then(|| message.spelled.edited(Some(&placeholder)));
        let is_masked = !rest.starts_with(kept.as_bytes());
        rest = skip(rest, if is_masked { masked.unwrap_or(kept) } else { kept }.as_bytes())?;
        masks.push(is_masked);
        at = place.end;
    }
    let end = skip(rest, &sent[at..])?;
    if !end.is_empty() {
        return Err(TestCaseError::fail(format!("{} extra bytes at the end", end.len())));
    }
    Ok(masks)
}

fn skip<'a>(bytes: &'a [u8], expected: &[u8]) -> Result<&'a [u8], TestCaseError> {
    bytes.strip_prefix(expected).ok_or_else(|| {
        let here = &bytes[..bytes.len().min(expected.len() + 20)];
        let (here, expected) = (String::from_utf8_lossy(here), String::from_utf8_lossy(expected));
        TestCaseError::fail(format!("forwarded: {here}\nexpected: {expected}"))
    })
}

/// A request as a provider parses it.
#[derive(Deserialize)]
pub(crate) struct Request {
    pub(crate) messages: Vec<Message>,
}

#[derive(Deserialize)]
pub(crate) struct Message {
    pub(crate) role: String,
    pub(crate) x_serial: usize,
    pub(crate) name: Option<String>,
    pub(crate) content: Option<Box<RawValue>>,
    #[serde(default)]
    pub(crate) tool_calls: Vec<Call>,
    pub(crate) function_call: Option<Box<RawValue>>,
    pub(crate) tool_call_id: Option<String>,
    pub(crate) observation: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
pub(crate) struct Call {
    pub(crate) id: String,
}

impl Request {
    pub(crate) fn read(body: &[u8]) -> Result<Request, TestCaseError> {
        serde_json::from_slice(body)
            .map_err(|error| TestCaseError::fail(format!("{error} in {}", String::from_utf8_lossy(body))))
    }

    /// Returns each call's message index with the index of the message that answers it, or `None` if the call is open.
    pub(crate) fn pairs(&self) -> Vec<(usize, Option<usize>)> {
        let mut pairs = Vec::new();
        for (index, message) in self.messages.iter().enumerate() {
            for call in &message.tool_calls {
                let answers = |(_, other): &(usize, &Message)| other.tool_call_id.as_ref() == Some(&call.id);
                let answer = self.messages.iter().enumerate().skip(index + 1).find(answers);
                pairs.push((index, answer.map(|(at, _)| at)));
            }
        }
        pairs
    }
}
