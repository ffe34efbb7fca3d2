//! Reads request bodies up to a limit.

use crate::error::ApiError;
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use http_body_util::BodyExt;
use hyper::body::Body;
use std::pin::pin;
use std::time::Duration;
use tokio::time::timeout;

const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// How far past its limit an oversized body is still read and discarded. A client that is cut off while
/// sending would not see the error response.
const DISCARD_BYTES: usize = 4 * 1024 * 1024;

/// The accepted media types of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyFormat {
    Json,
    Text,
}

impl BodyFormat {
    /// Returns `None` for other media types. Forms are not accepted, because a browser sends them cross-site
    /// without a preflight.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Option<BodyFormat> {
        let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok())?;
        let (kind, parameters) = content_type.split_once(';').unwrap_or((content_type, ""));
        let mut charsets = parameters.split(';').filter_map(|parameter| {
            let (name, value) = parameter.split_once('=')?;
            name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches('"'))
        });
        let is_utf8 = |charset: &str| {
            ["utf-8", "us-ascii"].iter().any(|accepted| charset.eq_ignore_ascii_case(accepted))
        };
        if !charsets.all(is_utf8) {
            return None;
        }
        match kind.trim().to_ascii_lowercase().as_str() {
            "application/json" => Some(BodyFormat::Json),
            "text/plain" => Some(BodyFormat::Text),
            _ => None,
        }
    }
}

/// Reads a whole body of at most `max` bytes. Returns `too_long` or `broken` if it is longer or its transfer
/// fails.
pub(crate) async fn read<B: Body<Data = Bytes>>(
    body: B,
    max: usize,
    too_long: ApiError,
    broken: ApiError,
) -> Result<Bytes, ApiError> {
    let read = timeout(BODY_TIMEOUT, collect(body, max, too_long, broken)).await;
    read.unwrap_or(Err(ApiError::BodyTimeout))
}

async fn collect<B: Body<Data = Bytes>>(
    body: B,
    max: usize,
    too_long: ApiError,
    broken: ApiError,
) -> Result<Bytes, ApiError> {
    let discard_limit = max.saturating_add(DISCARD_BYTES);
    // A client that sent `Expect: 100-continue` has not sent the body yet and can be refused at once.
    if body.size_hint().lower() > discard_limit as u64 {
        return Err(too_long);
    }
    let mut body = pin!(body);
    let (mut whole, mut length) = (BytesMut::new(), 0);
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return Err(broken) };
        let Ok(data) = frame.into_data() else { continue };
        length += data.len();
        if length > discard_limit {
            break;
        }
        if length <= max {
            whole.extend_from_slice(&data);
        }
    }
    if length <= max { Ok(whole.freeze()) } else { Err(too_long) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(kind: &str) -> Option<BodyFormat> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, kind.parse().unwrap());
        BodyFormat::from_headers(&headers)
    }

    #[test]
    fn the_format_follows_from_the_content_type() {
        for json in ["application/json", "Application/JSON", "application/json; charset=utf-8"] {
            assert_eq!(format(json), Some(BodyFormat::Json), "{json}");
        }
        for text in ["text/plain", "text/plain;charset=UTF-8", "text/plain; format=flowed; charset=\"utf-8\""]
        {
            assert_eq!(format(text), Some(BodyFormat::Text), "{text}");
        }
        let unsupported =
            ["", "text/html", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"];
        for other in
            unsupported.into_iter().chain(["text/plain; charset=utf-16", "text/plain;charset=latin1"])
        {
            assert_eq!(format(other), None, "{other}");
        }
        assert_eq!(BodyFormat::from_headers(&HeaderMap::new()), None);
    }

    /// A body that never ends and never sends anything.
    struct StalledBody;

    impl Body for StalledBody {
        type Data = Bytes;
        type Error = std::convert::Infallible;

        fn poll_frame(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<hyper::body::Frame<Bytes>, Self::Error>>> {
            std::task::Poll::Pending
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_stalled_body_times_out() {
        let read = read(StalledBody, 9, ApiError::MemoryTooLong, ApiError::Internal).await;
        assert_eq!(read, Err(ApiError::BodyTimeout));
    }
}
