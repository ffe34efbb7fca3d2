use crate::dialect::StreamState;
use crate::{Answer, Dialect};
use memchr::memchr2;

/// The maximum size of an event. A larger one is not read: an upstream must not decide how much memory we use.
const EVENT_CAP: usize = 1 << 20;

/// Reads a stream of server-sent events while its bytes pass to the client. The chunks may be cut anywhere.
///
/// ```
/// use tidegate_wire::{Dialect, SideReader};
/// let mut reader = SideReader::new(Dialect::Chat);
/// reader.feed(b"data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\ndata: [DO");
/// assert_eq!(reader.answer().content.as_deref(), Some("hi"));
/// assert_eq!(reader.missing_end(), "\n\n");
/// reader.feed(b"NE]\n\n");
/// assert!(reader.is_done());
/// ```
#[derive(Clone, Debug)]
pub struct SideReader {
    /// How events are read. `None` if only their ends are followed.
    dialect: Option<Dialect>,
    answer: Answer,
    done: bool,
    /// The current line so far.
    line: Vec<u8>,
    /// The data lines of the current event so far, joined.
    data: Vec<u8>,
    has_data: bool,
    /// Whether the current event exceeds the cap.
    skipping: bool,
    position: Position,
    /// Whether the last byte was a carriage return. A line feed right after it ends the same line.
    after_return: bool,
    byte_order_mark: ByteOrderMark,
}

/// Where in an event the bytes so far end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    /// Between two events.
    Boundary,
    /// At the start of a line, inside an event.
    LineStart,
    InLine,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ByteOrderMark {
    /// The stream so far is this many bytes of a byte order mark.
    Partial(usize),
    /// The stream is past the place where the mark can be.
    Past,
}

