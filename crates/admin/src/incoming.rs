//! The body of a request, up to a limit.

use crate::problem::Problem;
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use http_body_util::BodyExt;
use hyper::body::Body;
use std::pin::pin;
use std::time::Duration;
use tokio::time::timeout;

const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// So much more than its limit is read of a body that is too long all the same: a sender that is cut off while it sends does not see why.
const PATIENCE_BYTES: usize = 4 * 1024 * 1024;

/// The media types that a body may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    Text,
}

impl Format {
    /// A form, which a page of any site could send without asking first, is none.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Format> {
        let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok())?;
        let (kind, parameters) = kind.split_once(';').unwrap_or((kind, ""));
        let mut charsets = parameters.split(';').filter_map(|parameter| {
            let (name, value) = parameter.split_once('=')?;
            name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches('"'))
        });
        let is_utf8 =
            |charset: &str| ["utf-8", "us-ascii"].iter().any(|ours| charset.eq_ignore_ascii_case(ours));
        if !charsets.all(is_utf8) {
            return None;
        }
        match kind.trim().to_ascii_lowercase().as_str() {
            "application/json" => Some(Format::Json),
            "text/plain" => Some(Format::Text),
            _ => None,
        }
    }
}

/// All of a body, if it is no longer than `most`; else, and where it does not arrive, the problem that is said then.
pub(crate) async fn read<B: Body<Data = Bytes>>(
    body: B,
    most: usize,
    too_long: Problem,
    broken: Problem,
) -> Result<Bytes, Problem> {
    let read = timeout(BODY_TIMEOUT, collect(body, most, too_long, broken)).await;
    read.unwrap_or(Err(Problem::SlowBody))
}

async fn collect<B: Body<Data = Bytes>>(
    body: B,
    most: usize,
    too_long: Problem,
    broken: Problem,
) -> Result<Bytes, Problem> {
    let patience = most.saturating_add(PATIENCE_BYTES);
    // A sender that says how much is to come and waits for our word has not sent it yet.
    if body.size_hint().lower() > patience as u64 {
        return Err(too_long);
    }
    let mut body = pin!(body);
    let (mut whole, mut length) = (BytesMut::new(), 0);
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return Err(broken) };
        let Ok(data) = frame.into_data() else { continue };
        length += data.len();
        if length > patience {
            break;
        }
        if length <= most {
            whole.extend_from_slice(&data);
        }
    }
    if length <= most { Ok(whole.freeze()) } else { Err(too_long) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(kind: &str) -> Option<Format> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, kind.parse().unwrap());
        Format::of(&headers)
    }

    #[test]
    fn formats_are_told_by_their_media_type() {
        for json in ["application/json", "Application/JSON", "application/json; charset=utf-8"] {
            assert_eq!(format(json), Some(Format::Json), "{json}");
        }
        for text in ["text/plain", "text/plain;charset=UTF-8", "text/plain; format=flowed; charset=\"utf-8\""]
        {
            assert_eq!(format(text), Some(Format::Text), "{text}");
        }
        let foreign =
            ["", "text/html", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"];
        for other in foreign.into_iter().chain(["text/plain; charset=utf-16", "text/plain;charset=latin1"]) {
            assert_eq!(format(other), None, "{other}");
        }
        assert_eq!(Format::of(&HeaderMap::new()), None);
    }

    /// Says that there is more, and never sends it.
    struct Endless;

    impl Body for Endless {
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
    async fn who_never_finishes_is_not_waited_for() {
        let read = read(Endless, 9, Problem::MemoryTooLong, Problem::Internal).await;
        assert_eq!(read, Err(Problem::SlowBody));
    }
}
