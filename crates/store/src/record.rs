//! The format of stored records.
//!
//! A record begins with its format number. A process that finds a newer format, as during a rolling upgrade, leaves the record
//! alone and continues without it.

mod compression;
mod excerpts;
mod fold;
mod pin;
mod turn;
mod zeros;

pub use fold::StoredFold;
pub(crate) use fold::{decode_fold, encode_fold};
pub(crate) use pin::{decode_exchange, decode_pin, encode_exchange, encode_pin};
pub use turn::LoggedTurn;
pub(crate) use turn::{decode_turn, encode_turn};

use crate::seal::{Keyring, Sealed};
use crate::{ConversationKey, Degraded, MessageId};
use bytes::Bytes;
use std::sync::Arc;
use thiserror::Error;
use tidegate_engine::{CacheKey, Digest, Gap, Horizon, Skipped, Timestamp, Trail, Waypoint};

/// The format that this version writes.
const FORMAT: u8 = 1;

/// The same for records with a compressed text, which earlier versions cannot read.
const COMPRESSED_FORMAT: u8 = 2;

/// The same for waypoints, which begin with their model. Earlier ones name none, and say in dollars what decisions have cost.
const WAYPOINT_FORMAT: u8 = 3;

/// The same for what stands in the place of a waypoint that is stored elsewhere.
const REFERENCE_FORMAT: u8 = 4;

/// Why a record cannot be decoded.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum RecordError {
    #[error("a record has format {0}, written by a newer version")]
    Newer(u8),
    #[error("a record is damaged")]
    Damaged,
    #[error("a record is encrypted with a key that is not configured")]
    NoKey,
    #[error("there is no room for a record")]
    NoRoom,
}

/// Says whether a text of this many bytes may be put into memory, and accounts for it if it may.
pub type Room<'a> = &'a dyn Fn(u64) -> bool;

impl RecordError {
    /// A low-cardinality label for headers and metrics.
    #[must_use]
    pub fn reason(self) -> &'static str {
        Degraded::from(self).reason()
    }
}

/// A message as the client sent it, with its position in the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawMessage {
    pub id: MessageId,
    /// The preceding message; all zeros for the first message and for instructions before it.
    pub parent: MessageId,
    /// Its index in the request that introduced it.
    pub position: u32,
    /// When it was first seen, in milliseconds since the Unix epoch.
    pub at: u64,
    pub json: Bytes,
    pub standing: Standing,
}

/// Whether a message of a history that is kept here became part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    #[default]
    Kept,
    /// Its turn failed, was refused or was aborted.
    Abandoned,
}

#[must_use]
pub(crate) fn encode_waypoint(waypoint: &Waypoint) -> Bytes {
    let mut record = Vec::with_capacity(WAYPOINT_LEN);
    record.extend_from_slice(&waypoint.cache.model.to_le_bytes());
    record.extend_from_slice(&waypoint.end.0);
    for digest in [waypoint.frontier, waypoint.fold] {
        record.push(u8::from(digest.is_some()));
        record.extend_from_slice(&digest.unwrap_or_default().0);
    }
    record.extend_from_slice(&waypoint.tally.to_le_bytes());
    record.extend_from_slice(&waypoint.at.0.to_le_bytes());
    record.extend_from_slice(&waypoint.fold_tally.to_le_bytes());
    for digest in [waypoint.gap.and_then(|gap| gap.behind), waypoint.gap.map(|gap| gap.last)] {
        record.push(u8::from(digest.is_some()));
        record.extend_from_slice(&digest.unwrap_or_default().0);
    }
    waypoint.trail.0.iter().for_each(|short| record.extend_from_slice(&short.to_le_bytes()));
    record.extend_from_slice(&waypoint.cache.head.to_le_bytes());
    record.extend_from_slice(&waypoint.debt.to_le_bytes());
    let Horizon { length, cut_at } = waypoint.horizon;
    record.extend_from_slice(&length.to_le_bytes());
    record.extend_from_slice(&cut_at.unwrap_or(0).to_le_bytes());
    let has_trim = waypoint.trim.is_some() || waypoint.trim_debt > 0.0 || waypoint.is_left_alone;
    if !waypoint.excerpts.is_empty() || has_trim {
        excerpts::encode(&mut record, &waypoint.excerpts);
    }
    // Most conversations have neither, and an older version can read their records.
    if has_trim {
        let is_left_alone = if waypoint.is_left_alone { LEFT_ALONE } else { 0 };
        record.push(u8::from(waypoint.trim.is_some()) | is_left_alone);
        record.extend_from_slice(&waypoint.trim.unwrap_or_default().0);
        record.extend_from_slice(&waypoint.trim_debt.to_le_bytes());
        waypoint.skipped.shorts().iter().for_each(|short| record.extend_from_slice(&short.to_le_bytes()));
    }
    [&[WAYPOINT_FORMAT], &zeros::shorten(&record)[..]].concat().into()
}

