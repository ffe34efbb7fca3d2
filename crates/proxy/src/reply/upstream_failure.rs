//! How an upstream, or the history that is kept here, fails a request that was forwarded.

use bytes::Bytes;
use http::StatusCode;
use tidegate_wire::Dialect;

/// How an upstream failed, before or after its answer began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UpstreamFailure {
    pub(crate) upstream: String,
    pub(crate) kind: FailureKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureKind {
    /// No connection within `connect_timeout`, or none at all.
    Unreachable,
    /// The connection ended before the answer began.
    Closed,
    /// No answer within `first_byte_timeout`.
    NoFirstByte,
    /// The answer stopped for longer than `idle_timeout`.
    Idle,
    /// The answer broke off.
    Broken,
    /// Tidegate is shutting down and the drain time is over.
    Draining,
    /// The answer came, but another turn of the conversation was kept first.
    Conflict,
    /// The answer came, but the conversation was deleted while the turn was running.
    Deleted,
    /// The answer came, but could not be stored as part of the history that is ours to keep.
    Unsaved,
}

impl FailureKind {
    /// Whether the upstream has failed, and not we.
    pub(crate) fn is_upstreams(self) -> bool {
        match self {
            FailureKind::Unreachable
            | FailureKind::Closed
            | FailureKind::NoFirstByte
            | FailureKind::Idle
            | FailureKind::Broken => true,
            FailureKind::Draining | FailureKind::Conflict | FailureKind::Deleted | FailureKind::Unsaved => {
                false
            }
        }
    }
}

impl UpstreamFailure {
    pub(super) fn parts(&self) -> (StatusCode, &'static str) {
        match self.kind {
            FailureKind::Unreachable | FailureKind::Closed | FailureKind::Broken => {
                (StatusCode::BAD_GATEWAY, "upstream_unreachable")
            }
            FailureKind::NoFirstByte | FailureKind::Idle => (StatusCode::GATEWAY_TIMEOUT, "upstream_timeout"),
            FailureKind::Draining => (StatusCode::SERVICE_UNAVAILABLE, "shutting_down"),
            FailureKind::Conflict => (StatusCode::CONFLICT, "conversation_busy"),
            FailureKind::Deleted => (StatusCode::CONFLICT, "conversation_deleted"),
            FailureKind::Unsaved => (StatusCode::SERVICE_UNAVAILABLE, "store_unavailable"),
        }
    }

    fn code(&self) -> &'static str {
        self.parts().1
    }

    /// Why an answer that had begun was not completed, for the log.
    pub(crate) fn reason(&self) -> &'static str {
        match self.kind {
            FailureKind::Closed | FailureKind::Broken => "upstream_closed",
            FailureKind::Unreachable
            | FailureKind::NoFirstByte
            | FailureKind::Idle
            | FailureKind::Draining
            | FailureKind::Conflict
            | FailureKind::Deleted
            | FailureKind::Unsaved => self.code(),
        }
    }

    pub(super) fn message(&self) -> String {
        let name = &self.upstream;
        match self.kind {
            FailureKind::Unreachable => format!("The upstream `{name}` cannot be reached."),
            FailureKind::Closed => format!("The upstream `{name}` closed the connection before it answered."),
            FailureKind::NoFirstByte => {
                format!("The upstream `{name}` did not begin to answer within its `first_byte_timeout`.")
            }
            FailureKind::Idle => {
                format!("The upstream `{name}` stopped answering for longer than its `idle_timeout`.")
            }
            FailureKind::Broken => format!("The upstream `{name}` broke off its answer."),
            FailureKind::Draining => {
                "The gateway is shutting down and the answer did not end in time.".to_owned()
            }
            FailureKind::Conflict => {
                "The conversation has changed while this turn was running, so the turn was not kept. \
                                      Send it again."
                    .to_owned()
            }
            FailureKind::Deleted => {
                "The conversation was deleted while this turn was running, so the turn was not kept."
                    .to_owned()
            }
            FailureKind::Unsaved => {
                "The answer could not be stored in the history that is kept here. Send the turn again."
                    .to_owned()
            }
        }
    }

    /// The last event of a stream that cannot go on.
    pub(crate) fn event(&self, dialect: Dialect) -> Bytes {
        dialect.error_event(&self.message(), "upstream_error", None, self.code()).into()
    }
}
