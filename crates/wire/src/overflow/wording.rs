//! How providers and servers word the error.

use super::{Overflow, PLAUSIBLE, Used};
use crate::overflow::echo;

/// One wording. All texts are in lowercase; `{limit}` and `{used}` are the figures, `{n}` is a number of no interest.
struct Wording {
    /// What the message begins with.
    head: &'static str,
    /// Where the rest of the message gives the tokens of the input: the first of these that it has.
    used: &'static [&'static str],
}

const fn wording(head: &'static str, used: &'static [&'static str]) -> Wording {
    Wording { head, used }
}

/// What gateways and servers put before the message. Names of errors (`ValidationException: `) are recognised by their endings.
const PREFIXES: &[&str] = &[
    "<400> ",
    "internalerror.algo.invalidparameter: ",
    "the model returned the following errors: ",
    "input validation error: ",
    "invalid request: ",
    "invalid params, ",
];

const MAX_PREFIXES: usize = 6;

/// vLLM stops counting where it knows that the prompt is too long.
const AT_LEAST: &str = "prompt contains at least {used}";

/// After OpenAI's opening, which many share.
const AFTER_LENGTH: &[&str] = &[
    AT_LEAST,
    "resulted in {used} tokens",
    "request has {used} input tokens",
    "tokens ({used} ",
    "requested about {used} tokens",
    "requested {used} tokens",
    "tokens: {used} tokens from the input",
];

/// The wordings. Where one begins like another, the longer one stands first.
const WORDINGS: &[Wording] = &[
    // OpenAI, Azure, DeepSeek, vLLM, Groq.
    wording("this model's maximum context length is {limit} tokens", AFTER_LENGTH),
    // OpenRouter.
    wording("this endpoint's maximum context length is {limit} tokens", AFTER_LENGTH),
    // xAI.
    wording("this model's maximum prompt length is {limit} but the request contains {used} tokens", &[]),
    // vLLM.
    wording("the decoder prompt (length {used}) is longer than the maximum model length of {limit}", &[]),
    wording("the prompt (length {used}) is longer than the maximum model length of {limit}", &[]),
    // Anthropic.
    wording("prompt is too long: {used} tokens > {limit} maximum", &[]),
    wording("input length and `max_tokens` exceed context limit: {used} + {n} > {limit},", &[]),
    wording("prompt is too long: ", &[]),
    // Gemini.
    wording("the input token count ({used}) exceeds the maximum number of tokens allowed ({limit})", &[]),
    wording("the input token count exceeds the maximum number of tokens allowed ({limit})", &[]),
    wording("the input token count exceeds the maximum number of tokens allowed {limit}", &[]),
    wording(
        "unable to submit request because the input token count is {used} but model only supports up to {limit}",
        &[],
    ),
    // Mistral.
    wording(
        "prompt contains {used} tokens and {n} draft tokens, too large for model with {limit} maximum context length",
        &[],
    ),
    wording("prompt contains {used} tokens, too large for model with {limit} maximum context length", &[]),
    // SGLang.
    wording(
        "requested token count exceeds the model's maximum context length of {limit} tokens",
        AFTER_LENGTH,
    ),
    wording("input length ({used}) exceeds model's maximum context length ({limit})", &[]),
    wording("the prompt of {used} tokens exceeds the maximum allowed input length of {limit} tokens", &[]),
    wording("the input ({used} tokens) is longer than the model's context length ({limit} tokens)", &[]),
    wording("input length ({used} tokens) exceeds the maximum allowed length ({limit} tokens)", &[]),
    // llama.cpp, its Python server, Ollama, LM Studio.
    wording("request ({used} tokens) exceeds the available context size ({limit} tokens)", &[]),
    wording("the request exceeds the available context size", &[]),
    wording("requested tokens ({used}) exceed context window of {limit}", &[]),
    wording("prompt too long; exceeded max context length", &[]),
    wording("the input length exceeds the context length", &[]),
    wording("input length exceeds the context length", &[]),
    wording("the number of tokens to keep from the initial prompt is greater than the context length", &[]),
    // Text Generation Inference.
    wording("`inputs` tokens + `max_new_tokens` must be <= {limit}.", &["given: {used} `inputs` tokens"]),
    wording("`inputs` must have less than {limit} tokens.", &["given: {used}"]),
    // Bedrock, and gateways that pass its errors on.
    wording("too many input tokens. max input tokens: {limit}, request input token count: {used}", &[]),
    wording("input is too long for requested model", &[]),
    // GitHub Copilot, Moonshot, MiniMax, DashScope.
    wording("prompt token count of {used} exceeds the limit of {limit}", &[]),
    wording("your request exceeded model token limit: {limit} (requested: {used})", &[]),
    wording("your request exceeded model token limit", &[]),
    wording("input token length too long", &[]),
    wording("context window exceeds limit", &[]),
    wording("range of input length should be [1, {limit}]", &[]),
    // OpenAI's newer wording, and Groq's.
    wording("your input exceeds the context window of this model", &[]),
    wording("please reduce the length of the messages", &[]),
    wording("context length exceeded", &[]),
];

/// Reads a message in one of the known wordings.
pub(super) fn by_text(message: &str) -> Option<Overflow> {
    // Other letters have lowercase forms among these.
    let text = message.trim_start().to_ascii_lowercase();
    let text = without_prefixes(&text);
    WORDINGS.iter().find_map(|Wording { head, used }| {
        let Matched { limit, used: in_head, rest, claim } = matched(head, text)?;
        let behind = used.iter().find_map(|tail| {
            let opening = tail.split('{').next().unwrap_or_default();
            let found = matched(tail, &rest[rest.find(opening)?..])?.used?;
            Some(if *tail == AT_LEAST { Used::AtLeast(found) } else { Used::Exactly(found) })
        });
        Some(Overflow {
            limit: limit.filter(|limit| PLAUSIBLE.contains(limit)),
            used: in_head.map(Used::Exactly).or(behind),
            claim,
        })
    })
}

fn without_prefixes(mut text: &str) -> &str {
    for _ in 0..MAX_PREFIXES {
        let literal = PREFIXES.iter().find_map(|prefix| text.strip_prefix(prefix));
        let Some(rest) = literal.or_else(|| without_error_name(text)) else { break };
        text = rest;
    }
    text
}

/// Removes the name of an error, such as `litellm.BadRequestError: ` or `AnthropicException - `.
fn without_error_name(text: &str) -> Option<&str> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_');
    let (name, rest) = text.split_at(text.find(|letter| !is_part(letter))?);
    let rest = rest.strip_prefix(": ").or_else(|| rest.strip_prefix(" - "))?;
    (name.ends_with("error") || name.ends_with("exception")).then_some(rest)
}

