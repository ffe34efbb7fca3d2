//! Finds the end of a chunked body without decoding it.

use std::io;

/// The parser's position in a chunked body.
#[derive(Debug, Default)]
pub(super) struct Chunked {
    state: State,
    /// The number of framing bytes since the last data. It is limited to refuse endless extensions and trailers.
    framing_bytes: usize,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    SizeStart,
    Size(u64),
    Extension(u64),
    SizeEnd(u64),
    Data(u64),
    DataCr,
    DataLf,
    TrailerStart,
    Trailer,
    TrailerEnd,
    LastLf,
    Done,
}

const MAX_FRAMING_BYTES: usize = 16 * 1024;

impl Chunked {
    pub(super) fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// Consumes `bytes` up to the end of the body and returns how many bytes belong to it.
    pub(super) fn advance(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut at = 0;
        while at < bytes.len() && !self.is_done() {
            if let State::Data(left) = self.state {
                let step = (bytes.len() - at).min(usize::try_from(left).unwrap_or(usize::MAX));
                at += step;
                let left = left - step as u64;
                self.state = if left == 0 { State::DataCr } else { State::Data(left) };
                self.framing_bytes = 0;
            } else {
                self.framing_bytes += 1;
                self.state = next(self.state, bytes[at])
                    .filter(|_| self.framing_bytes <= MAX_FRAMING_BYTES)
                    .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "malformed chunked body"))?;
                at += 1;
            }
        }
        Ok(at)
    }
}

fn next(state: State, byte: u8) -> Option<State> {
    Some(match (state, byte) {
        (State::SizeStart, _) => State::Size(u64::from(hex(byte)?)),
        (State::Size(size), b'\r') => State::SizeEnd(size),
        (State::Size(size), b';') => State::Extension(size),
        (State::Size(size), _) => State::Size(size.checked_mul(16)?.checked_add(u64::from(hex(byte)?))?),
        (State::Extension(size), b'\r') => State::SizeEnd(size),
        (State::Extension(_), b'\n' | 0) => return None,
        (State::Extension(size), _) => State::Extension(size),
        (State::SizeEnd(0), b'\n') => State::TrailerStart,
        (State::SizeEnd(size), b'\n') => State::Data(size),
        (State::DataCr, b'\r') => State::DataLf,
        (State::DataLf, b'\n') => State::SizeStart,
        (State::TrailerStart, b'\r') => State::LastLf,
        (State::TrailerStart, b' ' | b'\t' | b'\n' | 0) => return None,
        (State::TrailerStart, _) => State::Trailer,
        (State::Trailer, b'\r') => State::TrailerEnd,
        (State::Trailer, b'\n' | 0) => return None,
        (State::Trailer, _) => State::Trailer,
        (State::TrailerEnd, b'\n') => State::TrailerStart,
        (State::LastLf, b'\n') => State::Done,
        _ => return None,
    })
}

fn hex(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}
