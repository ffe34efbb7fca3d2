use crate::content_pieces::{ContentChange, PartSpelling, content_pieces, own_blocks};
use crate::{BadEdit, Edit, MessageFacts, Outline, OwnText, Piece, Placeholder, Side, Span};
use bytes::Bytes;
use std::borrow::Borrow;
use std::ops::Range;

/// Applies edits to a body and returns the result as pieces. Bytes that no edit touches stay the client's, neither copied nor
/// rewritten.
///
/// `facts` are those of each message, and `edits` are in the order of the messages.
///
/// ```
/// use tidegate_wire::{Dialect, Edit, Placeholder, assemble, splice, split};
/// let body = br#"{"messages": [{"role":"tool", "content":"long"}, {"role":"user","content":"hi"}] }"#;
/// let outline = split(Dialect::Chat, body).unwrap();
/// let facts: Vec<_> =
///     outline.messages.iter().map(|span| Dialect::Chat.read_facts(span.of(body)).unwrap()).collect();
/// let edits = [Edit::Mask { message: 0, placeholder: Placeholder::new("[gone]") }];
/// let pieces = splice(body, &outline, &facts, &edits).unwrap();
/// assert_eq!(
///     assemble(body, &pieces),
///     br#"{"messages": [{"role":"tool", "content":"[gone]"}, {"role":"user","content":"hi"}] }"#
/// );
/// ```
pub fn splice<F: Borrow<MessageFacts>>(
    body: &[u8],
    outline: &Outline,
    facts: &[F],
    edits: &[Edit],
) -> Result<Vec<Piece>, BadEdit> {
    let is_text = body.get(outline.array.range().start) == Some(&b'"');
    if is_text && edits.iter().any(|edit| matches!(edit, Edit::Insert { .. })) {
        return Ok(beside_text(body, outline, edits));
    }
    let mut writer = PieceWriter {
        body,
        messages: &outline.messages,
        pieces: Vec::with_capacity(2 * edits.len() + 1),
        next: 0,
        separated: 0,
        empty: true,
    };
    let array = outline.array.range();
    let first = outline.messages.first().map_or(array.start + 1, |span| span.range().start);
    writer.client(0..first);

    let mut at = 0;
    while let Some(edit) = edits.get(at) {
        match edit {
            Edit::Mask { message, .. }
            | Edit::Shorten { message, .. }
            | Edit::Untag { message }
            | Edit::Extend { message, .. } => {
                let changes = Changes::collect(*message, outline, facts, edits, &mut at)?;
                writer.copy_until(*message, at - 1)?;
                writer.change(*message, &changes);
                continue;
            }
            Edit::Replace { messages, with } => {
                writer.copy_until_run(messages, at)?;
                writer.separate(messages.start);
                writer.pieces.push(Piece::New(with.clone()));
                writer.next = messages.end;
            }
            Edit::Remove { messages } => {
                writer.copy_until_run(messages, at)?;
                writer.next = messages.end;
            }
            Edit::Insert { before, with } => {
                writer.copy_until(*before, at)?;
                writer.separate(*before);
                writer.pieces.push(Piece::New(with.clone()));
            }
        }
        at += 1;
    }
    writer.copy_until(outline.messages.len(), edits.len())?;
    let last = outline.messages.last().map_or(array.start + 1, |span| span.range().end);
    writer.client(last..body.len());
    Ok(writer.pieces)
}

