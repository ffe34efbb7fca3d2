//! The scanner with AVX2, 64 bytes at a time. Besides a setting of the allocator, the only `unsafe` code of the workspace.
//!
//! Two things need it: calling a function compiled for processor features, which is sound once the features have been detected, and
//! loading 32 bytes through a pointer, which is sound because it points into an array of 64.

#![allow(unsafe_code)]

use super::NoEnd;
use std::arch::x86_64::{
    __m256i, _mm_clmulepi64_si128, _mm_cvtsi128_si64, _mm_set_epi64x, _mm_set1_epi8, _mm_setr_epi8,
    _mm256_broadcastsi128_si256, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_movemask_epi8,
    _mm256_or_si256, _mm256_set1_epi8, _mm256_shuffle_epi8,
};

const BLOCK: usize = 64;

/// Implements [`container_end`](super::container_end). Returns `None` if this processor lacks a feature.
pub(super) fn container_end(bytes: &[u8], start: usize, max_depth: usize) -> Option<Result<usize, NoEnd>> {
    // SAFETY: every feature that the function and its callees are compiled for has been detected on this processor.
    detected().then(|| unsafe { find_container_end(bytes, start, max_depth) })
}

/// Implements [`string_end`](super::string_end). Returns `None` if this processor lacks a feature.
pub(super) fn string_end(bytes: &[u8], start: usize) -> Option<Result<usize, NoEnd>> {
    // SAFETY: as above.
    detected().then(|| unsafe { find_string_end(bytes, start) })
}

/// Every feature that a function of this module enables must be listed here; a test in `scan.rs` compares them.
fn detected() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("pclmulqdq")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("lzcnt")
}

#[target_feature(enable = "avx2,pclmulqdq,bmi1,lzcnt")]
fn find_container_end(bytes: &[u8], start: usize, max_depth: usize) -> Result<usize, NoEnd> {
    let mut scanner = Scanner { escape: 0, in_string: 0, depth: 0, max_depth };
    let mut at = start;
    let mut rest = bytes.get(start..).unwrap_or_default();
    while let Some((block, tail)) = rest.split_first_chunk::<BLOCK>() {
        if let Some(found) = scanner.step(block) {
            return found.map(|offset| at + offset);
        }
        rest = tail;
        at += BLOCK;
    }
    // The scanner ignores zero bytes, so they can pad the last block.
    let mut last = [0; BLOCK];
    last[..rest.len()].copy_from_slice(rest);
    match scanner.step(&last) {
        Some(found) => found.map(|offset| at + offset),
        None => Err(NoEnd::Unfinished),
    }
}

#[target_feature(enable = "avx2,pclmulqdq,bmi1,lzcnt")]
fn find_string_end(bytes: &[u8], start: usize) -> Result<usize, NoEnd> {
    let mut scanner = Scanner { escape: 0, in_string: 0, depth: 0, max_depth: 0 };
    let mut at = start + 1;
    let mut rest = bytes.get(at..).unwrap_or_default();
    while let Some((block, tail)) = rest.split_first_chunk::<BLOCK>() {
        let quotes = scanner.quotes(block);
        if quotes != 0 {
            return Ok(at + quotes.trailing_zeros() as usize + 1);
        }
        rest = tail;
        at += BLOCK;
    }
    let mut last = [0; BLOCK];
    last[..rest.len()].copy_from_slice(rest);
    match scanner.quotes(&last) {
        0 => Err(NoEnd::Unfinished),
        quotes => Ok(at + quotes.trailing_zeros() as usize + 1),
    }
}

/// The state that is carried from one block to the next.
struct Scanner {
    /// One if the first byte of the next block is escaped.
    escape: u64,
    /// All ones if the next block begins inside a string.
    in_string: u64,
    depth: usize,
    max_depth: usize,
}

