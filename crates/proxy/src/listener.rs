//! Hears what an answer says about itself while its bytes pass to the client.

use bytes::Bytes;
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use tidegate_wire::{Answer, Dialect, SideReader};

#[derive(Debug)]
pub(crate) enum Listener {
    Events(Box<SideReader>),
    /// A JSON document, kept until it is complete.
    Document(Vec<Bytes>, usize),
    /// An answer that is compressed, or neither of these.
    Deaf,
}

/// A longer document is not worth its memory; the usage is in the next one too.
const LONGEST: usize = 1024 * 1024;

impl Listener {
    /// Where nobody `listens`, only the ends of events are followed.
    pub(crate) fn new(headers: &HeaderMap, listens: bool) -> Listener {
        let kind = headers.get(CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
        let is = |name: &[u8]| kind.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
        if headers.contains_key(CONTENT_ENCODING) {
            Listener::Deaf
        } else if is(b"text/event-stream") {
            let reader = if listens { SideReader::new(Dialect::Chat) } else { SideReader::follower() };
            Listener::Events(Box::new(reader))
        } else if is(b"application/json") && listens {
            Listener::Document(Vec::new(), 0)
        } else {
            Listener::Deaf
        }
    }

    /// What must be written before another event can be; nothing where this is no stream of events.
    pub(crate) fn missing_end(&self) -> Option<&'static str> {
        match self {
            Listener::Events(reader) => Some(reader.missing_end()),
            Listener::Document(..) | Listener::Deaf => None,
        }
    }

    pub(crate) fn hear(&mut self, data: &Bytes) {
        match self {
            Listener::Events(reader) => reader.feed(data),
            Listener::Document(_, length) if *length + data.len() > LONGEST => *self = Listener::Deaf,
            Listener::Document(chunks, length) => {
                *length += data.len();
                chunks.push(data.clone());
            }
            Listener::Deaf => {}
        }
    }

    /// Whether the client may take what it has heard so far for the whole answer.
    pub(crate) fn is_done(&self) -> bool {
        match self {
            Listener::Events(reader) => reader.is_done(),
            Listener::Document(..) | Listener::Deaf => false,
        }
    }

    /// What the upstream has answered, once it is complete.
    pub(crate) fn answer(&self) -> Option<Answer> {
        match self {
            Listener::Events(reader) => Some(reader.answer().clone()),
            Listener::Document(chunks, _) => Dialect::Chat.read_answer(&chunks.concat()),
            Listener::Deaf => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(headers: &[(http::HeaderName, &str)], chunks: &[&'static str]) -> Option<u64> {
        let headers = headers.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect();
        let mut listener = Listener::new(&headers, true);
        chunks.iter().for_each(|chunk| listener.hear(&Bytes::from_static(chunk.as_bytes())));
        listener.answer()?.usage.map(|usage| usage.prompt_tokens)
    }

    #[test]
    fn usage_is_heard_in_documents_and_streams() {
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
