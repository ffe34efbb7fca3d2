use crate::word::phrases;

/// Why an answer is not a summary. The caller retries once and then goes without: none of these may become
/// the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Nonsense {
    #[error("the summarizer answered nothing")]
    Empty,
    #[error("the summarizer's answer holds no JSON object")]
    NoJson,
    #[error("the summarizer's answer is an object without any content of a summary")]
    NothingInIt,
    #[error("the summarizer's answer is too long to be a summary")]
    TooLong,
    #[error("the summarizer's answer is an error or a refusal")]
    LooksLikeAnError,
}

impl Nonsense {
    /// A label for metrics and logs.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::NoJson => "no_json",
            Self::NothingInIt => "nothing_in_it",
            Self::TooLong => "too_long",
            Self::LooksLikeAnError => "looks_like_an_error",
        }
    }
}

/// Whether a short text is what a failed call or an unwilling model says instead of a summary.
pub(crate) fn looks_like_an_error(text: &str) -> bool {
    let mut start: String = text.trim_start().chars().take(200).collect::<String>().to_lowercase();
    start = start.replace('’', "'");
    let start = start.trim_start_matches(|c: char| !c.is_alphanumeric());
    phrases(OPENINGS).any(|opening| start.starts_with(opening))
        || phrases(FAILURES).any(|failure| start.contains(failure))
}

/// Where a refusal or an error begins.
const OPENINGS: &str = "\
    error:, error , an error occurred, internal server error, bad gateway, service unavailable, gateway \
    timeout, too many requests, rate limit, request timed out, timeout, exception, traceback, i'm sorry, i \
    am sorry, sorry,  i can't, i cannot, i'm unable, i am unable, as an ai, unable to";

/// What such a text says wherever it begins.
const FAILURES: &str = "\
    generating summary, generate a summary, generate summary, summarization failed, summary unavailable, \
    maximum context length";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_and_refusals_are_known() {
        for text in [
            "Error generating summary",
            "  [Error: 500]",
            "I’m sorry, I can't help with that.",
            "I cannot assist with this request",
            "This model's maximum context length is 8192 tokens",
            "Failed to generate summary: timeout",
            "**Traceback** (most recent call last)",
        ] {
            assert!(looks_like_an_error(text), "{text}");
        }
    }

    #[test]
    fn work_on_errors_is_not_an_error() {
        for text in [
            "The build failed with error E0308.",
            "Errors in the import were fixed.",
            "The user is sorry about the delay.",
        ] {
            assert!(!looks_like_an_error(text), "{text}");
        }
    }
}