/// Added to the byte that says whether anything was trimmed, in a conversation that is left alone.
const LEFT_ALONE: u8 = 2;

/// A waypoint that is stored whole under another key.
#[must_use]
pub(crate) fn encode_reference(to: ConversationKey) -> Bytes {
    [&[REFERENCE_FORMAT], &to.0[..]].concat().into()
}

/// Where a waypoint is stored whole; `None` if this is the record of a waypoint.
pub(crate) fn decode_reference(record: &[u8]) -> Option<ConversationKey> {
    record.strip_prefix(&[REFERENCE_FORMAT])?.try_into().ok().map(ConversationKey)
}

/// Without excerpts, which few conversations have.
const WAYPOINT_LEN: usize = 32 + 4 * (1 + 32) + 7 * 8 + size_of::<Trail>();

pub(crate) fn decode_waypoint(record: &[u8]) -> Result<Waypoint, RecordError> {
    let Fields(stored) = Fields::up_to(WAYPOINT_FORMAT, record)?;
    let restored = (!record.starts_with(&[FORMAT])).then(|| zeros::restore(stored)).transpose()?;
    let mut fields = Fields(restored.as_deref().unwrap_or(stored));
    let names_model = record.starts_with(&[WAYPOINT_FORMAT]);
    let model = if names_model { u64::from_le_bytes(fields.take()?) } else { 0 };
    let end = Digest(fields.take()?);
    let frontier = fields.take_digest()?;
    let fold = fields.take_digest()?;
    let tally = f64::from_le_bytes(fields.take()?);
    let at = Timestamp(u64::from_le_bytes(fields.take()?));
    let (mut fold_tally, mut gap) = (0.0, None);
    // Records of the first version end here.
    if !fields.0.is_empty() {
        fold_tally = f64::from_le_bytes(fields.take()?);
        let (behind, last) = (fields.take_digest()?, fields.take_digest()?);
        gap = last.map(|last| Gap { behind, last });
    }
    let (mut trail, mut head, mut debt, mut horizon) = (Trail::default(), 0, 0.0, Horizon::default());
    // Those of the second version end here.
    if !fields.0.is_empty() {
        for short in &mut trail.0 {
            *short = u64::from_le_bytes(fields.take()?);
        }
        head = u64::from_le_bytes(fields.take()?);
        debt = f64::from_le_bytes(fields.take()?);
        let (length, cut_at) = (u32::from_le_bytes(fields.take()?), u32::from_le_bytes(fields.take()?));
        horizon = Horizon { length, cut_at: Some(cut_at).filter(|cut_at| *cut_at > 0) };
    }
    // And so do those of requests without excerpts.
    let mut excerpts = Arc::default();
    if !fields.0.is_empty() {
        excerpts = excerpts::decode(&mut fields.0)?;
    }
    let (mut trim, mut trim_debt, mut skipped, mut is_left_alone) = (None, 0.0, Skipped::default(), false);
    // And those of conversations in which nothing was trimmed.
    if !fields.0.is_empty() {
        let [flags] = fields.take()?;
        let digest = Digest(fields.take()?);
        if flags > LEFT_ALONE | 1 {
            return Err(RecordError::Damaged);
        }
        trim = (flags & 1 == 1).then_some(digest);
        is_left_alone = flags & LEFT_ALONE != 0;
        trim_debt = f64::from_le_bytes(fields.take()?);
        let mut shorts = Vec::new();
        while !fields.0.is_empty() {
            shorts.push(u64::from_le_bytes(fields.take()?));
        }
        skipped = Skipped::of(shorts).ok_or(RecordError::Damaged)?;
    }
    let is_sum = |tally: f64| tally >= 0.0 && tally.is_finite();
    let is_valid = fields.0.is_empty() && [tally, fold_tally, debt, trim_debt].into_iter().all(is_sum);
    let waypoint = Waypoint {
        end,
        trail,
        cache: CacheKey { model, head },
        frontier,
        fold,
        tally,
        debt,
        horizon,
        at,
        fold_tally,
        gap,
        excerpts,
        trim,
        skipped,
        trim_debt,
        is_left_alone,
    };
    let waypoint = match names_model {
        true => waypoint,
        // What a decision has cost in dollars says nothing without the prices.
        false => Waypoint { tally: 0.0, debt: 0.0, fold_tally: 0.0, trim_debt: 0.0, ..waypoint },
    };
    is_valid.then_some(waypoint).ok_or(RecordError::Damaged)
}

