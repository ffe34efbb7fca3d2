//! Decodes chunked responses.

use crate::transport::http1::error::Http1Error;
use http::{HeaderMap, HeaderName, HeaderValue};

/// An incremental decoder of a chunked body.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    state: State,
    /// The framing line read so far.
    line: Vec<u8>,
    pub(super) trailers: HeaderMap,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Size,
    Data(u64),
    DataEnd,
    Trailer,
    Done,
}

/// Limits the memory that a hostile upstream can make us use.
const MAX_LINE: usize = 16 * 1024;
const MAX_TRAILERS: usize = 64;

impl Chunks {
    pub(super) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Appends the data in `bytes` to `out` and returns how many bytes belong to the body.
    pub(super) fn decode(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<usize, Http1Error> {
        let mut at = 0;
        while at < bytes.len() && !self.is_done() {
            if let State::Data(left) = self.state {
                let step = (bytes.len() - at).min(usize::try_from(left).unwrap_or(usize::MAX));
                out.extend_from_slice(&bytes[at..at + step]);
                at += step;
                let left = left - step as u64;
                self.state = if left == 0 { State::DataEnd } else { State::Data(left) };
                continue;
            }
            let end = memchr::memchr(b'\n', &bytes[at..]);
            let until = end.map_or(bytes.len(), |end| at + end);
            self.line.extend_from_slice(&bytes[at..until]);
            if self.line.len() > MAX_LINE {
                return Err(Http1Error::Malformed);
            }
            at = until;
            if end.is_some() {
                at += 1;
                self.end_line()?;
            }
        }
        Ok(at)
    }

    fn end_line(&mut self) -> Result<(), Http1Error> {
        let line = std::mem::take(&mut self.line);
        let line = line.strip_suffix(b"\r").ok_or(Http1Error::Malformed)?;
        self.state = match self.state {
            State::Size => match size(line)? {
                0 => State::Trailer,
                size => State::Data(size),
            },
            State::DataEnd if line.is_empty() => State::Size,
            State::Trailer if line.is_empty() => State::Done,
            State::Trailer => {
                self.add_trailer(line)?;
                State::Trailer
            }
            State::DataEnd | State::Data(_) | State::Done => return Err(Http1Error::Malformed),
        };
        Ok(())
    }

    fn add_trailer(&mut self, line: &[u8]) -> Result<(), Http1Error> {
        let colon = memchr::memchr(b':', line).ok_or(Http1Error::Malformed)?;
        let name = HeaderName::from_bytes(&line[..colon]).map_err(|_| Http1Error::Malformed)?;
        let value =
            HeaderValue::from_bytes(line[colon + 1..].trim_ascii()).map_err(|_| Http1Error::Malformed)?;
        if self.trailers.len() >= MAX_TRAILERS {
            return Err(Http1Error::Malformed);
        }
        self.trailers.append(name, value);
        Ok(())
    }
}

fn size(line: &[u8]) -> Result<u64, Http1Error> {
    let digits = line.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii_end();
    let is_number = (1..=16).contains(&digits.len()) && digits.iter().all(u8::is_ascii_hexdigit);
    let text = std::str::from_utf8(digits).ok().filter(|_| is_number);
    text.and_then(|text| u64::from_str_radix(text, 16).ok()).ok_or(Http1Error::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(pieces: &[&[u8]]) -> Result<(String, usize, HeaderMap), Http1Error> {
        let mut chunks = Chunks::default();
        let mut out = Vec::new();
        let mut consumed = 0;
        for piece in pieces {
            consumed += chunks.decode(piece, &mut out)?;
        }
        let end = if chunks.is_done() { consumed } else { 0 };
        Ok((String::from_utf8(out).unwrap(), end, chunks.trailers))
    }

    #[test]
    fn the_data_is_the_same_however_the_body_is_split() {
        let body = b"5\r\nhello\r\n6;x=\"y\"\r\n world\r\n0\r\nA: 1\r\nb:2\r\n\r\nHTTP";
        let end = body.len() - 4;
        for cut in 0..body.len() {
            let (text, consumed, trailers) = decode(&[&body[..cut], &body[cut..]]).unwrap();
            if cut <= end {
                assert_eq!((text.as_str(), consumed), ("hello world", end), "cut at {cut}");
                assert_eq!((trailers["a"].as_bytes(), trailers["b"].as_bytes()), (&b"1"[..], &b"2"[..]));
            }
        }
        let bytes: Vec<&[u8]> = body.chunks(1).collect();
        assert_eq!(decode(&bytes).unwrap().0, "hello world");
    }

    #[test]
    fn malformed_chunks_are_an_error() {
        for body in [
            "x\r\n",
            "\r\n",
            "5\r\nhelloX\r\n",
            "5\nhello",
            "-1\r\n",
            "11111111111111111\r\n",
            "0\r\nnonsense\r\n",
        ] {
            assert!(decode(&[body.as_bytes()]).is_err(), "{body:?}");
        }
    }
}
