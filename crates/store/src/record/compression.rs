//! Compression of recorded texts, before they are encrypted.

use super::RecordError;
use std::cell::RefCell;
use std::io::Read;
use zstd::bulk::Compressor;

/// The fastest level: it takes 6 µs for a tool result of 1.2 KB and leaves half of it. Higher levels save a twentieth more.
const LEVEL: i32 = 1;

/// Shorter texts do not shrink.
const MIN_LENGTH: usize = 128;

/// The most that a damaged record is decompressed to. More than any request may contain.
const MAX_LENGTH: u64 = 8 << 30;

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

pub(super) fn decompress(compressed: &[u8]) -> Result<Vec<u8>, RecordError> {
    let damaged = |_| RecordError::Damaged;
    let mut text = Vec::new();
    let decoder = zstd::Decoder::with_buffer(compressed).map_err(damaged)?;
    decoder.take(MAX_LENGTH).read_to_end(&mut text).map_err(damaged)?;
    Ok(text)
}