/// Puts messages of our own beside a text that stands in place of the messages: a list of both. Nothing else is ever done to such a
/// request, whose only message is the user's last one.
fn beside_text(body: &[u8], outline: &Outline, edits: &[Edit]) -> Vec<Piece> {
    let text = outline.array.range();
    let literal = |bytes: &'static [u8]| Piece::New(Bytes::from_static(bytes));
    let own = |side: usize| {
        edits.iter().filter_map(move |edit| match edit {
            Edit::Insert { before, with } if *before == side => Some(Piece::New(with.clone())),
            _ => None,
        })
    };
    let mut pieces = vec![Piece::Client(0..text.start), literal(b"[")];
    pieces.extend(own(0).flat_map(|own| [own, literal(b",")]));
    pieces.push(literal(br#"{"role":"user","content":"#));
    pieces.push(Piece::Client(text.clone()));
    pieces.push(literal(b"}"));
    pieces.extend(own(1).flat_map(|own| [literal(b","), own]));
    pieces.extend([literal(b"]"), Piece::Client(text.end..body.len())]);
    pieces
}

/// Joins the pieces in one buffer, for callers that cannot send them one by one.
#[must_use]
pub fn assemble(body: &[u8], pieces: &[Piece]) -> Vec<u8> {
    let mut whole = Vec::with_capacity(spliced_len(pieces));
    for piece in pieces {
        match piece {
            Piece::Client(range) => whole.extend_from_slice(&body[range.clone()]),
            Piece::New(bytes) => whole.extend_from_slice(bytes),
        }
    }
    whole
}

/// Returns the total length of the pieces in bytes.
#[must_use]
pub fn spliced_len(pieces: &[Piece]) -> usize {
    pieces
        .iter()
        .map(|piece| match piece {
            Piece::Client(range) => range.len(),
            Piece::New(bytes) => bytes.len(),
        })
        .sum()
}

/// The changes inside one message. Places count from the message's first byte and do not overlap.
struct Changes<'a> {
    /// The values to change, in order.
    places: &'a [Span],
    /// The values to replace with a text each, in order, instead of `places`.
    texts: &'a [(Span, Placeholder)],
    content: ContentChange<'a>,
    /// The list of blocks around those values that gets texts of our own, with them.
    around: Option<(Span, &'a [OwnText], Side)>,
    /// The tag to remove.
    tag: Option<Span>,
}

impl<'a> Changes<'a> {
    /// Collects the edits inside one message. `at` is the first of them, and moves past them.
    fn collect<F: Borrow<MessageFacts>>(
        message: usize,
        outline: &Outline,
        facts: &'a [F],
        edits: &'a [Edit],
        at: &mut usize,
    ) -> Result<Changes<'a>, BadEdit> {
        let Some(facts) = facts.get(message).filter(|_| message < outline.messages.len()) else {
            return Err(BadEdit::NoSuchMessage { edit: *at });
        };
        let facts: &MessageFacts = facts.borrow();
        let spelling = outline.dialect.text_part();
        let content = ContentChange { spelling, placeholder: None, breakpoint: None, texts: None };
        let mut changes = Changes { places: &[], texts: &[], content, around: None, tag: None };
        while let Some(edit) = edits.get(*at) {
            let is_repeated = match edit {
                Edit::Mask { message: same, placeholder } if *same == message => {
                    if facts.maskable.is_empty() {
                        return Err(BadEdit::NoContent { edit: *at });
                    }
                    changes.places = &facts.maskable;
                    changes.content.breakpoint = facts.breakpoint;
                    changes.content.placeholder.replace(&placeholder.0).is_some()
                }
                Edit::Shorten { message: same, texts } if *same == message => {
                    if texts.is_empty() {
                        return Err(BadEdit::NoContent { edit: *at });
                    }
                    changes.content.breakpoint = facts.breakpoint;
                    !std::mem::replace(&mut changes.texts, texts).is_empty()
                }
                Edit::Extend { message: same, texts, side } if *same == message => {
                    let place = facts.extendable.ok_or(BadEdit::NothingToExtend { edit: *at })?;
                    let is_within =
                        changes.texts.is_empty() || matches!(changes.texts, [(text, _)] if *text == place);
                    if facts.maskable[..] == [place] && is_within {
                        changes.places = &facts.maskable;
                        changes.content.texts.replace((texts.as_slice(), *side)).is_some()
                    } else {
                        changes.around.replace((place, texts.as_slice(), *side)).is_some()
                    }
                }
                Edit::Untag { message: same } if *same == message => {
                    let tag = facts.tag.ok_or(BadEdit::NoTag { edit: *at })?;
                    changes.tag.replace(tag).is_some()
                }
                _ => break,
            };
            if is_repeated {
                return Err(BadEdit::OutOfOrder { edit: *at });
            }
            *at += 1;
        }
        Ok(changes)
    }

    /// The values to change, and how.
    fn values(&self) -> impl Iterator<Item = (Span, ContentChange<'a>)> {
        let content = self.content;
        let places = if self.texts.is_empty() { self.places } else { &[] };
        let same = places.iter().map(move |place| (*place, content));
        same.chain(
            self.texts
                .iter()
                .map(move |(place, text)| (*place, ContentChange { placeholder: Some(&text.0), ..content })),
        )
    }
}

/// Writes the pieces of the edited body.
struct PieceWriter<'a> {
    body: &'a [u8],
    messages: &'a [Span],
    pieces: Vec<Piece>,
    /// The first of the client's messages that has not been processed.
    next: usize,
    /// The client's separators before the messages up to this one have been used or skipped.
    separated: usize,
    /// Whether no message has been written yet.
    empty: bool,
}