/// Encodes a message. Its text is compressed, and encrypted if there is a key.
#[must_use]
pub(crate) fn encode_message(key: ConversationKey, message: &RawMessage, keyring: Option<&Keyring>) -> Bytes {
    let compressed = compression::compress(&message.json);
    let text = compressed.as_deref().unwrap_or(&message.json);
    let mut record = Vec::with_capacity(HEAD + text.len() + Sealed::OVERHEAD);
    let [format, kind] = form(compressed.is_some(), keyring);
    record.push(format);
    record.push(match message.standing {
        Standing::Kept => kind,
        Standing::Abandoned => kind | ABANDONED,
    });
    record.extend_from_slice(&message.position.to_le_bytes());
    record.extend_from_slice(&message.at.to_le_bytes());
    record.extend_from_slice(&message.parent.0);
    match keyring {
        None => record.extend_from_slice(text),
        Some(keyring) => {
            let sealed = keyring.seal(text, &context(key, message.id, &record));
            record.extend_from_slice(&sealed);
        }
    }
    record.into()
}

const HEAD: usize = 1 + 1 + 4 + 8 + 32;
const PLAIN: u8 = 0;
const SEALED: u8 = 1;
/// Added to the kind of messages whose turn was abandoned.
const ABANDONED: u8 = 2;
/// Added to the kind of records whose text is compressed.
const COMPRESSED: u8 = 4;

/// The first two bytes of a record with a text.
fn form(is_compressed: bool, keyring: Option<&Keyring>) -> [u8; 2] {
    let kind = if keyring.is_some() { SEALED } else { PLAIN };
    if is_compressed { [COMPRESSED_FORMAT, kind | COMPRESSED] } else { [FORMAT, kind] }
}

/// Reads the text behind the first `head` bytes of a record. `context` is what it is bound to if it is encrypted.
fn text_of(
    record: &Bytes,
    head: usize,
    kind: u8,
    keyring: Option<&Keyring>,
    room: Room<'_>,
    context: impl FnOnce(&[u8]) -> Vec<u8>,
) -> Result<Bytes, RecordError> {
    let (start, rest) = record.split_at_checked(head).ok_or(RecordError::Damaged)?;
    let text = match kind & !COMPRESSED {
        PLAIN => record.slice(head..),
        SEALED => keyring.ok_or(RecordError::NoKey)?.open(rest, &context(start))?.into(),
        _ => return Err(RecordError::Damaged),
    };
    if kind & COMPRESSED == 0 { Ok(text) } else { compression::decompress(&text, room).map(Bytes::from) }
}

pub(crate) fn decode_message(
    key: ConversationKey,
    id: MessageId,
    record: &Bytes,
    keyring: Option<&Keyring>,
    room: Room<'_>,
) -> Result<RawMessage, RecordError> {
    let mut fields = Fields::of_either(record)?;
    let [kind] = fields.take()?;
    let position = u32::from_le_bytes(fields.take()?);
    let at = u64::from_le_bytes(fields.take()?);
    let parent = MessageId(fields.take()?);
    let standing = if kind & ABANDONED == 0 { Standing::Kept } else { Standing::Abandoned };
    let json = text_of(record, HEAD, kind & !ABANDONED, keyring, room, |head| context(key, id, head))?;
    Ok(RawMessage { id, parent, position, at, json, standing })
}

/// Where a message stands and since when, without its text. What is damaged comes first.
pub(crate) fn place_of_message(record: &[u8]) -> (u32, u64) {
    let fields = Fields::of_either(record).and_then(|mut fields| {
        let [_kind] = fields.take()?;
        Ok((u32::from_le_bytes(fields.take()?), u64::from_le_bytes(fields.take()?)))
    });
    fields.unwrap_or_default()
}

/// Binds an encrypted message to its conversation, id and position: moved elsewhere, it does not open.
fn context(key: ConversationKey, id: MessageId, head: &[u8]) -> Vec<u8> {
    [&key.0[..], &id.0, head].concat()
}

/// The rest of a record, after its format number.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn of(record: &'a [u8]) -> Result<Fields<'a>, RecordError> {
        Fields::up_to(FORMAT, record)
    }

    /// Of a record that may be compressed.
    fn of_either(record: &'a [u8]) -> Result<Fields<'a>, RecordError> {
        Fields::up_to(COMPRESSED_FORMAT, record)
    }

    fn up_to(newest: u8, record: &'a [u8]) -> Result<Fields<'a>, RecordError> {
        match record.split_first() {
            Some((format, rest)) if (FORMAT..=newest).contains(format) => Ok(Fields(rest)),
            Some((&newer, _)) if (newest + 1..=MAX_FORMAT).contains(&newer) => Err(RecordError::Newer(newer)),
            Some(_) | None => Err(RecordError::Damaged),
        }
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], RecordError> {
        let (field, rest) = self.0.split_first_chunk::<N>().ok_or(RecordError::Damaged)?;
        self.0 = rest;
        Ok(*field)
    }

    fn take_digest(&mut self) -> Result<Option<Digest>, RecordError> {
        let [is_some] = self.take()?;
        let digest = Digest(self.take()?);
        match is_some {
            0 => Ok(None),
            1 => Ok(Some(digest)),
            _ => Err(RecordError::Damaged),
        }
    }
}

/// First bytes up to this one are future formats. Anything else, such as a letter, was never written by any version.
const MAX_FORMAT: u8 = 31;

#[cfg(test)]
mod tests;
