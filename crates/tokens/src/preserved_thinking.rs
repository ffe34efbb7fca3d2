//! Which models bind their reasoning to the conversation before it.

use crate::table::spellings;

/// The families of Claude whose newer models do.
const FAMILIES: [&str; 5] = ["opus", "sonnet", "haiku", "fable", "mythos"];

/// The first version that does.
const FIRST: (u32, u32) = (5, 1);

/// Whether a model refuses reasoning of its own in front of which anything has changed since, as Claude does from Fable 5.1 and
/// Opus 5.5 on.
///
/// ```
/// use tidegate_tokens::binds_thinking;
/// assert!(binds_thinking("claude-opus-5-5"));
/// assert!(!binds_thinking("claude-opus-5"));
/// ```
#[must_use]
pub fn binds_thinking(model: &str) -> bool {
    spellings(model).iter().any(|name| version(name).is_some_and(|version| version >= FIRST))
}

/// The version in a name such as `claude-opus-5-5` or `claude-sonnet-6-20270105`.
fn version(name: &str) -> Option<(u32, u32)> {
    let mut words = name.strip_prefix("claude-")?.split('-');
    let family = words.next()?;
    let major = number(words.next()?)?;
    FAMILIES.contains(&family).then(|| (major, words.next().and_then(number).unwrap_or(0)))
}

/// A number of up to two digits, which may end with a tag such as `@default` or `[1m]`. Longer ones are dates.
fn number(word: &str) -> Option<u32> {
    let digits = word.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(word.len());
    let is_tag = word[digits..].chars().next().is_none_or(|first| !first.is_ascii_alphanumeric());
    if (1..=2).contains(&digits) && is_tag { word[..digits].parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_claudes_bind_their_thinking() {
        for model in [
            "claude-fable-5-1",
            "claude-fable-5-2",
            "claude-opus-5-5",
            "claude-opus-5-5-20260922",
            "claude-sonnet-5-5@20260928",
            "claude-haiku-5-5[1m]",
            "anthropic/claude-opus-5.5",
            "anthropic/claude-opus-5.5:beta",
            "us.anthropic.claude-opus-5-5-v1:0",
            "Claude-Sonnet-6",
            "claude-opus-6-20270105",
        ] {
            assert!(binds_thinking(model), "{model}");
        }
        for model in [
            "claude-fable-5",
            "claude-opus-5",
            "claude-opus-5-20260512",
            "claude-opus-4-8",
            "claude-sonnet-4-5-20250929",
            "claude-3-7-sonnet-20250219",
            "claude-4-opus-20250514",
            "claude-next-9",
            "gpt-5.5",
            "",
        ] {
            assert!(!binds_thinking(model), "{model}");
        }
    }
}
