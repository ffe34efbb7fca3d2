use super::key::KeyError;
use super::spent::Spent;
use crate::transport::client::CallError;
use http::StatusCode;
use std::error::Error;
use thiserror::Error;
use tidegate_context::FoldFailure;
use tidegate_summary::Nonsense;

/// A failed attempt to summarize.
#[derive(Debug, Error)]
#[error("{cause}")]
pub(crate) struct Failure {
    #[source]
    pub(crate) cause: Cause,
    /// What the attempt cost.
    pub(crate) spent: Spent,
}

/// Why there is no summary. The messages contain no content of the conversation or the response; the sources may name addresses.
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
    #[error("the window of the summarizer's model is too small for its instructions and one message")]
    WindowTooSmall,
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error("the summarizer panicked")]
    Crashed,
}

impl Cause {
    /// The failure as the turn and its reports see it.
    pub(crate) fn fold_failure(&self) -> FoldFailure {
        match self {
            Cause::Timeout => FoldFailure::Timeout,
            Cause::Status(StatusCode::TOO_MANY_REQUESTS) => FoldFailure::RateLimited,
            Cause::Status(status) if status.is_server_error() => FoldFailure::ServerError,
            Cause::Status(_) => FoldFailure::Refused,
            Cause::Unreachable(_) => FoldFailure::Unreachable,
            Cause::Broken(_) => FoldFailure::Broken,
            Cause::Nonsense(Nonsense::Empty) => FoldFailure::Empty,
            Cause::Nonsense(Nonsense::NoJson) => FoldFailure::NoJson,
            Cause::Nonsense(Nonsense::NothingInIt) => FoldFailure::NothingInIt,
            Cause::Nonsense(Nonsense::TooLong) => FoldFailure::TooLong,
            Cause::Nonsense(Nonsense::CutOff) => FoldFailure::CutOff,
            Cause::Nonsense(Nonsense::LooksLikeAnError) => FoldFailure::LooksLikeAnError,
            Cause::WindowTooSmall => FoldFailure::WindowTooSmall,
            Cause::Key(_) => FoldFailure::NoKey,
            Cause::Crashed => FoldFailure::Crashed,
        }
    }

    /// Whether a retry may succeed.
    pub(super) fn is_retryable(&self) -> bool {
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
