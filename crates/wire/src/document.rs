use crate::skim::{Skimmed, Skimmer};
use crate::{Answer, Dialect};

/// Reads a response that is one JSON document, while its bytes pass to the client. The chunks may be cut anywhere.
///
/// A document of any size is read in bounded memory: beyond the usual size, members that nobody reads are left out, and of a
/// document that is huge even so, only the usage is kept.
///
/// ```
/// use tidegate_wire::{Dialect, DocumentReader};
/// let mut reader = DocumentReader::new(Dialect::Chat);
/// reader.feed(br#"{"choices":[],"usage":{"prompt_tok"#);
/// reader.feed(br#"ens":42}}"#);
/// assert_eq!(reader.answer().unwrap().usage.unwrap().prompt_tokens, 42);
/// ```
#[derive(Clone, Debug)]
pub struct DocumentReader {
    dialect: Dialect,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    Whole(Vec<u8>),
    Skimmed(Box<Skimmer>),
}

/// The most that is kept without looking at it. Answers are rarely larger.
const WHOLE_CAP: usize = 1 << 20;
/// The most that is kept of a larger document.
const SKIMMED_CAP: usize = 8 << 20;

impl DocumentReader {
    #[must_use]
    pub fn new(dialect: Dialect) -> DocumentReader {
        DocumentReader { dialect, content: Content::Whole(Vec::new()) }
    }

    /// Reads the next bytes of the response.
    pub fn feed(&mut self, chunk: &[u8]) {
        match &mut self.content {
            Content::Whole(document) if document.len() + chunk.len() <= WHOLE_CAP => {
                document.extend_from_slice(chunk);
            }
            Content::Whole(document) => {
                let mut skimmer = Box::new(Skimmer::new(SKIMMED_CAP, usize::MAX));
                skimmer.feed(document);
                skimmer.feed(chunk);
                self.content = Content::Skimmed(skimmer);
            }
            Content::Skimmed(skimmer) => skimmer.feed(chunk),
        }
    }

    /// Whether the document can be an error. Asking is cheaper than reading it.
    #[must_use]
    pub fn may_be_error(&self) -> bool {
        match &self.content {
            Content::Whole(document) => [&b"error"[..], b"failed", b"cancelled"]
                .into_iter()
                .any(|word| memchr::memmem::find(document, word).is_some()),
            // No error is that long.
            Content::Skimmed(_) => false,
        }
    }

    /// Returns the answer, or `None` if the document is not a complete JSON object.
    #[must_use]
    pub fn answer(&self) -> Option<Answer> {
        let skimmed = match &self.content {
            Content::Whole(document) => return self.dialect.read_answer(document),
            Content::Skimmed(skimmer) => skimmer.finish()?,
        };
        match skimmed {
            Skimmed::Whole { document, .. } => self.dialect.read_answer(&document),
            Skimmed::Rest(rest) => {
                let mut answer = self.dialect.read_answer(&rest.document())?;
                answer.truncated = true;
                Some(answer)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(document: &str) -> Option<Answer> {
        let mut reader = DocumentReader::new(Dialect::Chat);
        document.as_bytes().chunks(16 * 1024).for_each(|chunk| reader.feed(chunk));
        reader.answer()
    }

    #[test]
    fn a_document_with_huge_probabilities_is_read_whole() {
        let alternatives = r#"{"token":"x","logprob":-0.1,"bytes":[120]},"#.repeat(200_000);
        let document = format!(
            r#"{{"id":"c","choices":[{{"index":0,"logprobs":{{"content":[{alternatives}{{}}]}},"message":{{"content":"hi"}},
               "finish_reason":"stop"}}],"usage":{{"prompt_tokens":5,"completion_tokens":6}}}}"#
        );
        assert!(document.len() > SKIMMED_CAP);
        let answer = read(&document).unwrap();
        assert_eq!((answer.content.as_deref(), answer.truncated), (Some("hi"), false));
        assert_eq!(answer.usage.unwrap().completion_tokens, 6);
    }

    #[test]
    fn the_usage_of_a_document_that_is_too_large_is_read() {
        let audio = "A".repeat(SKIMMED_CAP);
        let document = format!(
            r#"{{"choices":[{{"message":{{"audio":{{"data":"{audio}"}}}}}}],"usage":{{"prompt_tokens":5}}}}"#
        );
        let answer = read(&document).unwrap();
        assert!(answer.truncated && answer.usage.unwrap().prompt_tokens == 5);
        assert_eq!(read(&document[..document.len() - 1]), None);
    }
}
