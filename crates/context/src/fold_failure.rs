use thiserror::Error;

/// Why a wanted summary does not exist.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum FoldFailure {
    #[error("the summary would not shrink the request")]
    NoGain,
    #[error("summarizing this conversation failed a moment ago and is not retried yet")]
    CoolingDown,
    #[error("another request is summarizing this conversation")]
    Busy,
    #[error("the request belongs to no conversation")]
    NoConversation,
    #[error("the summarizer did not answer in time")]
    Timeout,
    #[error("the summarizer is rate limited")]
    RateLimited,
    #[error("the summarizer answered with a server error")]
    ServerError,
    #[error("the summarizer refused the request")]
    Refused,
    #[error("the summarizer cannot be reached")]
    Unreachable,
    #[error("the connection to the summarizer broke")]
    Broken,
    #[error("the summarizer's answer was cut off")]
    CutOff,
    #[error("the summarizer answered with nothing")]
    Empty,
    #[error("the summarizer's answer contains no JSON object")]
    NoJson,
    #[error("the summarizer's answer has no entries")]
    NothingInIt,
    #[error("the summarizer's answer is too long")]
    TooLong,
    #[error("the summarizer's answer looks like an error message")]
    LooksLikeAnError,
    #[error("a message does not fit the summarizer's window")]
    WindowTooSmall,
    #[error("there is no key for the summarizer")]
    NoKey,
    #[error("the summarizer panicked")]
    Crashed,
    #[error("too many summaries are being made")]
    QueueFull,
    #[error("the summarizer has cost as much within an hour as it may")]
    CostCeiling,
}

impl FoldFailure {
    /// The label for headers, metrics and logs.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            FoldFailure::NoGain => "summarizer_no_gain",
            FoldFailure::CoolingDown => "summarizer_cooling",
            FoldFailure::Busy => "summarizer_busy",
            FoldFailure::NoConversation => "summarizer_no_conversation",
            FoldFailure::Timeout => "summarizer_timeout",
            FoldFailure::RateLimited => "summarizer_rate_limited",
            FoldFailure::ServerError => "summarizer_server_error",
            FoldFailure::Refused => "summarizer_refused",
            FoldFailure::Unreachable => "summarizer_unreachable",
            FoldFailure::Broken => "summarizer_broken",
            FoldFailure::CutOff => "summarizer_cut_off",
            FoldFailure::Empty => "summarizer_empty",
            FoldFailure::NoJson => "summarizer_no_json",
            FoldFailure::NothingInIt => "summarizer_nothing_in_it",
            FoldFailure::TooLong => "summarizer_too_long",
            FoldFailure::LooksLikeAnError => "summarizer_looks_like_an_error",
            FoldFailure::WindowTooSmall => "summarizer_window_too_small",
            FoldFailure::NoKey => "summarizer_no_key",
            FoldFailure::Crashed => "summarizer_crashed",
            FoldFailure::QueueFull => "summarizer_queue_full",
            FoldFailure::CostCeiling => "summarizer_cost_ceiling",
        }
    }

    /// Whether a summarizer was asked and failed. A summary that would be too long is no failure of anybody.
    pub(crate) fn is_failed_attempt(self) -> bool {
        !matches!(self, FoldFailure::CoolingDown | FoldFailure::NoConversation | FoldFailure::NoGain)
    }
}