impl PieceWriter<'_> {
    /// Copies the client's messages up to this one unchanged.
    fn copy_until(&mut self, message: usize, edit: usize) -> Result<(), BadEdit> {
        if message > self.messages.len() {
            return Err(BadEdit::NoSuchMessage { edit });
        }
        if message < self.next {
            return Err(BadEdit::OutOfOrder { edit });
        }
        if message > self.next {
            self.separate(self.next);
            self.client(self.messages[self.next].range().start..self.messages[message - 1].range().end);
            self.separated = message - 1;
            self.next = message;
        }
        Ok(())
    }

    /// Checks that a run of messages is valid and copies the messages before it.
    fn copy_until_run(&mut self, messages: &Range<usize>, edit: usize) -> Result<(), BadEdit> {
        if messages.end > self.messages.len() || messages.is_empty() {
            return Err(BadEdit::NoSuchMessage { edit });
        }
        self.copy_until(messages.start, edit)
    }

    fn change(&mut self, message: usize, changes: &Changes<'_>) {
        self.separate(message);
        let span = self.messages[message].range();
        let mut from = span.start;
        let mut tag = changes.tag;
        if let Some((place, texts, Side::Front)) = changes.around {
            from = self.copy_to(from, span.start + place.range().start + 1);
            self.blocks(changes.content.spelling, place, (texts, Side::Front), span.start);
        }
        for (place, content) in changes.values() {
            if let Some(tag) = tag.take_if(|tag| tag.start < place.start) {
                from = self.skip(from, tag, span.start);
            }
            from = self.skip(from, place, span.start);
            content_pieces(&content, self.body, place, span.start, &mut self.pieces);
        }
        if let Some((place, texts, Side::Back)) = changes.around {
            from = self.copy_to(from, span.start + place.range().end - 1);
            self.blocks(changes.content.spelling, place, (texts, Side::Back), span.start);
        }
        if let Some(tag) = tag {
            from = self.skip(from, tag, span.start);
        }
        self.client(from..span.end);
        self.next = message + 1;
    }

    /// Writes texts of our own as blocks at one end of a list of the client's, whose bracket is the neighbour.
    fn blocks(&mut self, spelling: &PartSpelling, list: Span, own: (&[OwnText], Side), base: usize) {
        let inside = base + list.range().start + 1..base + list.range().end - 1;
        let is_blank = self.body[inside].iter().all(u8::is_ascii_whitespace);
        own_blocks(spelling, own, is_blank, &mut self.pieces);
    }

    fn copy_to(&mut self, from: usize, to: usize) -> usize {
        self.client(from..to);
        to
    }

    /// Copies from `from` up to a place inside the message that starts at `base`. Returns the index after that place.
    fn skip(&mut self, from: usize, place: Span, base: usize) -> usize {
        let place = place.range();
        self.client(from..base + place.start);
        base + place.end
    }

    /// Writes the separator before the message that replaces or precedes `message`: the client's own if it is still unused, so that
    /// its white space is kept, and a comma otherwise.
    fn separate(&mut self, message: usize) {
        if self.empty {
            self.empty = false;
        } else if message > self.separated && message < self.messages.len() {
            self.client(self.messages[message - 1].range().end..self.messages[message].range().start);
        } else {
            self.pieces.push(Piece::New(Bytes::from_static(b",")));
        }
        self.separated = self.separated.max(message);
    }

    fn client(&mut self, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        match self.pieces.last_mut() {
            Some(Piece::Client(last)) if last.end == range.start => last.end = range.end,
            _ => self.pieces.push(Piece::Client(range)),
        }
    }
}

#[cfg(test)]
mod tests;
