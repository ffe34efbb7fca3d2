//! Compression of recorded texts, before they are encrypted.

use super::{RecordError, Room};
use std::cell::RefCell;
use std::io::Read;
use zstd::bulk::Compressor;

/// The fastest level: it takes 6 µs for a tool result of 1.2 KB and leaves half of it. Higher levels save a twentieth more.
const LEVEL: i32 = 1;

/// Shorter texts do not shrink.
const MIN_LENGTH: usize = 128;

/// What is allocated ahead at most: a damaged record may say that it is of any length.
const MAX_AHEAD: u64 = 1 << 20;

/// Returns `None` if the text would hardly shrink.
pub(super) fn compress(text: &[u8]) -> Option<Vec<u8>> {
    thread_local! {
        // Its tables are allocated once.
        static COMPRESSOR: RefCell<Option<Compressor<'static>>> = RefCell::new(Compressor::new(LEVEL).ok());
    }
    if text.len() < MIN_LENGTH {
        return None;
    }
    let compressed = COMPRESSOR.with_borrow_mut(|compressor| compressor.as_mut()?.compress(text).ok())?;
    (compressed.len() < text.len() - text.len() / 8).then_some(compressed)
}

/// Asks for the room before it decompresses: a few kilobytes may hold gigabytes.
pub(super) fn decompress(compressed: &[u8], room: Room<'_>) -> Result<Vec<u8>, RecordError> {
    let damaged = |_| RecordError::Damaged;
    // `compress` always notes the length.
    let length = zstd::zstd_safe::get_frame_content_size(compressed).ok().flatten();
    let length = length.ok_or(RecordError::Damaged)?;
    if !room(length) {
        return Err(RecordError::NoRoom);
    }
    let mut text = Vec::with_capacity(usize::try_from(length.min(MAX_AHEAD)).unwrap_or(0));
    let decoder = zstd::Decoder::with_buffer(compressed).map_err(damaged)?;
    decoder.take(length).read_to_end(&mut text).map_err(damaged)?;
    if text.len() as u64 == length { Ok(text) } else { Err(RecordError::Damaged) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn room_is_asked_for_before_a_text_is_decompressed() {
        let bomb = compress(&vec![b' '; 64 << 20]).unwrap();
        assert!(bomb.len() < 10_000, "{}", bomb.len());
        let asked = Cell::new(0);
        let refuse = |bytes| {
            asked.set(bytes);
            false
        };
        assert_eq!(decompress(&bomb, &refuse), Err(RecordError::NoRoom));
        assert_eq!(asked.get(), 64 << 20);
        assert_eq!(decompress(&bomb, &|bytes| bytes <= 64 << 20).unwrap().len(), 64 << 20);
    }

    #[test]
    fn a_length_that_is_not_true_is_damage() {
        let mut lies = compress(&vec![b'x'; 100_000]).unwrap();
        // The length is behind the magic number and the description of the frame.
        let at = lies.windows(4).position(|bytes| bytes == 100_000u32.to_le_bytes()).unwrap();
        for length in [99_999u32, 100_001, u32::MAX] {
            lies[at..at + 4].copy_from_slice(&length.to_le_bytes());
            assert_eq!(decompress(&lies, &|_| true), Err(RecordError::Damaged));
        }
    }
}
