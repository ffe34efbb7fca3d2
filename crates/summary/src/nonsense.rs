use crate::word::phrases;

/// Why an answer is not a summary. The caller retries once, then falls back: such an answer must never be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Nonsense {
    #[error("the summarizer's answer is empty")]
    Empty,
    #[error("the summarizer's answer has no JSON object")]
    NoJson,
    #[error("the summarizer's answer has none of a summary's members")]
    NothingInIt,
    #[error("the summarizer's answer is too long to be a summary")]
    TooLong,
    #[error("the summarizer's answer was cut off")]
    CutOff,
    #[error("the summarizer's answer is an error or a refusal")]
    LooksLikeAnError,
}

impl Nonsense {
    /// The label in metrics and logs.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::NoJson => "no_json",
            Self::NothingInIt => "nothing_in_it",
            Self::TooLong => "too_long",
            Self::CutOff => "cut_off",
            Self::LooksLikeAnError => "looks_like_an_error",
        }
    }
}

/// Whether a text looks like the error message of a failed call, or like a refusal.
pub(crate) fn looks_like_an_error(text: &str) -> bool {
    let mut start: String = text.trim_start().chars().take(200).collect::<String>().to_lowercase();
    start = start.replace('’', "'");
    let start = start.trim_start_matches(|c: char| !c.is_alphanumeric());
    phrases(OPENINGS).any(|opening| start.starts_with(opening))
        || phrases(FAILURES).any(|failure| start.contains(failure))
}

/// How errors and refusals begin.
const OPENINGS: &str = "\
    error:, error , an error occurred, internal server error, bad gateway, service unavailable, gateway \
    timeout, too many requests, rate limit, request timed out, timeout, exception, traceback, i'm sorry, i \
    am sorry, sorry,  i can't, i cannot, i'm unable, i am unable, as an ai, unable to";

/// What they contain near the beginning.
const FAILURES: &str = "\
    generating summary, generate a summary, generate summary, summarization failed, summary unavailable, \
    maximum context length";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognizes_errors_and_refusals() {
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
    fn a_summary_about_errors_is_not_an_error() {
        for text in [
            "The build failed with error E0308.",
            "Errors in the import were fixed.",
            "The user is sorry about the delay.",
        ] {
            assert!(!looks_like_an_error(text), "{text}");
        }
    }
}
