//! Every response that Tidegate gives itself: status, code and text, in one place.

use crate::reply::headers::{figure_headers, put};
use crate::reply::upstream_failure::{FailureKind, UpstreamFailure};
use crate::reply::{over_budget, policy_code};
use crate::transport::framing::Violation;
use crate::transport::origin::Foreign;
use crate::transport::overload::Limit;
use crate::transport::path::BadPath;
use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use tidegate_context::{Figures, LimitReached, dollars};
use tidegate_store::Degraded;
use tidegate_telemetry::Outcome;
use tidegate_telemetry::names::header::DEGRADED;
use tidegate_wire::Dialect;

/// Why a request was not forwarded.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Refusal {
    Framing(Violation),
    Path(BadPath),
    /// A web page may have sent the request.
    Foreign(Foreign),
    /// The tenant is not known, and state is kept for tenants only.
    NoCredentials,
    /// `CONNECT`: Tidegate is a gateway, not a tunnel.
    Tunnel,
    TooLarge {
        limit: u64,
    },
    BodyTooSlow,
    /// A limit of the process is reached.
    Overloaded(Limit),
    /// The body has malformed framing.
    BodyBroken,
    /// The client disconnected before its body was complete. hyper needs a response that nobody will read.
    ClientLeft,
    /// The body does not match its `Content-Encoding`.
    Encoding,
    ConversationId {
        header: String,
    },
    /// `messages` appears twice, so that two parsers could see two requests.
    Ambiguous {
        key: &'static str,
    },
    /// The client asks for an unknown strategy.
    Strategy {
        known: &'static str,
    },
    /// It does not fit, whatever the policy allows to do to it.
    OverBudget(Box<Figures>),
    /// The history is ours to keep, and the client does not name the conversation.
    NoConversation {
        header: String,
    },
    /// The conversation has reached its maximum number of turns, or its maximum cost.
    Limit(LimitReached),
    /// The history is ours to keep, and it cannot be read. A turn without it would be worse than none.
    History(Degraded),
    /// Nothing below `/tidegate/` is forwarded, and this is none of our own endpoints, or there is no such conversation.
    NotFound,
    /// The route keeps the history, and this request continues one that its upstream keeps.
    TwoHistories,
    /// Another turn of the conversation is running.
    Busy,
    /// The route promises something that needs the request to be read, and it cannot be.
    Unreadable,
    /// A mistake of ours, where the request cannot be forwarded untouched either.
    Internal,
    /// The store is unavailable, and the operator prefers a refusal to a request without it.
    Store(Degraded),
    Upstream(UpstreamFailure),
}

impl Refusal {
    /// Whether the upstream has ended the request itself, or never had it. One that we gave up waiting for may still work, and bill.
    pub(crate) fn is_upstreams_own(&self) -> bool {
        match self {
            Refusal::Upstream(failure) => {
                matches!(failure.kind, FailureKind::Unreachable | FailureKind::Closed | FailureKind::Broken)
            }
            _ => false,
        }
    }

