//! Reads an answer on the side while its bytes pass to the client.

use bytes::Bytes;
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use tidegate_wire::{Answer, Dialect, SideReader};

#[derive(Debug)]
pub(crate) enum AnswerReader {
    Events(Box<SideReader>),
    /// A JSON document, kept until it is complete.
    Document {
        dialect: Dialect,
        chunks: Vec<Bytes>,
        length: usize,
    },
    /// Compressed, or neither of these.
    Ignored,
}

/// The longest JSON document that is kept.
const MAX_DOCUMENT: usize = 1024 * 1024;

impl AnswerReader {
    /// Unless `is_wanted`, only the ends of events are followed.
    pub(crate) fn new(dialect: Dialect, headers: &HeaderMap, is_wanted: bool) -> AnswerReader {
        let kind = headers.get(CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
        let is = |name: &[u8]| kind.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
        if headers.contains_key(CONTENT_ENCODING) {
            AnswerReader::Ignored
        } else if is(b"text/event-stream") {
            let reader = if is_wanted { SideReader::new(dialect) } else { SideReader::follower() };
            AnswerReader::Events(Box::new(reader))
        } else if is(b"application/json") && is_wanted {
            AnswerReader::Document { dialect, chunks: Vec::new(), length: 0 }
        } else {
            AnswerReader::Ignored
        }
    }

    /// What must be written before another event can be; `None` if this is not a stream of events.
    pub(crate) fn missing_end(&self) -> Option<&'static str> {
        match self {
            AnswerReader::Events(reader) => Some(reader.missing_end()),
            AnswerReader::Document { .. } | AnswerReader::Ignored => None,
        }
    }

    pub(crate) fn feed(&mut self, data: &Bytes) {
        match self {
            AnswerReader::Events(reader) => reader.feed(data),
            AnswerReader::Document { length, .. } if *length + data.len() > MAX_DOCUMENT => {
                *self = AnswerReader::Ignored
            }
            AnswerReader::Document { chunks, length, .. } => {
                *length += data.len();
                chunks.push(data.clone());
            }
            AnswerReader::Ignored => {}
        }
    }

    /// Whether the client may take what it has received for the whole answer.
    pub(crate) fn is_done(&self) -> bool {
        match self {
            AnswerReader::Events(reader) => reader.is_done(),
            AnswerReader::Document { .. } | AnswerReader::Ignored => false,
        }
    }

    /// The upstream's answer, once it is complete.
    pub(crate) fn answer(&self) -> Option<Answer> {
        match self {
            AnswerReader::Events(reader) => Some(reader.answer().clone()),
            AnswerReader::Document { dialect, chunks, .. } => dialect.read_answer(&chunks.concat()),
            AnswerReader::Ignored => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(headers: &[(http::HeaderName, &str)], chunks: &[&'static str]) -> Option<u64> {
        let headers = headers.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect();
        let mut reader = AnswerReader::new(Dialect::Chat, &headers, true);
        chunks.iter().for_each(|chunk| reader.feed(&Bytes::from_static(chunk.as_bytes())));
        reader.answer()?.usage.map(|usage| usage.prompt_tokens)
    }

    #[test]
    fn usage_is_read_from_documents_and_streams() {
        let json = [(CONTENT_TYPE, "application/json; charset=utf-8")];
        assert_eq!(usage(&json, &[r#"{"usage":{"prompt_"#, r#"tokens":42}}"#]), Some(42));
        let stream = [(CONTENT_TYPE, "text/event-stream")];
        assert_eq!(
            usage(&stream, &["data: {\"usage\":{\"prompt_tok", "ens\":7}}\n\ndata: [DONE]\n\n"]),
            Some(7)
        );
        assert_eq!(usage(&stream, &["data: [DONE]\n\n"]), None);
        let zipped = [(CONTENT_TYPE, "application/json"), (CONTENT_ENCODING, "gzip")];
        assert_eq!(usage(&zipped, &[r#"{"usage":{"prompt_tokens":42}}"#]), None);
    }
}
