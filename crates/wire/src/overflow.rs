//! Recognises an upstream's error that says that a request is too long for its model.

use serde_json::Value;

/// What an upstream says about a request that is too long for its model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overflow {
    /// The model's limit in tokens; `None` if the error does not name it.
    pub limit: Option<u64>,
    /// The input tokens of the request, as the upstream counted them.
    pub used: Option<Used>,
}

/// A count of input tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Used {
    Exactly(u64),
    /// The upstream stopped counting at its limit.
    AtLeast(u64),
}

/// Reads the body of an error response. Returns `None` if it is about anything else.
///
/// Only the beginning of the upstream's own message is read: errors about invalid requests quote what the client sent.
#[must_use]
pub fn read_overflow(status: u16, body: &[u8]) -> Option<Overflow> {
    if !matches!(status, 400 | 413 | 422 | 500) || body.len() > MAX_BODY {
        return None;
    }
    let document: Value = serde_json::from_slice(body).ok()?;
    // Gemini's OpenAI endpoint answers with a list of one.
    let document = document.get(0).unwrap_or(&document);
    let error = document.get("error").filter(|error| !error.is_null()).unwrap_or(document);
    // OpenRouter passes the error of the provider behind it as a text in its own, which says nothing.
    if let Some(raw) = error.pointer("/metadata/raw").and_then(Value::as_str) {
        return read_overflow(status, raw.as_bytes()).or_else(|| by_text(raw));
    }
    if let Some(overflow) = by_members(error) {
        return Some(overflow);
    }
    let text = [error.get("message"), Some(error), document.get("message"), document.get("detail")];
    let message = text.into_iter().flatten().find_map(Value::as_str)?;
    let is_code = ["code", "type"].iter().any(|key| error.get(key).is_some_and(|code| code == CODE));
    by_text(message).or_else(|| is_code.then(Overflow::default))
}

/// Longer bodies are not errors about the length.
const MAX_BODY: usize = 64 * 1024;

/// The code of OpenAI and of those who follow it.
const CODE: &str = "context_length_exceeded";

/// How far into a message a phrase may begin.
const MAX_OFFSET: usize = 160;

/// Limits outside of this are misread.
const PLAUSIBLE: std::ops::RangeInclusive<u64> = 128..=100_000_000;

/// How a family of servers words the error. All texts are in lowercase.
struct Wording {
    /// What makes it this error.
    phrase: &'static str,
    /// The limit is the first number after this.
    limit: &'static str,
    /// The tokens of the input are the first number after the first of these that is there.
    used: &'static [&'static str],
}

const fn wording(phrase: &'static str, limit: &'static str, used: &'static [&'static str]) -> Wording {
    Wording { phrase, limit, used }
}

/// vLLM stops counting where it knows that the prompt is too long.
const AT_LEAST: &str = "prompt contains at least";