/// A mark at the start of the stream is not part of the first line.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl SideReader {
    /// Creates a reader that reads the answer in the stream.
    #[must_use]
    pub fn new(dialect: Dialect) -> SideReader {
        SideReader::with(Some(dialect))
    }

    /// Creates a reader that only follows where events end. Its answer stays empty.
    #[must_use]
    pub fn follower() -> SideReader {
        SideReader::with(None)
    }

    fn with(dialect: Option<Dialect>) -> SideReader {
        SideReader {
            dialect,
            answer: Answer::default(),
            done: false,
            line: Vec::new(),
            data: Vec::new(),
            has_data: false,
            skipping: false,
            position: Position::Boundary,
            after_return: false,
            byte_order_mark: ByteOrderMark::Partial(0),
        }
    }

    /// Reads the next bytes of the response.
    pub fn feed(&mut self, mut chunk: &[u8]) {
        chunk = self.strip_byte_order_mark(chunk);
        while let Some(&first) = chunk.first() {
            if std::mem::take(&mut self.after_return) && first == b'\n' {
                chunk = &chunk[1..];
                continue;
            }
            match memchr2(b'\n', b'\r', chunk) {
                Some(end) => {
                    self.extend_line(&chunk[..end]);
                    self.after_return = chunk[end] == b'\r';
                    self.end_line();
                    chunk = &chunk[end + 1..];
                }
                None => {
                    self.extend_line(chunk);
                    return;
                }
            }
        }
    }

    /// Returns the answer so far.
    #[must_use]
    pub fn answer(&self) -> &Answer {
        &self.answer
    }

    /// Returns whether the event that ends the answer has arrived.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Returns the line ends that complete the current event, so that another one can be written after it.
    ///
    /// After a carriage return it takes two line feeds, because the first one belongs to the carriage return.
    #[must_use]
    pub fn missing_end(&self) -> &'static str {
        if matches!(self.byte_order_mark, ByteOrderMark::Partial(1..)) {
            // An incomplete byte order mark is the beginning of a line.
            return "\n\n";
        }
        match self.position {
            Position::Boundary => "",
            Position::LineStart if self.after_return => "\n\n",
            Position::LineStart => "\n",
            Position::InLine => "\n\n",
        }
    }

    fn strip_byte_order_mark<'a>(&mut self, chunk: &'a [u8]) -> &'a [u8] {
        let ByteOrderMark::Partial(seen) = self.byte_order_mark else { return chunk };
        let rest = &BYTE_ORDER_MARK[seen..];
        let matching = chunk.iter().zip(rest).take_while(|(a, b)| a == b).count();
        if matching == rest.len() {
            self.byte_order_mark = ByteOrderMark::Past;
            &chunk[matching..]
        } else if matching == chunk.len() {
            self.byte_order_mark = ByteOrderMark::Partial(seen + matching);
            &[]
        } else {
            // It is not a mark, so its bytes belong to the first line.
            self.byte_order_mark = ByteOrderMark::Past;
            self.extend_line(&BYTE_ORDER_MARK[..seen]);
            chunk
        }
    }

    fn extend_line(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.position = Position::InLine;
        if self.dialect.is_none() {
            return;
        }
        if self.line.len() + self.data.len() + bytes.len() > EVENT_CAP {
            self.skipping = true;
        }
        if self.skipping {
            self.line.clear();
            self.data.clear();
        } else {
            self.line.extend_from_slice(bytes);
        }
    }

    fn end_line(&mut self) {
        if self.position != Position::InLine {
            self.end_event();
            return;
        }
        self.position = Position::LineStart;
        if let Some(value) = self.line.strip_prefix(b"data") {
            let value = match value {
                [] => Some(value),
                [b':', b' ', value @ ..] | [b':', value @ ..] => Some(value),
                _ => None,
            };
            if let Some(value) = value {
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
                self.has_data = true;
            }
        }
        self.line.clear();
    }

    fn end_event(&mut self) {
        self.position = Position::Boundary;
        if self.skipping {
            self.answer.truncated = true;
        } else if let Some(dialect) = self.dialect.filter(|_| self.has_data) {
            match dialect.read_event(&self.data, &mut self.answer) {
                StreamState::Open => {}
                StreamState::Done => self.done = true,
            }
        }
        self.data.clear();
        self.has_data = false;
        self.skipping = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(chunks: &[&[u8]]) -> SideReader {
        let mut reader = SideReader::new(Dialect::Chat);
        chunks.iter().for_each(|chunk| reader.feed(chunk));
        reader
    }

    const STREAM: &str = "\u{feff}: hello\r\n\r\nid: 7\r\ndata: {\"id\":\"c\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n\
        data:{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"é\\ud800\",\"tool_calls\":[{\"index\":1,\"id\":\"x\",\"function\":{\"name\":\"f\",\"arguments\":\"{\"}}]}}]}\r\r\
        data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":1,\"function\":{\"arguments\":\"}\"}}]},\ndata: \"finish_reason\":\"stop\"}]}\n\n\
        data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":6}}\r\n\r\ndata: [DONE]\n\n";

    #[test]
    fn all_kinds_of_lines_are_read() {
        let reader = read(&[STREAM.as_bytes()]);
        let answer = reader.answer();
        assert_eq!(answer.content.as_deref(), Some("aé\u{fffd}"));
        assert_eq!((&*answer.tool_calls[1].name, &*answer.tool_calls[1].arguments), ("f", "{}"));
        assert_eq!(answer.finish_reasons, ["stop"]);
        assert_eq!(answer.usage.unwrap().completion_tokens, 6);
        assert!(reader.is_done() && reader.missing_end().is_empty());
    }

    #[test]
    fn every_kind_of_end_can_be_completed() {
        for (bytes, missing) in [
            ("", ""),
            ("data: x", "\n\n"),
            ("data: x\n", "\n"),
            ("data: x\r", "\n\n"),
            ("data: x\r\n", "\n"),
            ("data: x\n\n", ""),
            ("data: x\r\r", ""),
            ("data: x\r\n\r\n", ""),
            ("data: x\r\n\r", ""),
            (": hi\n", "\n"),
            ("\n\n", ""),
            ("\u{feff}", ""),
        ] {
            assert_eq!(read(&[bytes.as_bytes()]).missing_end(), missing, "{bytes:?}");
        }
    }

    #[test]
    fn an_incomplete_byte_order_mark_is_the_beginning_of_a_line() {
        let mut reader = read(&[b"\xef", b"\xbb"]);
        assert_eq!(reader.missing_end(), "\n\n");
        reader.feed(b"\n\ndata: [DONE]\n\n");
        assert!(reader.is_done());
    }

    #[test]
    fn a_huge_event_is_skipped_and_the_next_one_read() {
        let chunk = [b'x'; 1000];
        let mut reader = read(&[b"data: "]);
        (0..3000).for_each(|_| reader.feed(&chunk));
        assert!(reader.line.capacity() + reader.data.capacity() <= 2 * EVENT_CAP);
        reader.feed(b"\n\ndata: {\"id\":\"a\"}\n\n");
        assert_eq!(reader.answer().id.as_deref(), Some("a"));
        assert!(reader.answer().truncated);
    }

    fn cut<'a>(bytes: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        at.extend([0, bytes.len()]);
        at.sort_unstable();
        at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
    }

    fn same(one: &SideReader, other: &SideReader) -> bool {
        one.answer == other.answer && one.done == other.done && one.missing_end() == other.missing_end()
    }

    proptest! {
        #[test]
        fn chunking_does_not_change_the_answer(cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
                                       damage in prop::option::of((any::<prop::sample::Index>(), any::<u8>()))) {
            let mut bytes = STREAM.as_bytes().to_vec();
            if let Some((at, byte)) = damage {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            prop_assert!(same(&read(&[&bytes]), &read(&cut(&bytes, &cuts))));
        }

        #[test]
        fn arbitrary_bytes_never_panic_and_can_be_completed(
            bytes in prop::collection::vec(prop_oneof![any::<u8>(), prop::sample::select(&b"\n\r:dat {}\"[]"[..])], 0..300),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20)) {
            let mut reader = read(&cut(&bytes, &cuts));
            prop_assert!(same(&read(&[&bytes]), &reader));
            let mut follower = SideReader::follower();
            follower.feed(&bytes);
            prop_assert_eq!(follower.missing_end(), reader.missing_end());
            prop_assert_eq!(follower.answer, Answer::default());
            let missing = reader.missing_end();
            reader.feed(missing.as_bytes());
            prop_assert_eq!(reader.missing_end(), "");
            let id = reader.answer.id.take();
            reader.feed(b"data: {\"id\":\"after\"}\n\n");
            prop_assert_eq!(reader.answer.id.as_deref(), Some("after"), "{:?}", id);
        }
    }
}