/// A text that begins like a template.
struct Matched<'a> {
    limit: Option<u64>,
    used: Option<u64>,
    /// What follows.
    rest: &'a str,
    /// The limit and what stands beside it, in letters and digits.
    claim: String,
}

/// How many letters and digits before the limit belong to a claim. A server can have put the client's words behind its own.
const CLAIM: usize = 16;

fn matched<'a>(template: &str, text: &'a str) -> Option<Matched<'a>> {
    let (mut limit, mut used, mut claim) = (None, None, None);
    let mut pieces = template.split('{');
    let mut rest = text.strip_prefix(pieces.next().unwrap_or_default())?;
    for piece in pieces {
        let (name, literal) = piece.split_once('}')?;
        let at = text.len() - rest.len();
        let (number, behind) = number(rest)?;
        rest = behind.strip_prefix(literal)?;
        match name {
            "limit" => {
                limit = number;
                let before: Vec<u8> = echo::normal(&text.as_bytes()[..at]).collect();
                let mut words = before[before.len().saturating_sub(CLAIM)..].to_vec();
                words.extend(echo::normal(&text.as_bytes()[at..text.len() - rest.len()]));
                claim = String::from_utf8(words).ok();
            }
            "used" => used = number,
            _ => {}
        }
    }
    Some(Matched { limit, used, rest, claim: claim.unwrap_or_default() })
}

/// The number that a text begins with, and what follows; `None` in place of one that is too large.
fn number(text: &str) -> Option<(Option<u64>, &str)> {
    let is_part = |letter: char| letter.is_ascii_digit() || letter == ',';
    let end = text.find(|letter| !is_part(letter)).unwrap_or(text.len());
    // A comma at the end belongs to the sentence.
    let digits = text[..end].trim_end_matches(',');
    if !digits.starts_with(|letter: char| letter.is_ascii_digit()) {
        return None;
    }
    Some((digits.replace(',', "").parse().ok(), &text[digits.len()..]))
}
