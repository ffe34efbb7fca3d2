//! The pieces of an edited content: a placeholder, texts of our own, or both.

use crate::{OwnText, Piece, Side, Span};
use bytes::Bytes;
use std::ops::Range;

/// How a text part is spelled: what stands before its text, and before the value of its cache marker.
#[derive(Debug)]
pub(crate) struct PartSpelling {
    pub(crate) text: &'static [u8],
    pub(crate) marker: &'static [u8],
}

/// What an edit does to the content of one message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ContentChange<'a> {
    pub(crate) spelling: &'static PartSpelling,
    /// The JSON string that replaces what the client wrote.
    pub(crate) placeholder: Option<&'a Bytes>,
    /// The value of a cache marker of the message.
    pub(crate) breakpoint: Option<Span>,
    /// The texts to add, and where.
    pub(crate) texts: Option<(&'a [OwnText], Side)>,
}

/// Writes the content at `place` of the message that starts at `base`. A string stays a string unless a cache marker needs a part to
/// stand in.
pub(crate) fn content_pieces(
    change: &ContentChange<'_>,
    body: &[u8],
    place: Span,
    base: usize,
    pieces: &mut Vec<Piece>,
) {
    let written = base + place.range().start..base + place.range().end;
    let is_inside = |marker: &Span| place.start <= marker.start && marker.range().end <= place.range().end;
    let marker = change.breakpoint.filter(|marker| change.placeholder.is_some() && is_inside(marker));
    let marker = marker.map(|marker| base + marker.range().start..base + marker.range().end);
    let is_array = change.placeholder.is_none() && body.get(written.start) == Some(&b'[');
    let (texts, side) = change.texts.unwrap_or((&[], Side::Front));
    if is_array || marker.is_some() || texts.iter().any(|text| text.breakpoint.is_some()) {
        let own: Vec<Vec<Piece>> = texts.iter().map(|text| part_of(text, change.spelling)).collect();
        let own = own.join(&literal(b","));
        let client = client_parts(change, body, written, marker, is_array);
        pieces.push(literal(b"["));
        let (first, second) = in_order(own, client, side);
        let needs_comma = !first.is_empty() && !second.is_empty();
        pieces.extend(first);
        pieces.extend(needs_comma.then(|| literal(b",")));
        pieces.extend(second);
        pieces.push(literal(b"]"));
        return;
    }
    let own = texts.iter().map(|text| Piece::New(text.json.0.slice(1..text.json.0.len() - 1)));
    let own: Vec<Piece> = own.collect();
    let client = match change.placeholder {
        Some(placeholder) => Piece::New(placeholder.slice(1..placeholder.len() - 1)),
        None => Piece::Client(written.start + 1..written.end - 1),
    };
    let (first, second) = in_order(own, vec![client], side);
    pieces.push(literal(b"\""));
    for (index, piece) in first.into_iter().chain(second).enumerate() {
        pieces.extend((index > 0).then(|| literal(br"\n\n")));
        pieces.push(piece);
    }
    pieces.push(literal(b"\""));
}

/// Writes texts of our own as parts at one end of a list that goes on or has come before.
pub(crate) fn own_blocks(
    spelling: &PartSpelling,
    (texts, side): (&[OwnText], Side),
    is_alone: bool,
    pieces: &mut Vec<Piece>,
) {
    let own: Vec<Vec<Piece>> = texts.iter().map(|text| part_of(text, spelling)).collect();
    let own = own.join(&literal(b","));
    let comma = (!is_alone).then(|| literal(b","));
    match side {
        Side::Front => pieces.extend(own.into_iter().chain(comma)),
        Side::Back => pieces.extend(comma.into_iter().chain(own)),
    }
}

fn in_order(own: Vec<Piece>, client: Vec<Piece>, side: Side) -> (Vec<Piece>, Vec<Piece>) {
    match side {
        Side::Front => (own, client),
        Side::Back => (client, own),
    }
}

/// A text of our own as a part.
fn part_of(text: &OwnText, spelling: &PartSpelling) -> Vec<Piece> {
    let mut part = vec![literal(spelling.text), Piece::New(text.json.0.clone())];
    if let Some(marker) = &text.breakpoint {
        part.extend([literal(spelling.marker), Piece::New(marker.clone())]);
    }
    part.push(literal(b"}"));
    part
}

/// What the client wrote, or the placeholder, as parts.
fn client_parts(
    change: &ContentChange<'_>,
    body: &[u8],
    written: Range<usize>,
    marker: Option<Range<usize>>,
    is_array: bool,
) -> Vec<Piece> {
    if is_array {
        let inside = written.start + 1..written.end - 1;
        let is_blank = body[inside.clone()].iter().all(u8::is_ascii_whitespace);
        return if is_blank { Vec::new() } else { vec![Piece::Client(inside)] };
    }
    let text =
        change.placeholder.map_or(Piece::Client(written), |placeholder| Piece::New(placeholder.clone()));
    let mut part = vec![literal(change.spelling.text), text];
    if let Some(marker) = marker {
        part.extend([literal(change.spelling.marker), Piece::Client(marker)]);
    }
    part.push(literal(b"}"));
    part
}

fn literal(bytes: &'static [u8]) -> Piece {
    Piece::New(Bytes::from_static(bytes))
}
