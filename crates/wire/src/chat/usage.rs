//! The token counts of an answer, in the spelling of every provider that speaks chat completions.

use crate::cursor::Value;
use crate::{Unreadable, Usage};

/// What a count means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Count {
    /// All tokens of the prompt.
    Prompt,
    /// The tokens of the prompt that were neither read from the cache nor written to it.
    PlainPrompt,
    Completion,
    CacheRead,
    CacheWrite,
    Reasoning,
}

/// The members of `usage`, or of the objects in it, that hold a count. If a provider sends one count in two spellings, the larger
/// one counts: the other is a zero of a compatibility layer.
const SPELLINGS: &[(&str, Count)] = &[
    ("prompt_tokens", Count::Prompt),
    ("completion_tokens", Count::Completion),
    // OpenAI, and most others: `prompt_tokens_details`, `completion_tokens_details`. Moonshot has the first at the top.
    ("cached_tokens", Count::CacheRead),
    ("reasoning_tokens", Count::Reasoning),
    ("cache_write_tokens", Count::CacheWrite),
    // DeepSeek.
    ("prompt_cache_hit_tokens", Count::CacheRead),
    // Anthropic, and gateways to it. Its `input_tokens` do not include the cached ones.
    ("input_tokens", Count::PlainPrompt),
    ("output_tokens", Count::Completion),
    ("cache_read_input_tokens", Count::CacheRead),
    ("cache_creation_input_tokens", Count::CacheWrite),
    // Gemini.
    ("promptTokenCount", Count::Prompt),
    ("candidatesTokenCount", Count::Completion),
    ("cachedContentTokenCount", Count::CacheRead),
    ("cached_content_token_count", Count::CacheRead),
    ("thoughtsTokenCount", Count::Reasoning),
    // Bedrock, and gateways to it. Its `inputTokens` do not include the cached ones.
    ("inputTokens", Count::PlainPrompt),
    ("outputTokens", Count::Completion),
    ("cacheReadInputTokens", Count::CacheRead),
    ("cacheWriteInputTokens", Count::CacheWrite),
    // vLLM and SGLang, in some versions.
    ("num_cached_tokens", Count::CacheRead),
];

/// The objects in `usage` that hold further counts.
const DETAILS: &[&str] =
    &["prompt_tokens_details", "completion_tokens_details", "input_tokens_details", "output_tokens_details"];

/// Reads the value of `usage`. Returns `None` if it is not an object.
pub(crate) fn read_usage(value: Value<'_>) -> Result<Option<Usage>, Unreadable> {
    if value.first() != Some(b'{') {
        return Ok(None);
    }
    let mut counts = [0; 6];
    let mut includes_cached = false;
    value.members_of_object(|key, value| {
        // Only OpenAI's responses have it, whose `input_tokens` are all of them.
        includes_cached |= key == "input_tokens_details";
        if DETAILS.contains(&key) {
            return value.members_of_object(|key, value| read_count(key, value, &mut counts));
        }
        read_count(key, value, &mut counts)
    })?;
    let count = |wanted: Count| counts[wanted as usize];
    let (read, written) = (count(Count::CacheRead), count(Count::CacheWrite));
    let prompt_tokens = match count(Count::Prompt) {
        0 if includes_cached => count(Count::PlainPrompt),
        0 => count(Count::PlainPrompt).saturating_add(read).saturating_add(written),
        prompt => prompt,
    };
    Ok(Some(Usage {
        prompt_tokens,
        completion_tokens: count(Count::Completion),
        cached_tokens: read.min(prompt_tokens),
        cache_write_tokens: written.min(prompt_tokens),
        reasoning_tokens: count(Count::Reasoning),
    }))
}

