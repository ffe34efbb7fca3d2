//! Reads an answer on the side while its bytes pass to the client, whatever its size and compression.

use crate::transport::decode::{Coding, coding};
use crate::transport::stream_decode::StreamDecoder;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use tidegate_engine::Tokens;
use tidegate_wire::{Answer, Dialect, DocumentReader, SideReader};

#[derive(Debug, Default)]
pub(crate) struct AnswerReader {
    /// Absent if the answer is not compressed.
    decoder: Option<Box<StreamDecoder>>,
    content: Content,
    /// How many bytes have passed, as they came.
    passed: u64,
    is_compressed: bool,
}

/// How much of an answer that cannot be read counts as one token.
const BYTES_PER_TOKEN: u64 = 4;
/// The same for a compressed answer. Text shrinks to a third or a quarter.
const COMPRESSED_BYTES_PER_TOKEN: u64 = 1;

#[derive(Debug, Default)]
enum Content {
    Events(Box<SideReader>),
    Document(Box<DocumentReader>),
    /// Neither of these, or unreadable.
    #[default]
    Ignored,
}

impl AnswerReader {
    /// Unless `is_wanted`, only the ends of events are followed.
    pub(crate) fn new(dialect: Dialect, headers: &HeaderMap, is_wanted: bool) -> AnswerReader {
        let kind = headers.get(CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
        let is = |name: &[u8]| kind.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
        let content = if is(b"text/event-stream") {
            let reader = if is_wanted { SideReader::new(dialect) } else { SideReader::follower() };
            Content::Events(Box::new(reader))
        } else if is(b"application/json") && is_wanted {
            Content::Document(Box::new(DocumentReader::new(dialect)))
        } else {
            Content::Ignored
        };
        let coding = coding(headers);
        if coding == Coding::Identity {
            return AnswerReader { decoder: None, content, passed: 0, is_compressed: false };
        }
        // Nothing can be added to a compressed stream, so only an answer that is wanted is worth decompressing.
        let decoder = StreamDecoder::new(coding).filter(|_| is_wanted).map(Box::new);
        let content = if decoder.is_some() { content } else { Content::Ignored };
        AnswerReader { decoder, content, passed: 0, is_compressed: true }
    }

    /// What must be written before another event can be; `None` if none can be written.
    pub(crate) fn missing_end(&self) -> Option<&'static str> {
        match &self.content {
            Content::Events(reader) if self.decoder.is_none() => Some(reader.missing_end()),
            Content::Events(_) | Content::Document(_) | Content::Ignored => None,
        }
    }

    pub(crate) fn feed(&mut self, data: &[u8]) {
        self.passed += data.len() as u64;
        let AnswerReader { decoder, content, .. } = self;
        let Some(decoder) = decoder else { return content.feed(data) };
        if decoder.feed(data, |plain| content.feed(plain)).is_err() {
            *content = Content::Ignored;
        }
    }

    /// Whether the client may take what it has received for the whole answer.
    pub(crate) fn is_done(&self) -> bool {
        match &self.content {
            Content::Events(reader) => reader.is_done(),
            Content::Document(_) | Content::Ignored => false,
        }
    }

    /// The upstream's answer, once it is complete; `None` if it cannot be read.
    pub(crate) fn answer(&self) -> Option<Answer> {
        match &self.content {
            Content::Events(reader) => {
                let mut answer = reader.answer().clone();
                answer.partial = !reader.is_done() && answer.finish_reasons.is_empty();
                Some(answer)
            }
            Content::Document(reader) => reader.answer(),
            Content::Ignored => None,
        }
    }

    /// Whether the answer is an error, or ends with one, although its status says otherwise.
    pub(crate) fn is_failed(&self) -> bool {
        match &self.content {
            Content::Events(reader) => reader.answer().failed,
            Content::Document(reader) => reader.may_be_error() && reader.answer().is_some_and(|it| it.failed),
            Content::Ignored => false,
        }
    }

    /// The length of the answer as it came, compressed or not.
    pub(crate) fn passed(&self) -> u64 {
        self.passed
    }

    /// About how many tokens the answer has, by its length alone.
    pub(crate) fn most_tokens(&self) -> Tokens {
        let bytes = if self.is_compressed { COMPRESSED_BYTES_PER_TOKEN } else { BYTES_PER_TOKEN };
        Tokens(self.passed.div_ceil(bytes))
    }
}

impl Content {
    fn feed(&mut self, plain: &[u8]) {
        match self {
            Content::Events(reader) => reader.feed(plain),
            Content::Document(reader) => reader.feed(plain),
            Content::Ignored => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::CONTENT_ENCODING;
    use std::io::Write;

    fn reader(headers: &[(http::HeaderName, &str)], chunks: &[&[u8]]) -> AnswerReader {
        let headers = headers.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect();
        let mut reader = AnswerReader::new(Dialect::Chat, &headers, true);
        chunks.iter().for_each(|chunk| reader.feed(chunk));
        reader
    }

    fn usage(headers: &[(http::HeaderName, &str)], chunks: &[&[u8]]) -> Option<u64> {
        reader(headers, chunks).answer()?.usage.map(|usage| usage.prompt_tokens)
    }

    const JSON: (http::HeaderName, &str) = (CONTENT_TYPE, "application/json; charset=utf-8");
    const EVENTS: (http::HeaderName, &str) = (CONTENT_TYPE, "text/event-stream");

    #[test]
    fn usage_is_read_from_documents_and_streams() {
        assert_eq!(usage(&[JSON], &[br#"{"usage":{"prompt_"#, br#"tokens":42}}"#]), Some(42));
        let events: [&[u8]; 2] = [b"data: {\"usage\":{\"prompt_tok", b"ens\":7}}\n\ndata: [DONE]\n\n"];
        assert_eq!(usage(&[EVENTS], &events), Some(7));
        assert_eq!(usage(&[EVENTS], &[b"data: [DONE]\n\n"]), None);
    }

    #[test]
    fn compressed_answers_are_read() {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(b"data: {\"usage\":{\"prompt_tokens\":7}}\n\ndata: [DONE]\n\n").unwrap();
        let events = encoder.finish().unwrap();
        let read = reader(&[EVENTS, (CONTENT_ENCODING, "gzip")], &[&events]);
        assert_eq!(read.answer().unwrap().usage.unwrap().prompt_tokens, 7);
        assert!(read.is_done());
        assert_eq!(read.missing_end(), None, "an event cannot be added to a compressed stream");
    }

    #[test]
    fn an_answer_that_is_not_what_it_says_is_ignored() {
        let document: &[u8] = br#"{"usage":{"prompt_tokens":42}}"#;
        for coding in ["gzip", "unheard-of", "gzip, br"] {
            let read = reader(&[JSON, (CONTENT_ENCODING, coding)], &[document]);
            assert_eq!(read.answer(), None, "{coding}");
            assert_eq!(read.passed(), document.len() as u64);
        }
    }
}
