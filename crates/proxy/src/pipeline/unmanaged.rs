//! Tells clients and operators of LLM endpoints that no route manages: their requests pass unedited.

use crate::reply::headers::put;
use http::{HeaderMap, Method};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use tidegate_telemetry::names::header;
use tracing::warn;

/// The value of `x-tidegate-route` without a route.
const NO_ROUTE: &str = "none";

/// How the paths of endpoints that take a conversation end.
const ENDPOINTS: [&str; 10] = [
    "/chat/completions",
    "/completions",
    "/responses",
    "/messages",
    "/api/chat",
    "/api/generate",
    ":generatecontent",
    ":streamgeneratecontent",
    "/converse",
    "/converse-stream",
];

/// The most paths that are warned of, because clients choose them.
const MAX_WARNINGS: usize = 64;

/// Returns the headers of the response to a request that is passed on unedited. Warns once per path that no route matches: where one does,
/// the operator wants it so.
pub(crate) fn unmanaged_headers(method: &Method, path: &str, route: Option<&str>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if method == Method::POST && is_endpoint(path) {
        put(&mut headers, header::ROUTE, route.unwrap_or(NO_ROUTE));
        if route.is_none() && is_first(path) {
            warn!(path, "requests to this LLM endpoint pass unedited: no route manages it");
        }
    }
    headers
}

fn is_endpoint(path: &str) -> bool {
    let path = path.trim_end_matches('/').to_ascii_lowercase();
    ENDPOINTS.iter().any(|end| path.ends_with(end))
}

fn is_first(path: &str) -> bool {
    static WARNED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut warned = WARNED.lock().unwrap_or_else(PoisonError::into_inner);
    warned.len() < MAX_WARNINGS && warned.insert(path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_that_take_a_conversation_are_known() {
        for path in [
            "/v1/responses",
            "/v1/messages",
            "/v1beta/models/gemini-2.5-pro:generateContent",
            "/api/chat",
            "/v1/completions/",
        ] {
            assert_eq!(unmanaged_headers(&Method::POST, path, None)["x-tidegate-route"], "none", "{path}");
            assert_eq!(
                unmanaged_headers(&Method::POST, path, Some("own"))["x-tidegate-route"],
                "own",
                "{path}"
            );
        }
        assert!(unmanaged_headers(&Method::GET, "/v1/responses", None).is_empty());
        for path in ["/v1/models", "/v1/embeddings", "/v1/files", "/", "/v1/responses/r_1/cancel"] {
            assert!(unmanaged_headers(&Method::POST, path, None).is_empty(), "{path}");
        }
    }
}
