//! Reads the context windows that a list of models tells.

use serde_json::Value;

/// The members in which servers give a model's window: vLLM, OpenRouter and LiteLLM, Groq, llama.cpp, Anthropic.
const MEMBERS: [&str; 5] =
    ["max_model_len", "context_length", "context_window", "max_context_length", "max_input_tokens"];

/// Returns the models of a `GET …/models` response that have a window, by name.
#[must_use]
pub fn read_model_windows(body: &[u8]) -> Vec<(String, u64)> {
    let Ok(document) = serde_json::from_slice::<Value>(body) else { return Vec::new() };
    let one = |model: &Value| {
        let name = model.get("id").and_then(Value::as_str)?;
        let window = MEMBERS.iter().find_map(|member| model.get(member).and_then(Value::as_u64))?;
        (128..=100_000_000).contains(&window).then(|| (name.to_owned(), window))
    };
    match document.get("data").and_then(Value::as_array) {
        Some(models) => models.iter().filter_map(one).collect(),
        // A single model.
        None => one(&document).into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_read_where_servers_tell_them() {
        let list = r#"{"object":"list","data":[
            {"id":"vllm","object":"model","max_model_len":16384},
            {"id":"router/model","context_length":131072,"top_provider":{"context_length":65536}},
            {"id":"groq","context_window":8192,"active":true},
            {"type":"model","id":"claude-next-9","max_input_tokens":200000,"max_tokens":64000},
            {"id":"silent","object":"model"},
            {"id":"odd","context_length":"many"},
            {"id":"tiny","context_length":1}]}"#;
        let expected =
            [("vllm", 16_384), ("router/model", 131_072), ("groq", 8_192), ("claude-next-9", 200_000)];
        assert_eq!(read_model_windows(list.as_bytes()), expected.map(|(name, size)| (name.to_owned(), size)));
        assert_eq!(read_model_windows(br#"{"id":"m","max_model_len":4096}"#), [("m".to_owned(), 4_096)]);
        for nothing in [&b""[..], b"[]", b"{\"data\":5}", b"not json"] {
            assert!(read_model_windows(nothing).is_empty());
        }
    }
}