/// The wordings, the most specific first. An empty `limit` means that the error does not name it.
const WORDINGS: &[Wording] = &[
    // OpenAI, Azure, DeepSeek, vLLM, Groq, OpenRouter (which says "This endpoint's").
    wording(
        "maximum context length is",
        "maximum context length is",
        &[AT_LEAST, "resulted in", "request has", "tokens (", "requested about", "requested"],
    ),
    wording("maximum prompt length is", "maximum prompt length is", &["request contains"]),
    // vLLM.
    wording("longer than the maximum model length of", "maximum model length of", &["(length"]),
    // Anthropic.
    wording("prompt is too long:", ">", &["prompt is too long:"]),
    wording("exceed context limit:", ">", &["exceed context limit:"]),
    // Gemini.
    wording("exceeds the maximum number of tokens allowed", "tokens allowed", &["input token count"]),
    wording("but model only supports up to", "only supports up to", &["input token count is"]),
    // Mistral.
    wording("too large for model with", "too large for model with", &["prompt contains"]),
    // SGLang.
    wording("exceeds the model's maximum context length of", "maximum context length of", &["tokens: "]),
    wording("exceeds model's maximum context length", "maximum context length (", &["input length ("]),
    wording("exceeds the maximum allowed input length of", "allowed input length of", &["input length ("]),
    wording("is longer than the model's context length", "model's context length", &["the input ("]),
    wording("exceeds the maximum allowed length", "maximum allowed length", &["input length ("]),
    // llama.cpp, its Python server, Ollama, LM Studio.
    wording("exceeds the available context size", "available context size (", &["request ("]),
    wording("exceed context window of", "exceed context window of", &["requested tokens ("]),
    wording("exceeded max context length", "", &[]),
    wording("input length exceeds the context length", "", &[]),
    wording("is greater than the context length", "", &[]),
    // Text Generation Inference.
    wording("`inputs` tokens + `max_new_tokens` must be <=", "must be <=", &["given:"]),
    wording("`inputs` must have less than", "must have less than", &["given:"]),
    // Bedrock, and gateways that pass its errors on.
    wording("too many input tokens. max input tokens:", "max input tokens:", &["input token count:"]),
    wording("input is too long for requested model", "", &[]),
    // GitHub Copilot, Moonshot, MiniMax, DashScope.
    wording("exceeds the limit of", "exceeds the limit of", &["prompt token count of"]),
    wording("exceeded model token limit", "model token limit:", &["requested:"]),
    wording("input token length too long", "", &[]),
    wording("context window exceeds limit", "", &[]),
    wording("range of input length should be [1,", "should be [1,", &[]),
    // OpenAI's newer wording.
    wording("exceeds the context window", "", &[]),
    wording("reduce the length of the messages", "", &[]),
    wording("context length exceeded", "", &[]),
];

/// llama.cpp gives the figures as members.
fn by_members(error: &Value) -> Option<Overflow> {
    let is_llama = error.get("type").is_some_and(|kind| kind == "exceed_context_size_error");
    is_llama.then(|| Overflow {
        limit: error.get("n_ctx").and_then(Value::as_u64).filter(|limit| PLAUSIBLE.contains(limit)),
        used: error.get("n_prompt_tokens").and_then(Value::as_u64).map(Used::Exactly),
    })
}

fn by_text(message: &str) -> Option<Overflow> {
    let text = message.to_lowercase();
    let begins = |wording: &&Wording| text.find(wording.phrase).is_some_and(|at| at <= MAX_OFFSET);
    let Wording { limit, used, .. } = WORDINGS.iter().find(begins)?;
    let limit = Some(*limit).filter(|mark| !mark.is_empty()).and_then(|mark| number_after(&text, mark));
    Some(Overflow {
        limit: limit.filter(|limit| PLAUSIBLE.contains(limit)),
        used: used.iter().find_map(|mark| {
            let count = number_after(&text, mark)?;
            Some(if *mark == AT_LEAST { Used::AtLeast(count) } else { Used::Exactly(count) })
        }),
    })
}

