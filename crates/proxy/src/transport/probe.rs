//! Asks an upstream for something small, the way that requests are sent to it: over TLS, if it speaks that, and HTTP.

use crate::transport::body::SendBody;
use crate::transport::client::Clients;
use crate::transport::upstream::Prepared;
use bytes::Bytes;
use http::header::{HeaderValue, USER_AGENT};
use http::{Request, StatusCode, Uri};
use std::error::Error;
use std::sync::Arc;
use tidegate_config::Upstream;
use tokio::time::timeout;

/// Returns the status with which the upstream answers. Whatever it is, it shows that requests reach the upstream. An error says in
/// words why they do not.
pub async fn probe(upstream: &Arc<Upstream>) -> Result<StatusCode, String> {
    let prepared = Arc::new(Prepared::new(upstream).map_err(|error| error.to_string())?);
    let mut request = Request::new(SendBody::pieces([Bytes::new()]));
    *request.uri_mut() = prepared.target(&Uri::from_static("/v1/models"));
    let headers = request.headers_mut();
    headers.insert(USER_AGENT, HeaderValue::from_static("tidegate"));
    if let Some((name, key)) = prepared.own_key("/v1/models") {
        headers.insert(name, key);
    }
    let limit = upstream.first_byte_timeout;
    match timeout(limit, Clients::default().send(&prepared, request)).await {
        Ok(Ok(response)) => Ok(response.status()),
        Ok(Err(error)) => Err(with_causes(&error)),
        Err(_) => Err(format!("no answer within {}s", limit.as_secs_f64())),
    }
}

/// An error with its causes, each once: some errors repeat theirs.
fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let words = cause.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        next = cause.source();
    }
    text
}
