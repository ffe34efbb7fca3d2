//! Builds responses with the headers that all of them share.

use crate::error::ApiError;
use crate::event_stream::EventStream;
use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::{Either, Full};
use serde::Serialize;

/// A response whose body is complete.
pub(crate) type FullResponse = Response<Full<Bytes>>;
/// A complete response or an event stream.
pub(crate) type AdminResponse = Response<Either<Full<Bytes>, EventStream>>;

pub(crate) const JSON: &str = "application/json";
/// One JSON value per line.
pub(crate) const NDJSON: &str = "application/x-ndjson";
pub(crate) const TEXT: &str = "text/plain; charset=utf-8";
/// The Prometheus text format.
pub(crate) const METRICS: &str = "text/plain; version=0.0.4";
/// Server-sent events.
pub(crate) const EVENTS: &str = "text/event-stream";

pub(crate) fn with_body(
    status: StatusCode,
    content_type: &'static str,
    body: impl Into<Bytes>,
) -> FullResponse {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    set(&mut response, CONTENT_TYPE, content_type);
    set_security_headers(&mut response);
    response
}

pub(crate) fn empty(status: StatusCode) -> FullResponse {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    set_security_headers(&mut response);
    response
}

pub(crate) fn no_content() -> FullResponse {
    empty(StatusCode::NO_CONTENT)
}

pub(crate) fn json(value: &impl Serialize) -> Result<FullResponse, ApiError> {
    let body = serde_json::to_vec(value).map_err(|_| ApiError::Internal)?;
    Ok(with_body(StatusCode::OK, JSON, body))
}

pub(crate) fn event_stream(stream: EventStream) -> AdminResponse {
    let mut response = Response::new(Either::Right(stream));
    set(&mut response, CONTENT_TYPE, EVENTS);
    set_security_headers(&mut response);
    // A buffering reverse proxy would delay events.
    set(&mut response, HeaderName::from_static("x-accel-buffering"), "no");
    response
}

pub(crate) fn full(response: FullResponse) -> AdminResponse {
    response.map(Either::Left)
}

fn set_security_headers<B>(response: &mut Response<B>) {
    // A cached probe says nothing about this process, and conversations must not be cached.
    set(response, CACHE_CONTROL, "no-store");
    // Recorded messages must never be rendered as a page or framed by one.
    set(response, X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(response, CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'");
    set(response, X_FRAME_OPTIONS, "DENY");
    set(response, REFERRER_POLICY, "no-referrer");
    set(response, HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
}

fn set<B>(response: &mut Response<B>, name: HeaderName, value: &'static str) {
    response.headers_mut().insert(name, HeaderValue::from_static(value));
}