/// The first number after `mark`, which may be separated from it by a few other characters.
fn number_after(text: &str, mark: &str) -> Option<u64> {
    let rest = text.split_once(mark)?.1;
    let start = rest.find(|letter: char| letter.is_ascii_digit()).filter(|start| *start <= 8)?;
    let digits: String = rest[start..]
        .chars()
        .take_while(|letter| letter.is_ascii_digit() || *letter == ',')
        .filter(char::is_ascii_digit)
        .collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(status: u16, body: &str) -> Option<(Option<u64>, Option<u64>)> {
        let used = |used| match used {
            Used::Exactly(tokens) | Used::AtLeast(tokens) => tokens,
        };
        read_overflow(status, body.as_bytes()).map(|overflow| (overflow.limit, overflow.used.map(used)))
    }

    /// The error in OpenAI's shape.
    fn openai(message: &str) -> String {
        serde_json::json!({"error": {"message": message, "type": "invalid_request_error", "param": "messages", "code": null}})
            .to_string()
    }

    #[test]
    fn every_provider_is_understood() {
        let cases: &[(&str, String, Option<u64>, Option<u64>)] = &[
            ("OpenAI", openai("This model's maximum context length is 128000 tokens. However, your messages resulted in 192041 tokens. Please reduce the length of the messages."), Some(128_000), Some(192_041)),
            ("OpenAI with an answer", openai("This model's maximum context length is 4096 tokens. However, you requested 4104 tokens (3104 in the messages, 1000 in the completion). Please reduce the length of the messages or completion."), Some(4_096), Some(3_104)),
            ("OpenAI, newer", openai("Your input exceeds the context window of this model. Please adjust your input and try again."), None, None),
            ("Azure", r#"{"error":{"message":"This model's maximum context length is 32768 tokens. However, you requested 35969 tokens (9969 in the messages, 26000 in the completion). Please reduce the length of the messages or completion.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#.to_owned(), Some(32_768), Some(9_969)),
            ("Anthropic", r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 208310 tokens > 200000 maximum"},"request_id":"req_1"}"#.to_owned(), Some(200_000), Some(208_310)),
            ("Anthropic with an answer", r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, decrease input length or `max_tokens` and try again"}}"#.to_owned(), Some(200_000), Some(178_959)),
            ("Gemini", r#"[{"error":{"code":400,"message":"The input token count (218152) exceeds the maximum number of tokens allowed (65536).","errors":[],"status":"INVALID_ARGUMENT"}}]"#.to_owned(), Some(65_536), Some(218_152)),
            ("Mistral", r#"{"object":"error","message":"Prompt contains 65673 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_error","param":null,"code":"3051"}"#.to_owned(), Some(32_768), Some(65_673)),
            ("DeepSeek", openai("This model's maximum context length is 65536 tokens. However, you requested 81245 tokens (77149 in the messages, 4096 in the completion). Please reduce the length of the messages or completion."), Some(65_536), Some(77_149)),
            ("vLLM", r#"{"object":"error","message":"This model's maximum context length is 16384 tokens. However, you requested 19591 tokens (9591 in the messages, 10000 in the completion). Please reduce the length of the messages or completion. None","type":"BadRequestError","param":null,"code":400}"#.to_owned(), Some(16_384), Some(9_591)),
            ("vLLM, newer", r#"{"error":{"message":"This model's maximum context length is 4096 tokens. However, your request has 5210 input tokens. Please reduce the length of the input messages.","type":"BadRequestError","param":null,"code":400}}"#.to_owned(), Some(4_096), Some(5_210)),
            ("vLLM, at least", openai("This model's maximum context length is 20000 tokens. However, you requested 0 output tokens and your prompt contains at least 20001 input tokens, for a total of at least 20001 tokens. Please reduce the length of the input prompt or the number of requested output tokens."), Some(20_000), Some(20_001)),
            ("vLLM, prompt", r#"{"object":"error","message":"The decoder prompt (length 6001) is longer than the maximum model length of 4096. Make sure that `max_model_len` is no smaller than the number of text tokens.","type":"BadRequestError","code":400}"#.to_owned(), Some(4_096), Some(6_001)),
            ("SGLang", r#"{"object":"error","message":"The input (61709 tokens) is longer than the model's context length (40960 tokens).","type":"BadRequestError","param":null,"code":400}"#.to_owned(), Some(40_960), Some(61_709)),
            ("SGLang, allowed", openai("Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens). Use a shorter input or enable --allow-auto-truncate."), Some(59_862), Some(160_062)),
            ("SGLang, total", openai("Requested token count exceeds the model's maximum context length of 32768 tokens. You requested a total of 45000 tokens: 41000 tokens from the input messages and 4000 tokens for the completion. Please reduce the number of tokens in the input messages or the completion to fit within the limit."), Some(32_768), Some(41_000)),
            ("SGLang, length", openai("Input length (50000) exceeds model's maximum context length (32768)."), Some(32_768), Some(50_000)),
            ("SGLang, input", openai("The prompt of 9000 tokens exceeds the maximum allowed input length of 8192 tokens"), Some(8_192), None),
            ("Vertex", r#"[{"error":{"code":400,"message":"Unable to submit request because the input token count is 1200000 but model only supports up to 1048576. Reduce the input token count and try again.","status":"INVALID_ARGUMENT"}}]"#.to_owned(), Some(1_048_576), Some(1_200_000)),
            ("Text Generation Inference", r#"{"error":"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4120 `inputs` tokens and 20 `max_new_tokens`","error_type":"validation"}"#.to_owned(), Some(4_096), Some(4_120)),
            ("OpenRouter, wrapped", r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"This model's maximum context length is 65536 tokens. However, your messages resulted in 81245 tokens.\",\"type\":\"invalid_request_error\"}}","provider_name":"DeepSeek"}}}"#.to_owned(), Some(65_536), Some(81_245)),
            ("OpenRouter, wrapped text", r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"prompt is too long: 208310 tokens > 200000 maximum","provider_name":"Anthropic"}}}"#.to_owned(), Some(200_000), Some(208_310)),
            ("llama.cpp", r#"{"error":{"code":400,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"exceed_context_size_error","n_prompt_tokens":14429,"n_ctx":8192}}"#.to_owned(), Some(8_192), Some(14_429)),
            ("llama.cpp, newer", r#"{"error":{"code":400,"message":"request (14429 tokens) exceeds the available context size (8192 tokens), try increasing it","type":"invalid_request_error"}}"#.to_owned(), Some(8_192), Some(14_429)),
            ("llama-cpp-python", openai("Requested tokens (2285) exceed context window of 2048"), Some(2_048), Some(2_285)),
            ("Ollama", r#"{"error":{"message":"prompt too long; exceeded max context length by 1234 tokens","type":"api_error","param":null,"code":null}}"#.to_owned(), None, None),
            ("Ollama, plain", r#"{"error":"the input length exceeds the context length"}"#.to_owned(), None, None),
            ("OpenRouter", r#"{"error":{"message":"This endpoint's maximum context length is 131072 tokens. However, you requested about 155312 tokens (151216 of text input, 4096 in the output). Please reduce the length of either one.","code":400}}"#.to_owned(), Some(131_072), Some(151_216)),
            ("Bedrock", r#"{"message":"Input is too long for requested model."}"#.to_owned(), None, None),
            ("Bedrock, Titan", r#"{"message":"Too many input tokens. Max input tokens: 8192, request input token count: 11527 "}"#.to_owned(), Some(8_192), Some(11_527)),
            ("xAI", openai("This model's maximum prompt length is 131072 but the request contains 537812 tokens."), Some(131_072), Some(537_812)),
            ("Copilot", openai("prompt token count of 140000 exceeds the limit of 128000"), Some(128_000), Some(140_000)),
            ("Moonshot", openai("Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)"), Some(262_144), Some(291_351)),
            ("DashScope", openai("Range of input length should be [1, 30720]"), Some(30_720), None),
        ];
        for (provider, body, limit, used) in cases {
            assert_eq!(of(400, body), Some((*limit, *used)), "{provider}: {body}");
        }
    }

    #[test]
    fn the_code_alone_is_enough() {
        let coded = r#"{"error":{"message":"Too much.","code":"context_length_exceeded"}}"#;
        assert_eq!(of(400, coded), Some((None, None)));
    }

    #[test]
    fn other_errors_are_not_mistaken_for_it() {
        let echo =
            format!("Invalid value: '{} maximum context length is 300 tokens'", "x".repeat(MAX_OFFSET));
        for body in [
            openai("Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Requested 31000."),
            openai("Invalid type for 'messages[0].content': expected a string."),
            openai("max_tokens is too large: 999999. This model supports at most 16384 completion tokens."),
            openai(&echo),
            "not json".to_owned(),
            "{}".to_owned(),
            "[]".to_owned(),
            r#"{"error":null}"#.to_owned(),
            r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"Too many images."}}}"#.to_owned(),
        ] {
            assert_eq!(of(400, &body), None, "{body}");
        }
        let real = openai("This model's maximum context length is 4096 tokens.");
        for status in [200, 401, 403, 404, 429, 502] {
            assert_eq!(of(status, &real), None);
        }
    }

    #[test]
    fn implausible_limits_are_ignored() {
        for limit in ["0", "12", "99999999999", "99999999999999999999999999"] {
            let body = openai(&format!("This model's maximum context length is {limit} tokens."));
            assert_eq!(of(400, &body), Some((None, None)), "{limit}");
        }
    }
}
