//! Finds the end of a response, without I/O, so that blocking and async callers share it.

use bytes::{Buf, BytesMut};
use memchr::memmem;

/// Parses the responses of one connection in order. Add bytes to `buffer`, then call [`progress`](Self::progress).
#[derive(Debug, Default)]
pub(crate) struct ResponseReader {
    pub(crate) buffer: BytesMut,
    state: State,
    status: u16,
    events: usize,
    /// Whether the last byte of the body was a line feed, because the end of an event may be split between two reads.
    after_line_feed: bool,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Head,
    Length(usize),
    ChunkSize,
    /// The number of bytes left in the chunk, including its line end.
    Chunk(usize),
    LastLine,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Incomplete, with this many server-sent events so far.
    Partial {
        events: usize,
    },
    Whole {
        status: u16,
        events: usize,
    },
    /// Not a response with a known end.
    Invalid,
}

impl ResponseReader {
    pub(crate) fn progress(&mut self) -> Progress {
        loop {
            match self.state {
                State::Head => {
                    let Some(end) = memmem::find(&self.buffer, b"\r\n\r\n") else { break };
                    let head = self.buffer.split_to(end + 4);
                    match parse_head(&head) {
                        Some((status, state)) => (self.status, self.state) = (status, state),
                        None => return Progress::Invalid,
                    }
                    (self.events, self.after_line_feed) = (0, false);
                }
                State::Length(0) => return self.whole(),
                State::Length(left) => {
                    let here = left.min(self.buffer.len());
                    if here == 0 {
                        break;
                    }
                    self.consume(here, here);
                    self.state = State::Length(left - here);
                }
                State::ChunkSize => {
                    let Some(end) = memmem::find(&self.buffer, b"\r\n") else { break };
                    let digits = std::str::from_utf8(&self.buffer[..end]).unwrap_or_default();
                    let digits = digits.split(';').next().unwrap_or_default().trim();
                    let Ok(size) = usize::from_str_radix(digits, 16) else { return Progress::Invalid };
                    self.buffer.advance(end + 2);
                    self.state = if size == 0 { State::LastLine } else { State::Chunk(size + 2) };
                }
                State::Chunk(left) => {
                    let here = left.min(self.buffer.len());
                    if here == 0 {
                        break;
                    }
                    self.consume(here, here.min(left.saturating_sub(2)));
                    self.state = if here == left { State::ChunkSize } else { State::Chunk(left - here) };
                }
                State::LastLine => {
                    let Some(end) = memmem::find(&self.buffer, b"\r\n") else { break };
                    self.buffer.advance(end + 2);
                    if end == 0 {
                        return self.whole();
                    }
                }
            }
        }
        Progress::Partial { events: self.events }
    }

    fn whole(&mut self) -> Progress {
        self.state = State::Head;
        Progress::Whole { status: self.status, events: self.events }
    }

    fn consume(&mut self, length: usize, payload: usize) {
        for at in memchr::memchr_iter(b'\n', &self.buffer[..payload]) {
            let doubled = if at == 0 { self.after_line_feed } else { self.buffer[at - 1] == b'\n' };
            self.events += usize::from(doubled);
        }
        if payload > 0 {
            self.after_line_feed = self.buffer[payload - 1] == b'\n';
        }
        self.buffer.advance(length);
    }
}

fn parse_head(head: &[u8]) -> Option<(u16, State)> {
    let status = std::str::from_utf8(head.get(9..12)?).ok()?.parse().ok()?;
    for line in head.split(|byte| *byte == b'\n') {
        let Some(colon) = memchr::memchr(b':', line) else { continue };
        let value = std::str::from_utf8(&line[colon + 1..]).unwrap_or_default().trim();
        if line[..colon].eq_ignore_ascii_case(b"content-length") {
            return Some((status, State::Length(value.parse().ok()?)));
        }
        if line[..colon].eq_ignore_ascii_case(b"transfer-encoding") {
            return Some((status, State::ChunkSize));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &[u8] = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\
        7\r\ndata: \n\r\n1\r\n\n\r\n9;x\r\ndata: 2\n\n\r\n0\r\n\r\n";

    #[test]
    fn a_stream_is_parsed_at_any_split() {
        for split in 1..STREAM.len() {
            let mut reader = ResponseReader::default();
            reader.buffer.extend_from_slice(&STREAM[..split]);
            assert!(matches!(reader.progress(), Progress::Partial { .. }), "split at {split}");
            reader.buffer.extend_from_slice(&STREAM[split..]);
            assert_eq!(reader.progress(), Progress::Whole { status: 200, events: 2 }, "split at {split}");
        }
    }

    #[test]
    fn responses_follow_each_other() {
        let one = b"HTTP/1.1 429 X\r\nContent-Length: 3\r\n\r\nabc";
        let mut reader = ResponseReader::default();
        reader.buffer.extend_from_slice(&[one.as_slice(), one].concat());
        assert_eq!(reader.progress(), Progress::Whole { status: 429, events: 0 });
        assert_eq!(reader.progress(), Progress::Whole { status: 429, events: 0 });
        assert_eq!(reader.progress(), Progress::Partial { events: 0 });
    }
}