impl Scanner {
    #[inline]
    #[target_feature(enable = "avx2,pclmulqdq,bmi1,lzcnt")]
    fn step(&mut self, block: &[u8; BLOCK]) -> Option<Result<usize, NoEnd>> {
        let quotes = self.quotes(block);
        // Most blocks lie inside long strings. Returning as soon as a block has no quote at all, escaped or not, would be faster on
        // prose and much slower on code, where escaped quotes are frequent enough to be mispredicted.
        if quotes == 0 && self.in_string != 0 {
            return None;
        }
        let in_string = prefix_xor(quotes) ^ self.in_string;
        self.in_string = ((in_string as i64) >> 63) as u64;

        let (low, high) = load(block);
        let mut brackets = mask(brackets(low), brackets(high)) & !in_string;
        while brackets != 0 {
            let index = brackets.trailing_zeros() as usize;
            brackets &= brackets - 1;
            // Of the four brackets, only `{` and `[` have this bit.
            if block[index] & 0b10 != 0 {
                self.depth += 1;
                if self.depth > self.max_depth {
                    return Some(Err(NoEnd::TooDeep));
                }
            } else if self.depth <= 1 {
                return Some(Ok(index + 1));
            } else {
                self.depth -= 1;
            }
        }
        None
    }

    /// Returns the unescaped quotes, one bit per byte.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,lzcnt")]
    fn quotes(&mut self, block: &[u8; BLOCK]) -> u64 {
        let (low, high) = load(block);
        equal(low, high, b'"') & !self.escaped(equal(low, high, b'\\'))
    }

    /// Returns the escaped bytes: those after a backslash that is not itself escaped.
    ///
    /// Backslashes pair up from the start of each run. Adding the starts at odd positions to the runs carries through them, which
    /// separates the runs by the parity of their start for the whole block at once.
    #[inline]
    #[target_feature(enable = "bmi1,lzcnt")]
    fn escaped(&mut self, backslashes: u64) -> u64 {
        const EVEN: u64 = 0x5555_5555_5555_5555;
        let escape = self.escape;
        // The carry of the addition has the same value, but each block would then have to wait for the previous one. A block of 64
        // backslashes, an even number, does not change the state.
        let run = backslashes.leading_ones();
        self.escape = if run == u64::BITS { escape } else { u64::from(run & 1) };

        let backslashes = backslashes & !escape;
        let following = (backslashes << 1) | escape;
        let odd_starts = backslashes & !EVEN & !following;
        let sums = odd_starts.wrapping_add(backslashes);
        (EVEN ^ (sums << 1)) & following
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(block: &[u8; BLOCK]) -> (__m256i, __m256i) {
    let pointer = block.as_ptr().cast::<__m256i>();
    // SAFETY: the pointer is the start of an array of 64 bytes, so both loads of 32 bytes stay inside it; this load
    // needs no alignment.
    unsafe { (_mm256_loadu_si256(pointer), _mm256_loadu_si256(pointer.add(1))) }
}

/// Returns one bit per byte of a block, set where the byte equals `byte`.
#[inline]
#[target_feature(enable = "avx2")]
fn equal(low: __m256i, high: __m256i, byte: u8) -> u64 {
    let byte = _mm256_set1_epi8(byte as i8);
    mask(_mm256_cmpeq_epi8(low, byte), _mm256_cmpeq_epi8(high, byte))
}

/// Returns a mask of the bytes that are brackets.
///
/// Square and curly brackets differ only in bit 0x20, and the low half of a byte distinguishes opening from closing ones. So a byte
/// with that bit set equals the table entry that its low half selects only if it is a bracket: the other entries are zero, and a
/// byte with a bit set is not.
#[inline]
#[target_feature(enable = "avx2")]
fn brackets(bytes: __m256i) -> __m256i {
    let table = _mm256_broadcastsi128_si256(_mm_setr_epi8(
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, b'{' as i8, 0, b'}' as i8, 0, 0,
    ));
    let folded = _mm256_or_si256(bytes, _mm256_set1_epi8(0x20));
    _mm256_cmpeq_epi8(_mm256_shuffle_epi8(table, bytes), folded)
}

#[inline]
#[target_feature(enable = "avx2")]
fn mask(low: __m256i, high: __m256i) -> u64 {
    let low = _mm256_movemask_epi8(low) as u32;
    let high = _mm256_movemask_epi8(high) as u32;
    (u64::from(high) << 32) | u64::from(low)
}

/// Sets each bit to the parity of itself and all lower bits: ones from an opening quote up to its closing one.
#[inline]
#[target_feature(enable = "avx2,pclmulqdq")]
fn prefix_xor(bits: u64) -> u64 {
    let product = _mm_clmulepi64_si128::<0>(_mm_set_epi64x(0, bits as i64), _mm_set1_epi8(-1));
    _mm_cvtsi128_si64(product) as u64
}
