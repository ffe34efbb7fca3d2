//! A memory on its way in: the text that every request of a conversation is to carry.

use crate::incoming::{self, Format};
use crate::problem::Problem;
use bytes::Bytes;
use http::HeaderMap;
use hyper::body::Body;
use serde::Deserialize;

/// The longest memory. One that is longer would be paid for with every request.
pub const MEMORY_BYTES: usize = 64 * 1024;

/// JSON may spell every byte with six.
const JSON_BYTES: usize = 6 * MEMORY_BYTES + 1024;

/// The text that a request brings, in one of two formats.
pub(crate) async fn sent<B: Body<Data = Bytes>>(headers: &HeaderMap, body: B) -> Result<String, Problem> {
    let format = Format::of(headers).ok_or(Problem::MediaType)?;
    let most = match format {
        Format::Json => JSON_BYTES,
        Format::Text => MEMORY_BYTES,
    };
    let broken = Problem::Memory("did not arrive whole");
    let body = incoming::read(body, most, Problem::MemoryTooLong, broken).await?;
    let text = text(format, body)?;
    match text.len() {
        0..=MEMORY_BYTES => checked(text),
        _ => Err(Problem::MemoryTooLong),
    }
}

fn text(format: Format, body: Bytes) -> Result<String, Problem> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Sent {
        memory: String,
    }
    let text = String::from_utf8(body.into()).map_err(|_| Problem::Memory("is not UTF-8"))?;
    match format {
        Format::Json => serde_json::from_str(&text)
            .map(|Sent { memory }| memory)
            // The parser's own words may quote what was sent.
            .map_err(|_| Problem::Memory("must be sent as `{\"memory\": \"…\"}` with a text in it")),
        Format::Text => Ok(text),
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
