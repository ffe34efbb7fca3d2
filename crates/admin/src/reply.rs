//! The parts that all answers share.

use crate::live::Live;
use crate::problem::Problem;
use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::{Either, Full};
use serde::Serialize;

/// An answer that is whole.
pub(crate) type Answer = Response<Full<Bytes>>;
/// An answer of either kind.
pub(crate) type AnyAnswer = Response<Either<Full<Bytes>, Live>>;

pub(crate) const JSON: &str = "application/json";
/// One JSON value a line.
pub(crate) const LINES: &str = "application/x-ndjson";
pub(crate) const TEXT: &str = "text/plain; charset=utf-8";
/// What Prometheus asks for.
pub(crate) const METRICS: &str = "text/plain; version=0.0.4";
/// What is sent while it happens.
pub(crate) const EVENTS: &str = "text/event-stream";

pub(crate) fn of(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    put(&mut response, CONTENT_TYPE, kind);
    guard(&mut response);
    response
}

pub(crate) fn empty(status: StatusCode) -> Answer {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    guard(&mut response);
    response
}

pub(crate) fn no_content() -> Answer {
    empty(StatusCode::NO_CONTENT)
}

pub(crate) fn json(value: &impl Serialize) -> Result<Answer, Problem> {
    let body = serde_json::to_vec(value).map_err(|_| Problem::Internal)?;
    Ok(of(StatusCode::OK, JSON, body))
}

pub(crate) fn events(live: Live) -> AnyAnswer {
    let mut response = Response::new(Either::Right(live));
    put(&mut response, CONTENT_TYPE, EVENTS);
    guard(&mut response);
    // A proxy in front that collected events before it sends them on would make them late.
    put(&mut response, HeaderName::from_static("x-accel-buffering"), "no");
    response
}

pub(crate) fn whole(answer: Answer) -> AnyAnswer {
    answer.map(Either::Left)
}

fn guard<B>(response: &mut Response<B>) {
    // A probe that is answered from a cache says nothing about this process, and conversations belong in none.
    put(response, CACHE_CONTROL, "no-store");
    // A message is never a page, whatever it looks like, and no other page may show it.
    put(response, X_CONTENT_TYPE_OPTIONS, "nosniff");
    put(response, CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'");
    put(response, X_FRAME_OPTIONS, "DENY");
    put(response, REFERRER_POLICY, "no-referrer");
    put(response, HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
}

fn put<B>(response: &mut Response<B>, name: HeaderName, value: &'static str) {
    response.headers_mut().insert(name, HeaderValue::from_static(value));
}
