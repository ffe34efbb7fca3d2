use crate::dialect::StreamState;
use crate::large_event::{LargeEvent, data_of};
use crate::{Answer, Dialect};
use memchr::memchr2;

/// The maximum size of an event that is kept as it is. A larger one is skimmed: an upstream must not decide how much memory we use.
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
    /// The current event, if it exceeds the cap.
    large: Option<Box<LargeEvent>>,
    cap: usize,
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
            large: None,
            cap: EVENT_CAP,
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
        if self.large.is_none() && self.line.len() + self.data.len() + bytes.len() > self.cap {
            self.large = Some(Box::new(LargeEvent::new(self.cap, &self.data, &self.line)));
            (self.line, self.data) = (Vec::new(), Vec::new());
        }
        match &mut self.large {
            Some(large) => large.extend_line(bytes),
            None => self.line.extend_from_slice(bytes),
        }
    }

    fn end_line(&mut self) {
        if self.position != Position::InLine {
            self.end_event();
            return;
        }
        self.position = Position::LineStart;
        if let Some(large) = &mut self.large {
            return large.end_line();
        }
        if let Some(value) = data_of(&self.line) {
            if self.has_data {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(value);
            self.has_data = true;
        }
        self.line.clear();
    }

    fn end_event(&mut self) {
        self.position = Position::Boundary;
        if let Some(dialect) = self.dialect {
            let state = match self.large.take() {
                Some(large) => large.read(dialect, &mut self.answer),
                None if self.has_data => dialect.read_event(&self.data, &mut self.answer),
                None => StreamState::Open,
            };
            self.done |= state == StreamState::Done;
        }
        self.data.clear();
        self.has_data = false;
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
    fn a_huge_event_takes_bounded_memory_and_the_next_one_is_read() {
        let chunk = [b'x'; 1000];
        for begin in [&b"data: "[..], b": ", b"data: \"", b"data: {\"a\":["] {
            let mut reader = read(&[begin]);
            (0..3000).for_each(|_| reader.feed(&chunk));
            let kept = reader.line.capacity() + reader.data.capacity();
            assert!(kept + reader.large.as_ref().unwrap().bytes() <= 3 * EVENT_CAP);
            reader.feed(b"\n\ndata: {\"id\":\"a\"}\n\n");
            assert_eq!(reader.answer().id.as_deref(), Some("a"));
            assert_eq!(reader.answer().truncated, begin != b": ");
        }
    }

    /// What is large, one text or many small values, and how the answers of each dialect end with it.
    fn large_events() -> Vec<(Dialect, String)> {
        let text = format!("\"{}\"", "QUJD".repeat(1 << 19));
        let list = format!("[{}0]", "\"a\",1,".repeat(1 << 19));
        let event = |dialect, data: String| (dialect, format!("event: x\ndata: {data}\n\n"));
        [text, list]
            .into_iter()
            .flat_map(|large| {
                let usage = r#"{"input_tokens":5,"output_tokens":6}"#;
                [
                    event(
                        Dialect::Chat,
                        format!(r#"{{"choices":[{{"delta":{{"content":{large}}}}}],"usage":{{"prompt_tokens":5,"completion_tokens":6}}}}"#),
                    ),
                    event(
                        Dialect::Messages,
                        format!(r#"{{"delta":{{"stop_reason":"end_turn","x":{large}}},"usage":{usage},"type":"message_delta"}}"#),
                    ),
                    event(
                        Dialect::Messages,
                        format!(r#"{{"type":"message_start","message":{{"x":{large},"usage":{usage}}}}}"#),
                    ),
                    event(
                        Dialect::Responses,
                        format!(r#"{{"type":"response.completed","response":{{"status":"completed","output":[{{"result":{large}}}],"usage":{usage}}}}}"#),
                    ),
                ]
            })
            .collect()
    }

    #[test]
    fn the_usage_of_a_huge_event_is_read() {
        for (dialect, event) in large_events() {
            let mut reader = SideReader::new(dialect);
            event.as_bytes().chunks(10_000).for_each(|chunk| reader.feed(chunk));
            let usage = reader.answer().usage.unwrap_or_else(|| panic!("{dialect:?} {}", &event[..100]));
            assert_eq!((usage.prompt_tokens, usage.completion_tokens), (5, 6), "{}", &event[..100]);
            assert!(reader.answer().truncated);
            assert_eq!(reader.is_done(), dialect == Dialect::Responses);
        }
    }

    /// However many events an upstream sends, what is kept of them is bounded.
    #[test]
    fn many_large_events_take_bounded_memory() {
        let text = "x".repeat(EVENT_CAP - 1_000);
        let part = format!(r#"{{"type":"output_text","text":"{text}"}}"#);
        for (dialect, data) in [
            (
                Dialect::Responses,
                format!(
                    r#"{{"type":"response.output_item.done","item":{{"type":"message","content":[{part}]}}}}"#
                ),
            ),
            (
                Dialect::Responses,
                format!(
                    r#"{{"type":"response.output_item.done","item":{{"type":"function_call","arguments":"{text}"}}}}"#
                ),
            ),
            (
                Dialect::Messages,
                format!(
                    r#"{{"type":"content_block_start","index":N,"content_block":{{"type":"text","text":"{text}"}}}}"#
                ),
            ),
            (
                Dialect::Chat,
                format!(r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":"{text}"}}]}}"#),
            ),
        ] {
            let mut reader = SideReader::new(dialect);
            for number in 0..20 {
                let data = data.replace("\"index\":N", &format!("\"index\":{number}"));
                reader.feed(format!("data: {data}\n\n").as_bytes());
            }
            let kept = format!("{:?}", reader.answer()).len();
            assert!(kept < 14 << 20, "{dialect:?}: {kept}");
        }
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
        fn the_usage_is_read_however_small_the_cap(cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20), cap in 0usize..400) {
            let small = |chunks: &[&[u8]]| {
                let mut reader = SideReader::new(Dialect::Chat);
                reader.cap = cap;
                chunks.iter().for_each(|chunk| reader.feed(chunk));
                reader
            };
            let reader = small(&cut(STREAM.as_bytes(), &cuts));
            prop_assert_eq!(reader.answer.usage.unwrap().completion_tokens, 6);
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
