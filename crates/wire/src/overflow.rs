//! Recognises an upstream's error that says that a request is too long for its model.

mod echo;
mod opening;
#[cfg(test)]
mod tests;
mod wording;

pub use opening::{Opening, read_opening};
use serde_json::Value;
use wording::by_text;

/// What an upstream says about a request that is too long for its model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overflow {
    /// The model's limit in tokens; `None` if the error does not name it.
    pub limit: Option<u64>,
    /// The input tokens of the request, as the upstream counted them.
    pub used: Option<Used>,
    /// The words that name the limit, in letters and digits; empty if it stands in a member of its own.
    claim: String,
}

/// A count of input tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Used {
    Exactly(u64),
    /// The upstream stopped counting at its limit.
    AtLeast(u64),
}

impl Overflow {
    /// Whether the words that name the limit are also in the request. Then they may be the client's own, which some servers quote in
    /// their errors, and say nothing about the model.
    ///
    /// This takes time in proportion to the request.
    #[must_use]
    pub fn may_be_quoted_from(&self, request: &[u8]) -> bool {
        !self.claim.is_empty() && echo::contains(request, &self.claim)
    }
}

/// Reads the body of an error response. Returns `None` if it is about anything else.
///
/// Errors about invalid requests quote what the client sent. So the upstream's own message has to begin with a known wording, and a limit
/// is read only where that wording names it, with its unit.
#[must_use]
pub fn read_overflow(status: u16, body: &[u8]) -> Option<Overflow> {
    if !matches!(status, 400 | 413 | 422 | 500) || body.len() > MAX_BODY {
        return None;
    }
    let document: Value = serde_json::from_slice(body).ok()?;
    // Gemini's OpenAI endpoint answers with a list of one.
    let document = document.get(0).unwrap_or(&document);
    read_error(document)
}

/// Longer bodies are not errors about the length.
const MAX_BODY: usize = 64 * 1024;

/// The code of OpenAI and of those who follow it.
const CODE: &str = "context_length_exceeded";

/// Limits outside of this are misread.
const PLAUSIBLE: std::ops::RangeInclusive<u64> = 128..=100_000_000;

fn read_error(document: &Value) -> Option<Overflow> {
    let error = document.get("error").filter(|error| !error.is_null()).unwrap_or(document);
    // OpenRouter passes the error of the provider behind it as a text in its own, which says nothing.
    if let Some(raw) = error.pointer("/metadata/raw").and_then(Value::as_str) {
        return match serde_json::from_str::<Value>(raw) {
            Ok(inner) if inner.is_object() && inner.pointer("/error/metadata/raw").is_none() => {
                read_error(&inner)
            }
            _ => by_text(raw),
        };
    }
    if let Some(overflow) = by_members(error) {
        return Some(overflow);
    }
    let text = [error.get("message"), Some(error), document.get("message"), document.get("detail")];
    let message = text.into_iter().flatten().find_map(Value::as_str)?;
    let is_code = ["code", "type"].iter().any(|key| error.get(key).is_some_and(|code| code == CODE));
    by_text(message).or_else(|| is_code.then(Overflow::default))
}

/// llama.cpp gives the figures as members.
fn by_members(error: &Value) -> Option<Overflow> {
    let is_llama = error.get("type").is_some_and(|kind| kind == "exceed_context_size_error");
    is_llama.then(|| Overflow {
        limit: error.get("n_ctx").and_then(Value::as_u64).filter(|limit| PLAUSIBLE.contains(limit)),
        used: error.get("n_prompt_tokens").and_then(Value::as_u64).map(Used::Exactly),
        claim: String::new(),
    })
}
