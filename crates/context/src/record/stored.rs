//! The stored format of a turn's record.
//!
//! Every request leaves a record, and each says which messages are masked: as plain JSON, a conversation's records would take more room
//! than its text. So indexes are stored as steps, which do not grow with the conversation, and the JSON is compressed with a dictionary
//! of its member names.

use super::TurnRecord;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::io::Read;
use zstd::bulk::Compressor;

/// The first byte of a record of plain JSON with whole lists of indexes. Earlier versions wrote it, and so does this one where compressing
/// fails.
const PLAIN: u8 = 1;
/// The first byte of a compressed record.
const COMPRESSED: u8 = 2;

/// What records have in common. Records that were compressed with it cannot be read with another one: a change is a new format.
const DICTIONARY: &[u8] = include_bytes!("turn.dict");

/// The fastest level: the dictionary has most of what repeats.
const LEVEL: i32 = 1;

/// The most that a damaged record is decompressed to, and the most indexes in one.
const MAX_LENGTH: u64 = 64 << 20;
const MAX_INDEXES: usize = 1 << 24;

/// Indexes as differences to their predecessors, each with how often it repeats: 3, 5, 7, 9 is 3 once and 2 three times.
type Steps = Vec<[usize; 2]>;

#[derive(Serialize)]
struct Stored<'a> {
    #[serde(flatten)]
    turn: &'a TurnRecord,
    masked_steps: Steps,
    trimmed_steps: Steps,
}

#[derive(Deserialize)]
struct Restored {
    #[serde(flatten)]
    turn: TurnRecord,
    #[serde(default)]
    masked_steps: Steps,
    #[serde(default)]
    trimmed_steps: Steps,
}

#[must_use]
pub fn encode_turn(turn: &TurnRecord) -> Bytes {
    // Only numbers, strings and lists: serializing cannot fail.
    let json = match (steps(&turn.masked), steps(&turn.trimmed)) {
        (Some(masked_steps), Some(trimmed_steps)) => {
            let bare = TurnRecord { masked: Vec::new(), trimmed: Vec::new(), ..turn.clone() };
            serde_json::to_vec(&Stored { turn: &bare, masked_steps, trimmed_steps })
        }
        _ => serde_json::to_vec(turn),
    }
    .unwrap_or_default();
    let (format, text) = match compressed(&json) {
        Some(text) => (COMPRESSED, text),
        None => (PLAIN, json),
    };
    [&[format], &text[..]].concat().into()
}

/// Returns `None` for a record that is damaged or has a newer format.
#[must_use]
pub fn decode_turn(record: &[u8]) -> Option<TurnRecord> {
    let (format, text) = record.split_first()?;
    let json = match *format {
        PLAIN => text.to_vec(),
        COMPRESSED => decompressed(text)?,
        _ => return None,
    };
    let Restored { mut turn, masked_steps, trimmed_steps } = serde_json::from_slice(&json).ok()?;
    turn.masked.extend(indexes(&masked_steps)?);
    turn.trimmed.extend(indexes(&trimmed_steps)?);
    Some(turn)
}

/// `None` if the indexes are not in ascending order, in which a plan has them.
fn steps(indexes: &[usize]) -> Option<Steps> {
    let mut steps: Steps = Vec::new();
    let mut last = 0;
    for index in indexes {
        let step = index.checked_sub(last)?;
        match steps.last_mut() {
            Some([same, count]) if *same == step => *count += 1,
            Some(_) | None => steps.push([step, 1]),
        }
        last = *index;
    }
    Some(steps)
}

/// `None` if there are more than a conversation can have.
fn indexes(steps: &[[usize; 2]]) -> Option<Vec<usize>> {
    let (mut indexes, mut last) = (Vec::new(), 0usize);
    for &[step, count] in steps {
        if count > MAX_INDEXES - indexes.len().min(MAX_INDEXES) {
            return None;
        }
        for _ in 0..count {
            last = last.checked_add(step)?;
            indexes.push(last);
        }
    }
    Some(indexes)
}

fn compressed(json: &[u8]) -> Option<Vec<u8>> {
    thread_local! {
        // Preparing the dictionary takes longer than compressing a record.
        static COMPRESSOR: RefCell<Option<Compressor<'static>>> =
            RefCell::new(Compressor::with_dictionary(LEVEL, DICTIONARY).ok());
    }
    COMPRESSOR.with_borrow_mut(|compressor| compressor.as_mut()?.compress(json).ok())
}

fn decompressed(text: &[u8]) -> Option<Vec<u8>> {
    let mut json = Vec::new();
    let decoder = zstd::Decoder::with_dictionary(text, DICTIONARY).ok()?;
    decoder.take(MAX_LENGTH).read_to_end(&mut json).ok()?;
    Some(json)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn masked(indexes: impl IntoIterator<Item = usize>) -> TurnRecord {
        TurnRecord {
            at: 1_763_523_600_123,
            request_id: "0193f2d4c5b87d20".to_owned(),
            route: "default".to_owned(),
            end: "c0".repeat(32),
            tokens_before: 93_412,
            masked: indexes.into_iter().collect(),
            cached_tokens: Some(9),
            ..TurnRecord::default()
        }
    }

    #[test]
    fn a_turn_reads_as_it_was_written() {
        let turn = TurnRecord { trimmed: vec![4, 5, 6, 9], ..masked([1, 2, 40]) };
        assert_eq!(decode_turn(&encode_turn(&turn)), Some(turn));
        let unordered = masked([5, 3, 3]);
        assert_eq!(decode_turn(&encode_turn(&unordered)), Some(unordered));
    }

    #[test]
    fn records_of_earlier_versions_can_be_read() {
        assert_eq!(decode_turn(b"\x01{\"at\":5}"), Some(TurnRecord { at: 5, ..TurnRecord::default() }));
        let listed = decode_turn(b"\x01{\"masked\":[3,5,7]}");
        assert_eq!(listed.map(|turn| turn.masked), Some(vec![3, 5, 7]));
    }

    #[test]
    fn a_record_is_small_and_does_not_grow_with_the_conversation() {
        let size = |turns: usize| encode_turn(&masked((0..turns).map(|turn| 3 + 2 * turn))).len();
        assert!(size(10) < 300, "{}", size(10));
        assert!(size(1_000) <= size(10) + 16, "{} and {}", size(10), size(1_000));
    }

    #[test]
    fn damaged_and_newer_records_are_left_out() {
        let bomb =
            [&[COMPRESSED][..], &compressed(br#"{"masked_steps":[[1,18446744073709551615]]}"#).unwrap()];
        for record in [&b""[..], b"\x01{", b"\x02{}", b"\x03{}", b"{}", &bomb.concat()] {
            assert_eq!(decode_turn(record), None);
        }
    }

    proptest! {
        #[test]
        fn any_indexes_survive(indexes in proptest::collection::vec(0usize..5_000, 0..200)) {
            let turn = masked(indexes);
            prop_assert_eq!(decode_turn(&encode_turn(&turn)), Some(turn));
        }
    }
}
