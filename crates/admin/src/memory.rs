//! Reads and validates a memory: the note that Tidegate adds to every request of a conversation.

use crate::body::{self, BodyFormat};
use crate::error::ApiError;
use bytes::Bytes;
use http::HeaderMap;
use hyper::body::Body;
use serde::Deserialize;

/// The maximum length of a memory, which is billed with every request.
pub const MAX_MEMORY_BYTES: usize = 64 * 1024;

/// JSON may escape each byte as six.
const MAX_JSON_BYTES: usize = 6 * MAX_MEMORY_BYTES + 1024;

/// Reads a memory sent as JSON or plain text.
pub(crate) async fn read_body<B: Body<Data = Bytes>>(
    headers: &HeaderMap,
    body: B,
) -> Result<String, ApiError> {
    let format = BodyFormat::from_headers(headers).ok_or(ApiError::UnsupportedMediaType)?;
    let max = match format {
        BodyFormat::Json => MAX_JSON_BYTES,
        BodyFormat::Text => MAX_MEMORY_BYTES,
    };
    let broken = ApiError::InvalidMemory("is incomplete");
    let body = body::read(body, max, ApiError::MemoryTooLong, broken).await?;
    let text = parse(format, body)?;
    match text.len() {
        0..=MAX_MEMORY_BYTES => validate(text),
        _ => Err(ApiError::MemoryTooLong),
    }
}

fn parse(format: BodyFormat, body: Bytes) -> Result<String, ApiError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct MemoryBody {
        memory: String,
    }
    let text = String::from_utf8(body.into()).map_err(|_| ApiError::InvalidMemory("is not UTF-8"))?;
    match format {
        BodyFormat::Json => serde_json::from_str(&text)
            .map(|MemoryBody { memory }| memory)
            // The parser's own message may quote the memory.
            .map_err(|_| ApiError::InvalidMemory("must be sent as `{\"memory\": \"…\"}` with a string")),
        BodyFormat::Text => Ok(text),
    }
}

/// Rejects an empty memory: a script with an unset variable would otherwise erase the current one.
fn validate(text: String) -> Result<String, ApiError> {
    match text {
        text if text.trim().is_empty() => Err(ApiError::InvalidMemory("is empty; use DELETE to remove it")),
        text if text.contains('\0') => Err(ApiError::InvalidMemory("contains a NUL character")),
        text => Ok(text),
    }
}