fn read_count(key: &str, value: Value<'_>, counts: &mut [u64; 6]) -> Result<(), Unreadable> {
    if let Some((_, count)) = SPELLINGS.iter().find(|(spelling, _)| *spelling == key)
        && let Some(tokens) = value.integer()?
    {
        let slot = &mut counts[*count as usize];
        *slot = tokens.max(*slot);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::{Dialect, Usage};

    /// Prompt, cached, completion and reasoning tokens.
    fn read(usage: &str) -> (u64, u64, u64, u64) {
        let body = format!(r#"{{"choices":[],"usage":{usage}}}"#);
        let answer = Dialect::Chat.read_answer(body.as_bytes()).unwrap();
        let Usage { prompt_tokens, completion_tokens, cached_tokens, reasoning_tokens, .. } =
            answer.usage.unwrap();
        (prompt_tokens, cached_tokens, completion_tokens, reasoning_tokens)
    }

    /// llama.cpp says beside the usage how much of the prompt it had in its cache.
    #[test]
    fn the_timings_of_a_server_hold_what_it_had_cached() {
        let usage = r#""usage":{"prompt_tokens":100,"completion_tokens":5}"#;
        let timings = r#""timings":{"cache_n":64,"prompt_n":36,"prompt_ms":12.5}"#;
        for members in [format!("{usage},{timings}"), format!("{timings},{usage}")] {
            let answer = Dialect::Chat.read_answer(format!("{{{members}}}").as_bytes()).unwrap();
            assert_eq!(answer.usage.unwrap().cached_tokens, 64, "{members}");
        }
        let alone = Dialect::Chat.read_answer(format!("{{{timings}}}").as_bytes()).unwrap();
        assert_eq!(alone.usage, None);
    }

    #[test]
    fn every_spelling_is_read() {
        for (provider, usage, counts) in [
            (
                "OpenAI",
                r#"{"prompt_tokens":100,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":64},
                    "completion_tokens_details":{"reasoning_tokens":3}}"#,
                (100, 64, 5, 3),
            ),
            (
                "DeepSeek",
                r#"{"prompt_tokens":100,"completion_tokens":5,"prompt_cache_hit_tokens":64,"prompt_cache_miss_tokens":36}"#,
                (100, 64, 5, 0),
            ),
            (
                "a gateway to Anthropic",
                r#"{"prompt_tokens":100,"completion_tokens":5,"cache_read_input_tokens":64,"cache_creation_input_tokens":20,
                    "prompt_tokens_details":{"cached_tokens":0}}"#,
                (100, 64, 5, 0),
            ),
            (
                "Anthropic",
                r#"{"input_tokens":16,"output_tokens":5,"cache_read_input_tokens":64,"cache_creation_input_tokens":20}"#,
                (100, 64, 5, 0),
            ),
            (
                "Gemini",
                r#"{"promptTokenCount":100,"candidatesTokenCount":5,"cachedContentTokenCount":64,"thoughtsTokenCount":3}"#,
                (100, 64, 5, 3),
            ),
            (
                "Bedrock",
                r#"{"inputTokens":16,"outputTokens":5,"totalTokens":105,"cacheReadInputTokens":64,"cacheWriteInputTokens":20}"#,
                (100, 64, 5, 0),
            ),
            (
                "a gateway to Bedrock",
                r#"{"prompt_tokens":100,"completion_tokens":5,"cacheReadInputTokens":64,"cacheWriteInputTokens":20}"#,
                (100, 64, 5, 0),
            ),
            (
                "Moonshot",
                r#"{"prompt_tokens":100,"completion_tokens":5,"cached_tokens":64}"#,
                (100, 64, 5, 0),
            ),
            (
                "vLLM",
                r#"{"prompt_tokens":100,"completion_tokens":5,"prompt_tokens_details":null}"#,
                (100, 0, 5, 0),
            ),
            (
                "vLLM",
                r#"{"prompt_tokens":100,"completion_tokens":5,"num_cached_tokens":64}"#,
                (100, 64, 5, 0),
            ),
        ] {
            assert_eq!(read(usage), counts, "{provider}");
        }
    }
}