    /// The label for logs and metrics: one of few, whatever the input.
    pub(crate) fn code(&self) -> &'static str {
        self.parts().1
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.parts().0
    }

    /// Why, for the access log. More precise than the code where one code stands for several limits.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Refusal::Overloaded(Limit::Memory) => "overloaded_memory",
            Refusal::Overloaded(Limit::Requests) => "overloaded_requests",
            Refusal::Overloaded(Limit::Queue) => "overloaded_queue",
            Refusal::Overloaded(Limit::NewConversations) => "overloaded_new_conversations",
            _ => self.code(),
        }
    }

    /// How a request ends that is answered with this.
    pub(crate) fn outcome(&self) -> Outcome {
        match self {
            Refusal::ClientLeft => Outcome::ClientClosed,
            Refusal::Upstream(failure) if failure.kind.is_upstreams() => Outcome::UpstreamError,
            _ => Outcome::Refused,
        }
    }

    fn parts(&self) -> (StatusCode, &'static str) {
        match self {
            Refusal::Framing(Violation::Malformed(_)) => (StatusCode::BAD_REQUEST, "malformed_request"),
            Refusal::Framing(Violation::HeadTooLarge) => {
                (StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "request_head_too_large")
            }
            Refusal::Framing(Violation::HeadTooSlow) | Refusal::BodyTooSlow => {
                (StatusCode::REQUEST_TIMEOUT, "request_timeout")
            }
            Refusal::Path(_) => (StatusCode::BAD_REQUEST, "invalid_path"),
            Refusal::Foreign(Foreign::Host) => (StatusCode::FORBIDDEN, "host_not_allowed"),
            Refusal::Foreign(Foreign::Origin) => (StatusCode::FORBIDDEN, "origin_not_allowed"),
            Refusal::NoCredentials => (StatusCode::UNAUTHORIZED, "credentials_required"),
            Refusal::Tunnel => (StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed"),
            Refusal::TooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "request_too_large"),
            Refusal::Overloaded(_) => (StatusCode::SERVICE_UNAVAILABLE, "overloaded"),
            Refusal::BodyBroken | Refusal::ClientLeft => (StatusCode::BAD_REQUEST, "malformed_request"),
            Refusal::Encoding => (StatusCode::BAD_REQUEST, "invalid_content_encoding"),
            Refusal::ConversationId { .. } => (StatusCode::BAD_REQUEST, "invalid_conversation_id"),
            Refusal::Ambiguous { .. } => (StatusCode::BAD_REQUEST, "ambiguous_request"),
            Refusal::Strategy { .. } => (StatusCode::BAD_REQUEST, "invalid_strategy"),
            Refusal::OverBudget(_) => (StatusCode::UNPROCESSABLE_ENTITY, policy_code::OVER_BUDGET),
            Refusal::NoConversation { .. } => (StatusCode::BAD_REQUEST, "conversation_id_required"),
            Refusal::Limit(limit) => (StatusCode::UNPROCESSABLE_ENTITY, policy_code::of_limit(limit)),
            Refusal::Store(_) | Refusal::History(_) => (StatusCode::SERVICE_UNAVAILABLE, "store_unavailable"),
            Refusal::NotFound => (StatusCode::NOT_FOUND, "not_found"),
            Refusal::TwoHistories => (StatusCode::BAD_REQUEST, "history_not_supported"),
            Refusal::Busy => (StatusCode::CONFLICT, "conversation_busy"),
            Refusal::Unreadable => (StatusCode::BAD_REQUEST, "unreadable_request"),
            Refusal::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "internal_error"),
            Refusal::Upstream(failure) => failure.parts(),
        }
    }

    fn message(&self, dialect: Dialect) -> String {
        match self {
            Refusal::Framing(Violation::Malformed(rule)) => {
                format!("The request is not valid HTTP/1.1: {rule}.")
            }
            Refusal::Framing(Violation::HeadTooLarge) => {
                "The request's headers are larger than `server.max_header` allows.".to_owned()
            }
            Refusal::Framing(Violation::HeadTooSlow) => {
                "The request's headers did not arrive within `server.header_timeout`.".to_owned()
            }
            Refusal::Path(BadPath::DotSegment) => {
                "The path has a `.` or `..` segment. Send the resolved path.".to_owned()
            }
            Refusal::Path(BadPath::ForbiddenCharacter) => {
                "The path has a NUL or a backslash, which servers interpret differently.".to_owned()
            }
            Refusal::Foreign(Foreign::Host) => {
                "This listener is for programs on this machine, and the `Host` is another one's. If it is yours, add it to \
                 `server.allowed_hosts`."
                    .to_owned()
            }
            Refusal::Foreign(Foreign::Origin) => {
                "This listener is for programs on this machine, and the request is from a web page of another site. If the site is \
                 yours, add its host to `server.allowed_hosts`."
                    .to_owned()
            }
            Refusal::NoCredentials => {
                "The request has no credentials (`conversation.tenant`), so nobody knows whose conversation it is. Send an API key, \
                 or set `conversation.anonymous = \"anywhere\"`."
                    .to_owned()
            }
            Refusal::Tunnel => {
                "CONNECT is not supported: Tidegate is a gateway, not a tunnel. Use it as the \
                                `base_url` of your client instead of as its proxy."
                    .to_owned()
            }
            Refusal::TooLarge { limit } => format!(
                "The request body is larger than {limit} bytes, the limit of this gateway (`server.max_body`). \
                 Send less, or raise the limit."
            ),
            Refusal::BodyTooSlow => {
                "The request body stopped arriving for longer than `server.body_timeout`, or arrived more slowly than \
                 `server.min_body_rate` and `server.request_timeout` allow."
                    .to_owned()
            }
            Refusal::Overloaded(limit) => format!(
                "This gateway is overloaded ({}). Nothing was sent. Try again soon.",
                match limit {
                    Limit::Memory => "`server.max_memory` is in use",
                    Limit::Requests => "`server.max_requests` are in flight",
                    Limit::Queue => "`server.max_queued_work` requests wait",
                    Limit::NewConversations => "what is left is kept for conversations under way",
                    Limit::Connections | Limit::AddressConnections => "too many connections",
                }
            ),
            Refusal::BodyBroken => "The request body is not valid chunked encoding.".to_owned(),
            Refusal::ClientLeft => "The request body ended before it was complete.".to_owned(),
            Refusal::Encoding => "The request body does not match its Content-Encoding.".to_owned(),
            Refusal::ConversationId { header } => format!(
                "The header `{header}` must be 1 to 128 characters of A-Z, a-z, 0-9, `.`, `_`, `:`, `/` and `-`."
            ),
            Refusal::Ambiguous { key } => format!(
                "The key `{key}` appears more than once, so the request could be read in two ways. Send it once."
            ),
            Refusal::Strategy { known } => {
                format!(
                    "The header `x-tidegate-strategy` names an unknown strategy; expected one of: {known}."
                )
            }
            Refusal::OverBudget(figures) => over_budget::message(dialect, figures),
            Refusal::NoConversation { header } => format!(
                "This route keeps the history of conversations (`context.history = \"proxy\"`), so each request must say which one it \
                 continues, in the header `{header}`."
            ),
            Refusal::Limit(LimitReached::Turns { turns, max }) => format!(
                "The conversation has {turns} turns, and {max} is the most it may have (`context.limits.max_turns`). Start a new \
                 conversation, or raise the limit."
            ),
            Refusal::Limit(LimitReached::Cost { spent, max }) => format!(
                "The conversation has cost {}, and {} is the most it may cost (`context.limits.max_cost_usd`). Start a new conversation, \
                 or raise the limit.",
                usd(*spent),
                usd(*max)
            ),
            Refusal::Store(degraded) => format!(
                "The store of conversations is not available ({}), and this gateway forwards nothing without it \
                 (`store.on_failure`). Try again soon.",
                degraded.reason()
            ),
            Refusal::History(degraded) => format!(
                "The history of the conversation cannot be read ({}), and it is kept here alone (`context.history = \"proxy\"`). \
                 Nothing was sent. {}",
                degraded.reason(),
                match degraded {
                    Degraded::Corrupt =>
                        "A part of it is lost or damaged, and it will not come back by itself: restore the store, or give the \
                         conversation up with `DELETE /tidegate/v1/conversation` and begin anew.",
                    _ => "Try again soon.",
                }
            ),
            Refusal::NotFound => "There is no such endpoint or conversation: paths below `/tidegate/` are not forwarded.".to_owned(),
            Refusal::TwoHistories => "This route keeps the history of conversations (`context.history = \"proxy\"`), and the request \
                                      continues one that the provider keeps. Leave out `previous_response_id` and `conversation`, or \
                                      send the request to a route with `history = \"client\"`."
                .to_owned(),
            Refusal::Busy => "Another request of this conversation is still running. Turns of a conversation whose history is kept \
                              here run one after another (`conversation.turn_timeout`). Try again when it has ended."
                .to_owned(),
            Refusal::Unreadable => format!(
                "The request cannot be read as {}, and this route has limits or keeps the history, which it could not do for a request \
                 that it cannot read. Send `{}` as JSON in UTF-8, each key once.",
                dialect.noun(),
                dialect.messages_key()
            ),
            Refusal::Internal => "Tidegate failed to prepare this request, and cannot forward it as it is, because its route has \
                                  limits or keeps the history. The log says what happened."
                .to_owned(),
            Refusal::Upstream(failure) => failure.message(),
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Refusal::Upstream(_) => "upstream_error",
            Refusal::Store(_) | Refusal::History(_) | Refusal::Overloaded(_) | Refusal::Internal => {
                "server_error"
            }
            _ => "invalid_request_error",
        }
    }

    fn param(&self) -> Option<&str> {
        match self {
            Refusal::Ambiguous { key } => Some(key),
            Refusal::ConversationId { header } | Refusal::NoConversation { header } => Some(header),
            Refusal::Strategy { .. } => Some("x-tidegate-strategy"),
            Refusal::OverBudget(_) | Refusal::Limit(LimitReached::Turns { .. }) => Some("messages"),
            _ => None,
        }
    }

    /// Whether the rest of the request may still be on its way, so that the connection cannot be used again.
    fn ends_connection(&self) -> bool {
        match self {
            Refusal::Framing(_)
            | Refusal::TooLarge { .. }
            | Refusal::BodyTooSlow
            | Refusal::Overloaded(_)
            | Refusal::BodyBroken
            | Refusal::ClientLeft => true,
            Refusal::Path(_)
            | Refusal::Foreign(_)
            | Refusal::NoCredentials
            | Refusal::Tunnel
            | Refusal::Encoding
            | Refusal::ConversationId { .. }
            | Refusal::Ambiguous { .. }
            | Refusal::Strategy { .. }
            | Refusal::OverBudget(_)
            | Refusal::NoConversation { .. }
            | Refusal::Limit(_)
            | Refusal::History(_)
            | Refusal::NotFound
            | Refusal::TwoHistories
            | Refusal::Busy
            | Refusal::Unreadable
            | Refusal::Store(_)
            | Refusal::Internal
            | Refusal::Upstream(_) => false,
        }
    }
}

/// An amount in billionths of a dollar, formatted for people.
fn usd(nano: u64) -> String {
    let amount = dollars(nano);
    if amount >= 0.01 { format!("${amount:.2}") } else { format!("${amount:.6}") }
}

/// The response to a refused request, in the dialect's own error shape.
pub(crate) fn refuse(dialect: Dialect, refusal: &Refusal) -> Response<Bytes> {
    let (status, code) = refusal.parts();
    // Each API has its own name for what is too long.
    let param = refusal.param().map(|param| if param == "messages" { dialect.messages_key() } else { param });
    let body = dialect.error_body(&refusal.message(dialect), refusal.kind(), param, code);
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if refusal.ends_connection() {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    match refusal {
        Refusal::OverBudget(figures) => figure_headers(headers, figures),
        Refusal::Store(degraded) | Refusal::History(degraded) => {
            put(headers, DEGRADED, degraded.reason());
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        Refusal::Overloaded(_) => {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        Refusal::Busy => drop(headers.insert(RETRY_AFTER, HeaderValue::from_static("1"))),
        _ => {}
    }
    response
}
