use super::Spent;
use super::key::KeyError;
use crate::upstream::CallError;
use http::StatusCode;
use std::error::Error;
use thiserror::Error;
use tidegate_summary::Nonsense;

/// There is no summary.
#[derive(Debug, Error)]
#[error("{cause}")]
pub(crate) struct Failure {
    #[source]
    pub(crate) cause: Cause,
    /// What it cost all the same.
    pub(crate) spent: Spent,
}

/// Why there is no summary. The texts hold nothing of what was summarized or answered; the sources may name addresses.
#[derive(Debug, Error)]
pub(crate) enum Cause {
    #[error("the summarizer did not answer in time")]
    Timeout,
    #[error("the summarizer answered with status {}", .0.as_u16())]
    Status(StatusCode),
    #[error("the summarizer cannot be reached")]
    Unreachable(#[source] CallError),
    #[error("the connection to the summarizer broke")]
    Broken(#[source] Box<dyn Error + Send + Sync>),
    #[error(transparent)]
    Nonsense(#[from] Nonsense),
    #[error("the window of the summarizer's model has no room for a message beside its instructions")]
    WindowTooSmall,
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error("the summarizer panicked")]
    Crashed,
}

impl Failure {
    pub(crate) fn reason(&self) -> &'static str {
        self.cause.reason()
    }
}

impl Cause {
    /// The label for headers, metrics and logs.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Cause::Timeout => "summarizer_timeout",
            Cause::Status(StatusCode::TOO_MANY_REQUESTS) => "summarizer_rate_limited",
            Cause::Status(status) if status.is_server_error() => "summarizer_server_error",
            Cause::Status(_) => "summarizer_refused",
            Cause::Unreachable(_) => "summarizer_unreachable",
            Cause::Broken(_) => "summarizer_broken",
            Cause::Nonsense(Nonsense::Empty) => "summarizer_empty",
            Cause::Nonsense(Nonsense::NoJson) => "summarizer_no_json",
            Cause::Nonsense(Nonsense::NothingInIt) => "summarizer_nothing_in_it",
            Cause::Nonsense(Nonsense::TooLong) => "summarizer_too_long",
            Cause::Nonsense(Nonsense::LooksLikeAnError) => "summarizer_looks_like_an_error",
            Cause::WindowTooSmall => "summarizer_window_too_small",
            Cause::Key(_) => "summarizer_no_key",
            Cause::Crashed => "summarizer_crashed",
        }
    }

    /// Whether asking again may help. What the endpoint refuses it would refuse again.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            Cause::Status(status) => {
                status.is_server_error()
                    || [StatusCode::TOO_MANY_REQUESTS, StatusCode::REQUEST_TIMEOUT].contains(status)
            }
            Cause::Unreachable(_) | Cause::Broken(_) | Cause::Nonsense(_) => true,
            Cause::Timeout | Cause::WindowTooSmall | Cause::Key(_) | Cause::Crashed => false,
        }
    }
}

impl From<CallError> for Cause {
    fn from(error: CallError) -> Cause {
        if error.is_connect() { Cause::Unreachable(error) } else { Cause::Broken(error.into()) }
    }
}
