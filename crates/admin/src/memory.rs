//! A memory on its way in: the text that every request of a conversation is to carry.

use crate::problem::Problem;
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use http_body_util::BodyExt;
use hyper::body::Body;
use serde::Deserialize;
use std::pin::pin;
use std::time::Duration;
use tokio::time::timeout;

/// The longest memory. One that is longer would be paid for with every request.
pub const MEMORY_BYTES: usize = 64 * 1024;

/// JSON may spell every byte with six.
const JSON_BYTES: usize = 6 * MEMORY_BYTES + 1024;
/// So much of a body that is too long is read all the same: a sender that is cut off while it sends does not see why.
const PATIENCE_BYTES: usize = 4 * 1024 * 1024;
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// The text that a request brings, in one of two formats.
pub(crate) async fn sent<B: Body<Data = Bytes>>(headers: &HeaderMap, body: B) -> Result<String, Problem> {
    let format = Format::of(headers)?;
    let read = timeout(BODY_TIMEOUT, read(body, format.most())).await;
    let text = format.text(read.unwrap_or(Err(Problem::SlowBody))?)?;
    match text.len() {
        0..=MEMORY_BYTES => checked(text),
        _ => Err(Problem::MemoryTooLong),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Json,
    Text,
}

impl Format {
    /// A form, which a page of any site could send without asking first, is none.
    fn of(headers: &HeaderMap) -> Result<Format, Problem> {
        let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).ok_or(Problem::MediaType)?;
        let (kind, parameters) = kind.split_once(';').unwrap_or((kind, ""));
        let mut charsets = parameters.split(';').filter_map(|parameter| {
            let (name, value) = parameter.split_once('=')?;
            name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches('"'))
        });
        let is_utf8 =
            |charset: &str| ["utf-8", "us-ascii"].iter().any(|ours| charset.eq_ignore_ascii_case(ours));
        if !charsets.all(is_utf8) {
            return Err(Problem::MediaType);
        }
        match kind.trim().to_ascii_lowercase().as_str() {
            "application/json" => Ok(Format::Json),
            "text/plain" => Ok(Format::Text),
            _ => Err(Problem::MediaType),
        }
    }

    fn most(self) -> usize {
        match self {
            Format::Json => JSON_BYTES,
            Format::Text => MEMORY_BYTES,
        }
    }

    fn text(self, body: Bytes) -> Result<String, Problem> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Sent {
            memory: String,
        }
        let text = String::from_utf8(body.into()).map_err(|_| Problem::Memory("is not UTF-8"))?;
        match self {
            Format::Json => serde_json::from_str(&text)
                .map(|Sent { memory }| memory)
                // The parser's own words may quote what was sent.
                .map_err(|_| Problem::Memory("must be sent as `{\"memory\": \"…\"}` with a text in it")),
            Format::Text => Ok(text),
        }
    }
}

/// Whether it is a text that a model can be told. One that is empty would never be seen: a script whose variable is not set
/// would take away what is there.
fn checked(text: String) -> Result<String, Problem> {
    match text {
        text if text.trim().is_empty() => Err(Problem::Memory("is empty; DELETE takes it away")),
        text if text.contains('\0') => Err(Problem::Memory("has a NUL in it, which is part of no text")),
        text => Ok(text),
    }
}

async fn read<B: Body<Data = Bytes>>(body: B, most: usize) -> Result<Bytes, Problem> {
    // A sender that says how much is to come and waits for our word has not sent it yet.
    if body.size_hint().lower() > PATIENCE_BYTES as u64 {
        return Err(Problem::MemoryTooLong);
    }
    let mut body = pin!(body);
    let (mut whole, mut length) = (BytesMut::new(), 0);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Problem::Memory("did not arrive whole"))?;
        let Ok(data) = frame.into_data() else { continue };
        length += data.len();
        if length > PATIENCE_BYTES {
            break;
        }
        if length <= most {
            whole.extend_from_slice(&data);
        }
    }
    if length <= most { Ok(whole.freeze()) } else { Err(Problem::MemoryTooLong) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(kind: &str) -> Option<Format> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, kind.parse().unwrap());
        Format::of(&headers).ok()
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
        assert_eq!(Format::of(&HeaderMap::new()), Err(Problem::MediaType));
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
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, "text/plain".parse().unwrap());
        assert_eq!(sent(&headers, Endless).await, Err(Problem::SlowBody));
    }
}
