//! Reads forwarded requests without using the code under test.

use crate::play::Exchange;
use proptest::prelude::TestCaseError;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::ops::Range;

/// What became of the content of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Shape {
    Whole,
    Trimmed,
    Masked,
}

impl Shape {
    pub(crate) fn is_whole(self) -> bool {
        self == Shape::Whole
    }
}

/// Returns the indexes of the messages of this shape.
pub(crate) fn indexes(shapes: &[Shape], shape: Shape) -> Vec<usize> {
    (0..shapes.len()).filter(|&index| shapes[index] == shape).collect()
}

/// Returns the shape of each message, by comparing both bodies. Fails at the first differing byte that is neither in the content of a
/// masked message, nor in a text of a trimmed one, nor in a tag.
pub(crate) fn shapes(exchange: &Exchange<'_>) -> Result<Vec<Shape>, TestCaseError> {
    let sent = &exchange.body.bytes;
    let own = own_tool(exchange.forwarded())?;
    let forwarded = own.map_or_else(
        || exchange.forwarded().to_vec(),
        |own| [&exchange.forwarded()[..own.start], &exchange.forwarded()[own.end..]].concat(),
    );
    let mut rest = forwarded.as_slice();
    let mut at = 0;
    let mut shapes = Vec::new();
    for (message, place) in exchange.sent.iter().zip(&exchange.body.messages) {
        rest = skip(rest, &sent[at..place.start])?;
        at = place.end;
        let kept = message.spelled.edited(None);
        if rest.starts_with(kept.as_bytes()) {
            rest = &rest[kept.len()..];
            shapes.push(Shape::Whole);
            continue;
        }
        let Some(content) = message.spelled.content.clone() else {
            skip(rest, kept.as_bytes())?;
            continue;
        };
        let around = message.spelled.edited(Some(CONTENT));
        let (before, after) = around.split_once(CONTENT).unwrap();
        rest = skip(rest, before.as_bytes())?;
        let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<Box<RawValue>>();
        let value = values.next().unwrap().map_err(|error| TestCaseError::fail(error.to_string()))?;
        rest = skip(&rest[values.byte_offset()..], after.as_bytes())?;
        shapes.push(shape(
            &message.spelled.text[content],
            value.get(),
            exchange.scenario.policy.placeholder,
        )?);
    }
    let end = skip(rest, &sent[at..])?;
    if !end.is_empty() {
        return Err(TestCaseError::fail(format!("{} extra bytes at the end", end.len())));
    }
    Ok(shapes)
}

/// Returns where the tool is with which the model may ask for what was masked, together with the comma before it. Fails unless it is the
/// last of the tools.
pub(crate) fn own_tool(body: &[u8]) -> Result<Option<Range<usize>>, TestCaseError> {
    let Some(start) = body.windows(OWN_TOOL.len()).position(|bytes| bytes == OWN_TOOL) else {
        return Ok(None);
    };
    let mut values = serde_json::Deserializer::from_slice(&body[start + 1..]).into_iter::<Box<RawValue>>();
    values.next().unwrap().map_err(|error| TestCaseError::fail(error.to_string()))?;
    let end = start + 1 + values.byte_offset();
    let Tools { tools } =
        serde_json::from_slice(body).map_err(|error| TestCaseError::fail(error.to_string()))?;
    let is_last = tools.last().is_some_and(|tool| tool.get().as_bytes() == &body[start + 1..end]);
    if is_last { Ok(Some(start..end)) } else { Err(TestCaseError::fail("our tool is not the last one")) }
}

/// How our tool begins, behind a tool of the client. No generated text has it.
const OWN_TOOL: &[u8] = br#",{"type":"function","function":{"name":"tidegate_recall""#;

#[derive(Deserialize)]
struct Tools {
    tools: Vec<Box<RawValue>>,
}

/// Stands for a content. No generated text has it.
const CONTENT: &str = "\u{1}content\u{1}";

/// What an excerpt says of itself.
const MARKER: &str = "[TRIMMED_OBSERVATION: about ";

fn shape(sent: &str, forwarded: &str, placeholder: &str) -> Result<Shape, TestCaseError> {
    let fail = || TestCaseError::fail(format!("sent: {sent}\nforwarded: {forwarded}"));
    let text = |json: &str| serde_json::from_str::<String>(json).ok();
    if let Some(text) = text(forwarded) {
        let hinted = text.strip_prefix(placeholder);
        if hinted.is_some_and(|hints| hints.is_empty() || hints.starts_with(" [")) {
            return Ok(Shape::Masked);
        }
        return if sent.starts_with('"') && text.contains(MARKER) { Ok(Shape::Trimmed) } else { Err(fail()) };
    }
    // The parts are the same, except for texts.
    let parts = |json| serde_json::from_str::<Vec<Box<RawValue>>>(json).map_err(|_| fail());
    let (sent_parts, parts) = (parts(sent)?, parts(forwarded)?);
    for (before, after) in sent_parts.iter().zip(&parts).filter(|(before, after)| before.get() != after.get())
    {
        let text_of = |part: &str| -> Result<Box<RawValue>, TestCaseError> {
            let Texts { text } = serde_json::from_str(part).map_err(|_| fail())?;
            Ok(text)
        };
        let (old, new) = (text_of(before.get())?, text_of(after.get())?);
        let is_excerpt = text(new.get()).is_some_and(|text| text.contains(MARKER));
        if !is_excerpt || before.get().replacen(old.get(), new.get(), 1) != after.get() {
            return Err(fail());
        }
    }
    if sent_parts.len() == parts.len() { Ok(Shape::Trimmed) } else { Err(fail()) }
}

/// The text of a part.
#[derive(Deserialize)]
struct Texts {
    text: Box<RawValue>,
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
