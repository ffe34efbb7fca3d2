//! The format of excerpts, at the end of a waypoint.
//!
//! Only places are stored, never a text, so there is nothing to encrypt. Every waypoint repeats the excerpts of its request. So numbers
//! take as few bytes as possible, and places that follow one another are stored as their distances.

use super::RecordError;
use std::sync::Arc;
use tidegate_engine::{Excerpt, MAX_EXCERPTS, Passage};

/// Appends excerpts to a record.
pub(super) fn encode(record: &mut Vec<u8>, excerpts: &[Excerpt]) {
    put(record, length(excerpts.len()));
    for Excerpt { message, passages } in excerpts {
        put(record, *message);
        put(record, length(passages.len()));
        let mut before = 0;
        for Passage { message, start, end } in passages.iter() {
            put(record, message.wrapping_sub(before));
            put(record, *start);
            put(record, end.wrapping_sub(*start));
            before = *message;
        }
    }
}

/// Takes excerpts from the rest of a record.
pub(super) fn decode(rest: &mut &[u8]) -> Result<Arc<[Excerpt]>, RecordError> {
    let count = take(rest)?;
    let mut excerpts = Vec::new();
    for _ in 0..checked(count, MAX_EXCERPTS)? {
        let message = take(rest)?;
        let mut passages = Vec::new();
        let mut before = 0u32;
        // Each takes at least three bytes.
        for _ in 0..checked(take(rest)?, rest.len() / 3)? {
            before = before.wrapping_add(take(rest)?);
            let start = take(rest)?;
            passages.push(Passage { message: before, start, end: start.wrapping_add(take(rest)?) });
        }
        excerpts.push(Excerpt { message, passages: passages.into() });
    }
    Ok(excerpts.into())
}

fn length(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn checked(count: u32, max: usize) -> Result<usize, RecordError> {
    usize::try_from(count).ok().filter(|count| *count <= max).ok_or(RecordError::Damaged)
}

/// Writes seven bits per byte, the lowest first. The highest bit says that more follow.
fn put(record: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        record.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    record.push(number as u8);
}

fn take(rest: &mut &[u8]) -> Result<u32, RecordError> {
    let mut number = 0u32;
    for shift in (0..35).step_by(7) {
        let (&byte, after) = rest.split_first().ok_or(RecordError::Damaged)?;
        *rest = after;
        let bits = u32::from(byte & 0x7f);
        number |= bits.checked_shl(shift).filter(|high| high >> shift == bits).ok_or(RecordError::Damaged)?;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(RecordError::Damaged)
}
