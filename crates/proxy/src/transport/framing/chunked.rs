//! Follows a chunked body to its end without changing a byte of it.

use std::io;

/// Where in a chunked body the next byte stands.
#[derive(Debug, Default)]
pub(super) struct Chunked {
    place: Place,
    /// Bytes of framing since the last piece of data, bounded so that endless extensions or trailers are refused.
    framing: usize,
}

#[derive(Clone, Copy, Debug, Default)]
enum Place {
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

const MAX_FRAMING: usize = 16 * 1024;

impl Chunked {
    pub(super) fn is_done(&self) -> bool {
        matches!(self.place, Place::Done)
    }

    /// Follows `bytes` up to the end of the body and says how many of them belong to it.
    pub(super) fn follow(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut at = 0;
        while at < bytes.len() && !self.is_done() {
            if let Place::Data(left) = self.place {
                let step = (bytes.len() - at).min(usize::try_from(left).unwrap_or(usize::MAX));
                at += step;
                let left = left - step as u64;
                self.place = if left == 0 { Place::DataCr } else { Place::Data(left) };
                self.framing = 0;
            } else {
                self.framing += 1;
                self.place = next(self.place, bytes[at])
                    .filter(|_| self.framing <= MAX_FRAMING)
                    .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "malformed chunked body"))?;
                at += 1;
            }
        }
        Ok(at)
    }
}

fn next(place: Place, byte: u8) -> Option<Place> {
    Some(match (place, byte) {
        (Place::SizeStart, _) => Place::Size(u64::from(hex(byte)?)),
        (Place::Size(size), b'\r') => Place::SizeEnd(size),
        (Place::Size(size), b';') => Place::Extension(size),
        (Place::Size(size), _) => Place::Size(size.checked_mul(16)?.checked_add(u64::from(hex(byte)?))?),
        (Place::Extension(size), b'\r') => Place::SizeEnd(size),
        (Place::Extension(_), b'\n' | 0) => return None,
        (Place::Extension(size), _) => Place::Extension(size),
        (Place::SizeEnd(0), b'\n') => Place::TrailerStart,
        (Place::SizeEnd(size), b'\n') => Place::Data(size),
        (Place::DataCr, b'\r') => Place::DataLf,
        (Place::DataLf, b'\n') => Place::SizeStart,
        (Place::TrailerStart, b'\r') => Place::LastLf,
        (Place::TrailerStart, b' ' | b'\t' | b'\n' | 0) => return None,
        (Place::TrailerStart, _) => Place::Trailer,
        (Place::Trailer, b'\r') => Place::TrailerEnd,
        (Place::Trailer, b'\n' | 0) => return None,
        (Place::Trailer, _) => Place::Trailer,
        (Place::TrailerEnd, b'\n') => Place::TrailerStart,
        (Place::LastLf, b'\n') => Place::Done,
        _ => return None,
    })
}

fn hex(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}
