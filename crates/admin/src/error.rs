//! Errors of the admin API. Every status, code and message is decided here.

use crate::memory::MAX_MEMORY_BYTES;
use crate::response::{self, FullResponse};
use http::header::{ALLOW, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use thiserror::Error;
use tidegate_store::StoreError;
use tidegate_wire::Dialect;

#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum ApiError {
    #[error("admin token required: send `Authorization: Bearer …`")]
    MissingToken,
    #[error("wrong admin token")]
    WrongToken,
    #[error(
        "without an admin token, only requests to a loopback host are accepted, to keep web pages out; \
         use 127.0.0.1 or configure a token"
    )]
    NonLoopbackHost,
    #[error("cross-site requests cannot change anything")]
    CrossSite,
    #[error(
        "unknown path; available are the dashboard at /, /healthz, /readyz, /metrics, and the API described in \
         /api/openapi.json: /api/overview, /api/conversations, /api/explain, /api/config and /api/windows"
    )]
    UnknownPath,
    #[error("this path allows only {allow}")]
    MethodNotAllowed { allow: &'static str },
    #[error("`{name}` {fault}")]
    InvalidParameter { name: String, fault: String },
    #[error(
        "deleting a conversation takes the full 32 digits of its id: a name or prefix may match another one tomorrow"
    )]
    FullIdRequired,
    #[error(
        "this conversation is recognised by its content, and may be that of several people: give it a name \
         (`conversation.header`) to pin a text to it"
    )]
    UnnamedConversation,
    #[error("no such conversation")]
    ConversationNotFound,
    #[error("no such conversation among the {scanned} newest; use the full 32 digits of its id")]
    NotAmongNewest { scanned: usize },
    #[error("this matches several conversations; use the id of one: {}", format_candidates(.candidates))]
    AmbiguousId { candidates: Vec<Candidate> },
    #[error(
        "a memory can have at most {MAX_MEMORY_BYTES} bytes, because every request of the conversation carries it"
    )]
    MemoryTooLong,
    /// Says what is wrong without quoting the memory.
    #[error("the memory {0}")]
    InvalidMemory(&'static str),
    #[error("send the memory as application/json, `{{\"memory\": \"…\"}}`, or as text/plain in UTF-8")]
    UnsupportedMediaType,
    #[error("no such turn: the conversation has {turns}, counted from 1")]
    TurnNotFound { turns: usize },
    #[error("no such route; the routes are {routes}")]
    RouteNotFound { routes: String },
    #[error("send the body as application/json")]
    JsonRequired,
    #[error("send `{{\"token\": \"…\"}}` with the admin token")]
    InvalidSession,
    #[error("{0}")]
    InvalidRequest(String),
    #[error("the request is larger than `server.max_body`; the proxy would refuse it with 413")]
    RequestTooLarge,
    /// The configuration errors, one per line.
    #[error("{0}")]
    InvalidPolicy(String),
    #[error("too many event streams are open; close one or try again later")]
    TooManyStreams,
    #[error("too many requests are being explained; try again in a moment")]
    Busy,
    #[error("timed out reading the body")]
    BodyTimeout,
    /// Holds only the label: the full error may name hosts and files.
    #[error("cannot read the store: {0}")]
    StoreUnavailable(&'static str),
    #[error("internal error: cannot build the response")]
    Internal,
}

/// A conversation that an ambiguous id matches. Holds nothing of its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) id: String,
    pub(crate) tenant: String,
}

impl ApiError {
    pub(crate) fn invalid_parameter(name: &str, fault: impl Into<String>) -> ApiError {
        ApiError::InvalidParameter { name: name.to_owned(), fault: fault.into() }
    }

