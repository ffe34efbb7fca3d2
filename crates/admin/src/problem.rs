//! Why a request to the admin address is not answered, and how that is said. Every status and text is decided here.

use crate::memory::MEMORY_BYTES;
use crate::reply::{self, Answer};
use http::header::{ALLOW, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use thiserror::Error;
use tidegate_store::StoreError;
use tidegate_wire::Dialect;

#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum Problem {
    #[error("this needs the admin token: send `Authorization: Bearer …`")]
    NoToken,
    #[error("this is not the admin token")]
    WrongToken,
    #[error(
        "without an admin token only requests to a loopback name are answered, so that no web page can be made to ask; \
         use 127.0.0.1, or set the token"
    )]
    ForeignHost,
    #[error("a page of another site must not change anything here")]
    ForeignSite,
    #[error(
        "there are the dashboard at /, /healthz, /readyz, /metrics, and what /api/openapi.json describes: \
         /api/overview, /api/conversations, /api/explain and /api/config"
    )]
    UnknownPath,
    #[error("only {allow} can be asked of this path")]
    Method { allow: &'static str },
    #[error("`{name}` {fault}")]
    Parameter { name: String, fault: String },
    #[error(
        "to delete a conversation, give all 32 digits of its id: a name or a beginning may mean another one tomorrow"
    )]
    WholeId,
    #[error("there is no such conversation")]
    NoConversation,
    #[error("there is no such conversation among the {scanned} newest; give all 32 digits of its id")]
    NotAmongNewest { scanned: usize },
    #[error("this names several conversations; give the id of one: {}", listed(.candidates))]
    Ambiguous { candidates: Vec<Candidate> },
    #[error("a memory has at most {MEMORY_BYTES} bytes: every request of the conversation carries it")]
    MemoryTooLong,
    /// What is wrong with it, and nothing of it.
    #[error("the memory {0}")]
    Memory(&'static str),
    #[error("send the memory as application/json, `{{\"memory\": \"…\"}}`, or as text/plain in UTF-8")]
    MediaType,
    #[error("there is no such turn: the conversation has {turns}, counted from 1")]
    NoTurn { turns: usize },
    #[error("there is no such route; the routes are {routes}")]
    NoRoute { routes: String },
    #[error("send the body as application/json")]
    NotJson,
    #[error("send `{{\"token\": \"…\"}}` with the admin token in it")]
    Session,
    #[error("{0}")]
    Try(String),
    #[error("the request is longer than `server.max_body`: the proxy would refuse it with 413")]
    TryTooLong,
    /// What is wrong with the policy, line by line.
    #[error("{0}")]
    Policy(String),
    #[error("too many pages listen already; close one, or ask again later")]
    TooManyListeners,
    #[error("others are having requests explained; ask again in a moment")]
    Busy,
    #[error("the body did not arrive in time")]
    SlowBody,
    /// With the label alone: the text of the error may name hosts and files.
    #[error("the store cannot be read: {0}")]
    Store(&'static str),
    #[error("the answer could not be written")]
    Internal,
}

/// One of several conversations that were meant. Never what was said in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) id: String,
    pub(crate) tenant: String,
}

impl Problem {
    pub(crate) fn parameter(name: &str, fault: impl Into<String>) -> Problem {
        Problem::Parameter { name: name.to_owned(), fault: fault.into() }
    }

    pub(crate) fn response(&self) -> Answer {
        let (status, code) = self.status();
        let kind = match status {
            StatusCode::UNAUTHORIZED => "authentication_error",
            StatusCode::FORBIDDEN => "permission_error",
            status if status.is_server_error() => "server_error",
            _ => "invalid_request_error",
        };
        let param = match self {
            Problem::Parameter { name, .. } => Some(name.as_str()),
            _ => None,
        };
        let body = Dialect::Chat.error_body(&self.to_string(), kind, param, code);
        let mut response = reply::of(status, reply::JSON, body);
        let headers = response.headers_mut();
        match self {
            Problem::Method { allow } => {
                headers.insert(ALLOW, HeaderValue::from_static(allow));
            }
            Problem::NoToken | Problem::WrongToken => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            _ => {}
        }
        response
    }

    fn status(&self) -> (StatusCode, &'static str) {
        match self {
            Problem::NoToken | Problem::WrongToken => (StatusCode::UNAUTHORIZED, "unauthorized"),
            Problem::ForeignHost => (StatusCode::FORBIDDEN, "foreign_host"),
            Problem::ForeignSite => (StatusCode::FORBIDDEN, "foreign_site"),
            Problem::UnknownPath => (StatusCode::NOT_FOUND, "not_found"),
            Problem::Method { .. } => (StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed"),
            Problem::Parameter { .. } => (StatusCode::BAD_REQUEST, "invalid_parameter"),
            Problem::WholeId => (StatusCode::BAD_REQUEST, "whole_id_needed"),
            Problem::NoConversation | Problem::NotAmongNewest { .. } => {
                (StatusCode::NOT_FOUND, "conversation_not_found")
            }
            Problem::Ambiguous { .. } => (StatusCode::CONFLICT, "ambiguous_conversation"),
            Problem::MemoryTooLong => (StatusCode::PAYLOAD_TOO_LARGE, "memory_too_long"),
            Problem::Memory(_) => (StatusCode::BAD_REQUEST, "invalid_memory"),
            Problem::NoTurn { .. } => (StatusCode::NOT_FOUND, "turn_not_found"),
            Problem::NoRoute { .. } => (StatusCode::NOT_FOUND, "route_not_found"),
            Problem::Session => (StatusCode::BAD_REQUEST, "invalid_session"),
            Problem::Try(_) => (StatusCode::BAD_REQUEST, "invalid_request"),
            Problem::TryTooLong => (StatusCode::PAYLOAD_TOO_LARGE, "request_too_large"),
            Problem::Policy(_) => (StatusCode::BAD_REQUEST, "invalid_policy"),
            Problem::Busy => (StatusCode::SERVICE_UNAVAILABLE, "busy"),
            Problem::TooManyListeners => (StatusCode::SERVICE_UNAVAILABLE, "too_many_listeners"),
            Problem::MediaType | Problem::NotJson => {
                (StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type")
            }
            Problem::SlowBody => (StatusCode::REQUEST_TIMEOUT, "request_timeout"),
            Problem::Store(_) => (StatusCode::SERVICE_UNAVAILABLE, "store_unavailable"),
            Problem::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "internal_error"),
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Problem {
        Problem::Store(error.reason())
    }
}

/// So many are listed; a client that gave thousands of conversations one name gets a readable answer too.
const MOST_LISTED: usize = 10;

fn listed(candidates: &[Candidate]) -> String {
    let one = |candidate: &Candidate| format!("{} of tenant {}", candidate.id, candidate.tenant);
    let mut all: Vec<String> = candidates.iter().take(MOST_LISTED).map(one).collect();
    if let Some(more) = candidates.len().checked_sub(MOST_LISTED).filter(|more| *more > 0) {
        all.push(format!("and {more} more"));
    }
    all.join(", ")
}
