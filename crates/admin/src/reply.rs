//! The parts that all answers share.

use crate::problem::Problem;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::Full;
use serde::Serialize;

pub(crate) const JSON: &str = "application/json";
/// One JSON value a line.
pub(crate) const LINES: &str = "application/x-ndjson";
pub(crate) const TEXT: &str = "text/plain; charset=utf-8";
/// What Prometheus asks for.
pub(crate) const METRICS: &str = "text/plain; version=0.0.4";

pub(crate) fn of(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    put(&mut response, CONTENT_TYPE, kind);
    guard(&mut response);
    response
}

pub(crate) fn no_content() -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = StatusCode::NO_CONTENT;
    guard(&mut response);
    response
}

pub(crate) fn json(value: &impl Serialize) -> Result<Response<Full<Bytes>>, Problem> {
    let body = serde_json::to_vec(value).map_err(|_| Problem::Internal)?;
    Ok(of(StatusCode::OK, JSON, body))
}

fn guard(response: &mut Response<Full<Bytes>>) {
    // A probe that is answered from a cache says nothing about this process, and conversations belong in none.
    put(response, CACHE_CONTROL, "no-store");
    // A message is never a page, whatever it looks like.
    put(response, X_CONTENT_TYPE_OPTIONS, "nosniff");
}

fn put(response: &mut Response<Full<Bytes>>, name: HeaderName, value: &'static str) {
    response.headers_mut().insert(name, HeaderValue::from_static(value));
}
