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
        ("SGLang, input", openai("The prompt of 9000 tokens exceeds the maximum allowed input length of 8192 tokens"), Some(8_192), Some(9_000)),
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
    for body in [
        openai("Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Requested 31000."),
        openai("Invalid type for 'messages[0].content': expected a string."),
        openai("max_tokens is too large: 999999. This model supports at most 16384 completion tokens."),
        "not json".to_owned(),
        "{}".to_owned(),
        "[]".to_owned(),
        r#"{"error":null}"#.to_owned(),
        r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"Too many images."}}}"#
            .to_owned(),
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

/// What a client writes is not the upstream's word, wherever the upstream quotes it.
#[test]
fn a_phrase_that_an_error_quotes_is_not_read() {
    let phrases = [
        "This model's maximum context length is 300 tokens. However, your messages resulted in 9000 tokens.",
        "prompt is too long: 9000 tokens > 300 maximum",
        "maximum context length is 300 tokens",
        "Input is too long for requested model.",
        "Range of input length should be [1, 300]",
    ];
    for phrase in phrases {
        for message in [
            format!("Invalid value: '{phrase}'"),
            format!("'{phrase}' is not of type 'array'"),
            format!("Invalid 'tools[0].function.name': \"{phrase}\" does not match ^[a-z]+$"),
            format!("Unknown tool: {phrase}"),
            format!("No such model: {phrase}"),
            format!("1 validation error for request: {phrase}"),
        ] {
            assert_eq!(of(400, &openai(&message)), None, "{message}");
            let detail = serde_json::json!({"detail": message}).to_string();
            assert_eq!(of(422, &detail), None, "{detail}");
        }
    }
}

#[test]
fn a_number_without_its_unit_is_not_read() {
    for message in [
        "This model's maximum context length is 300",
        "This model's maximum context length is 300 dollars.",
        "prompt is too long: 9000 tokens > 300",
        "Input length (9000 tokens) exceeds the maximum allowed length (300 items).",
    ] {
        let limit = of(400, &openai(message)).and_then(|(limit, _)| limit);
        assert_eq!(limit, None, "{message}");
    }
}

/// Where a server's message begins with what the client wrote, the request still shows it.
#[test]
fn words_of_the_client_are_told_from_the_upstreams_own() {
    let phrase =
        "This model's maximum context length is 300 tokens. However, your messages resulted in 9000 tokens.";
    let overflow = read_overflow(400, openai(phrase).as_bytes()).unwrap();
    assert_eq!(overflow.limit, Some(300));
    let content = |text: &str| format!(r#"{{"messages":[{{"role":"user","content":"{text}"}}]}}"#);
    let escaped: String = phrase.bytes().map(|byte| format!("\\u{byte:04x}")).collect();
    let words = phrase.replace(' ', "\\n  ");
    for text in [phrase, &phrase.to_uppercase(), &escaped, &words, &phrase.replace("300", "3,\\u00300")] {
        assert!(overflow.may_be_quoted_from(content(text).as_bytes()), "{text}");
    }
    let tool = format!(r#"{{"tools":[{{"type":"function","function":{{"name":"{phrase}"}}}}]}}"#);
    assert!(overflow.may_be_quoted_from(tool.as_bytes()));
    for text in ["", "What is a context length?", "This model's maximum context length is 4000 tokens."] {
        assert!(!overflow.may_be_quoted_from(content(text).as_bytes()), "{text}");
    }
    // Figures in members of their own are nobody's words.
    let llama = r#"{"error":{"type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":300}}"#;
    assert!(!read_overflow(400, llama.as_bytes()).unwrap().may_be_quoted_from(content(phrase).as_bytes()));
}

#[test]
fn gateways_put_the_names_of_errors_before_the_message() {
    for prefix in [
        "litellm.ContextWindowExceededError: litellm.BadRequestError: OpenAIException - ",
        "ValidationException: ",
        "The model returned the following errors: ",
        "Error: ",
    ] {
        let message = format!("{prefix}prompt is too long: 208310 tokens > 200000 maximum");
        assert_eq!(of(400, &openai(&message)), Some((Some(200_000), Some(208_310))), "{message}");
    }
}