    pub(crate) fn response(&self) -> FullResponse {
        let (status, code) = self.status();
        let kind = match status {
            StatusCode::UNAUTHORIZED => "authentication_error",
            StatusCode::FORBIDDEN => "permission_error",
            status if status.is_server_error() => "server_error",
            _ => "invalid_request_error",
        };
        let param = match self {
            ApiError::InvalidParameter { name, .. } => Some(name.as_str()),
            _ => None,
        };
        let body = Dialect::Chat.error_body(&self.to_string(), kind, param, code);
        let mut response = response::with_body(status, response::JSON, body);
        let headers = response.headers_mut();
        match self {
            ApiError::MethodNotAllowed { allow } => {
                headers.insert(ALLOW, HeaderValue::from_static(allow));
            }
            ApiError::MissingToken | ApiError::WrongToken => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            _ => {}
        }
        response
    }

    fn status(&self) -> (StatusCode, &'static str) {
        match self {
            ApiError::MissingToken | ApiError::WrongToken => (StatusCode::UNAUTHORIZED, "unauthorized"),
            ApiError::NonLoopbackHost => (StatusCode::FORBIDDEN, "foreign_host"),
            ApiError::CrossSite => (StatusCode::FORBIDDEN, "foreign_site"),
            ApiError::UnknownPath => (StatusCode::NOT_FOUND, "not_found"),
            ApiError::MethodNotAllowed { .. } => (StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed"),
            ApiError::InvalidParameter { .. } => (StatusCode::BAD_REQUEST, "invalid_parameter"),
            ApiError::FullIdRequired => (StatusCode::BAD_REQUEST, "whole_id_needed"),
            ApiError::UnnamedConversation => (StatusCode::CONFLICT, "unnamed_conversation"),
            ApiError::ConversationNotFound | ApiError::NotAmongNewest { .. } => {
                (StatusCode::NOT_FOUND, "conversation_not_found")
            }
            ApiError::AmbiguousId { .. } => (StatusCode::CONFLICT, "ambiguous_conversation"),
            ApiError::MemoryTooLong => (StatusCode::PAYLOAD_TOO_LARGE, "memory_too_long"),
            ApiError::InvalidMemory(_) => (StatusCode::BAD_REQUEST, "invalid_memory"),
            ApiError::TurnNotFound { .. } => (StatusCode::NOT_FOUND, "turn_not_found"),
            ApiError::RouteNotFound { .. } => (StatusCode::NOT_FOUND, "route_not_found"),
            ApiError::InvalidSession => (StatusCode::BAD_REQUEST, "invalid_session"),
            ApiError::InvalidRequest(_) => (StatusCode::BAD_REQUEST, "invalid_request"),
            ApiError::RequestTooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "request_too_large"),
            ApiError::InvalidPolicy(_) => (StatusCode::BAD_REQUEST, "invalid_policy"),
            ApiError::Busy => (StatusCode::SERVICE_UNAVAILABLE, "busy"),
            ApiError::TooManyStreams => (StatusCode::SERVICE_UNAVAILABLE, "too_many_listeners"),
            ApiError::UnsupportedMediaType | ApiError::JsonRequired => {
                (StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type")
            }
            ApiError::BodyTimeout => (StatusCode::REQUEST_TIMEOUT, "request_timeout"),
            ApiError::StoreUnavailable(_) => (StatusCode::SERVICE_UNAVAILABLE, "store_unavailable"),
            ApiError::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "internal_error"),
        }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> ApiError {
        ApiError::StoreUnavailable(error.reason())
    }
}

/// The maximum number of candidates in a message, in case a client gave thousands of conversations one name.
const MAX_CANDIDATES_SHOWN: usize = 10;

fn format_candidates(candidates: &[Candidate]) -> String {
    let describe = |candidate: &Candidate| format!("{} of tenant {}", candidate.id, candidate.tenant);
    let mut shown: Vec<String> = candidates.iter().take(MAX_CANDIDATES_SHOWN).map(describe).collect();
    if let Some(more) = candidates.len().checked_sub(MAX_CANDIDATES_SHOWN).filter(|more| *more > 0) {
        shown.push(format!("and {more} more"));
    }
    shown.join(", ")
}
