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
mod tests {
    use super::*;
    use crate::{Dialect, OwnText, Placeholder, Side, split};
    use smallvec::smallvec;

    const BODY: &str = r#"{"messages":[ {"a":0,"content":"x"},{"a":1,"observation":{"type":"tool_output"},"content":[]} ,  {"a":2} ],"n":1}"#;

    fn edited(body: &str, edits: &[Edit]) -> Result<String, BadEdit> {
        let (outline, facts) = read(body);
        let pieces = splice(body.as_bytes(), &outline, &facts, edits)?;
        Ok(String::from_utf8(assemble(body.as_bytes(), &pieces)).unwrap())
    }

    fn read(body: &str) -> (Outline, Vec<MessageFacts>) {
        let outline = split(Dialect::Chat, body.as_bytes()).unwrap();
        let facts = |span: &Span| Dialect::Chat.read_facts(span.of(body.as_bytes())).unwrap();
        let facts = outline.messages.iter().map(facts).collect();
        (outline, facts)
    }

    fn new(json: &'static str) -> Bytes {
        Bytes::from_static(json.as_bytes())
    }

    fn mask(message: usize) -> Edit {
        Edit::Mask { message, placeholder: Placeholder::new("[\"]") }
    }

    #[test]
    fn without_edits_the_body_is_one_piece() {
        let (outline, facts) = read(BODY);
        let pieces = splice(BODY.as_bytes(), &outline, &facts, &[]).unwrap();
        assert_eq!(pieces, [Piece::Client(0..BODY.len())]);
    }

    #[test]
    fn a_mask_and_an_untag_share_a_message() {
        let expected =
            r#"{"messages":[ {"a":0,"content":"[\"]"},{"a":1,"content":"[\"]"} ,  {"a":2} ],"n":1}"#;
        let both = [mask(0), mask(1), Edit::Untag { message: 1 }];
        assert_eq!(edited(BODY, &both).unwrap(), expected);
        let swapped = [mask(0), Edit::Untag { message: 1 }, mask(1)];
        assert_eq!(edited(BODY, &swapped).unwrap(), expected);
    }

    #[test]
    fn a_mask_replaces_every_maskable_value() {
        let body = r#"{"messages":[{"a":"one","observation":{"type":"tool_output"},"b":"two"}]}"#;
        let (outline, mut facts) = read(body);
        let span = |text: &str| {
            let start = body.find(text).unwrap() - outline.messages[0].range().start;
            Span::new(start, start + text.len())
        };
        facts[0].maskable = smallvec![span(r#""one""#), span(r#""two""#)];
        let edits = [mask(0), Edit::Untag { message: 0 }];
        let pieces = splice(body.as_bytes(), &outline, &facts, &edits).unwrap();
        assert_eq!(assemble(body.as_bytes(), &pieces), br#"{"messages":[{"a":"[\"]","b":"[\"]"}]}"#);
    }

    #[test]
    fn a_mask_keeps_the_last_cache_marker_of_the_parts() {
        let part = |text: &str, rest: &str| format!(r#"{{"type":"text","text":"{text}"{rest}}}"#);
        let marker = r#","cache_control": {"ttl":"1h","type":"ephemeral"}"#;
        let masked = |content: &str| {
            let body =
                format!(r#"{{"messages":[{{"role":"tool","content":{content},"tool_call_id":"c"}}]}}"#);
            edited(&body, &[mask(0)]).unwrap()
        };
        let kept = r#"{"messages":[{"role":"tool","content":[{"type":"text","text":"[\"]","cache_control":{"ttl":"1h","type":"ephemeral"}}],"tool_call_id":"c"}]}"#;
        assert_eq!(masked(&format!("[{}]", part("long", marker))), kept);
        let two =
            format!("[{},{}]", part("long", r#","cache_control":{"type":"x"}"#), part("longer", marker));
        assert_eq!(masked(&two), kept);
        let plain = r#"{"messages":[{"role":"tool","content":"[\"]","tool_call_id":"c"}]}"#;
        assert_eq!(masked(&format!("[{}]", part("long", ""))), plain);
        assert_eq!(masked(&format!("[{}]", part("long", r#","cache_control":null"#))), plain);
        assert_eq!(masked(r#""long""#), plain);
    }

    #[test]
    fn texts_are_added_as_the_client_writes_its_own() {
        let extended = |content: &str, side, marker: Option<&'static str>| {
            let body = format!(r#"{{"messages":[{{"role":"user","content":{content},"name":"n"}}]}}"#);
            let own = |text, marker: Option<&'static str>| OwnText::new(text, marker.map(new));
            let texts = vec![own("a\n", None), own("b", marker)];
            let out = edited(&body, &[Edit::Extend { message: 0, texts, side }]).unwrap();
            let out = out.strip_prefix(r#"{"messages":[{"role":"user","content":"#).unwrap();
            out.strip_suffix(r#","name":"n"}]}"#).unwrap().to_owned()
        };
        let (front, back) = (Side::Front, Side::Back);
        assert_eq!(extended(r#""x\u0041""#, front, None), r#""a\n\n\nb\n\nx\u0041""#);
        assert_eq!(extended(r#""x""#, back, None), r#""x\n\na\n\n\nb""#);
        let (a, b, x) = (
            r#"{"type":"text","text":"a\n"}"#,
            r#"{"type":"text","text":"b"}"#,
            r#"{"type":"text","text":"x"}"#,
        );
        assert_eq!(extended("[ 1 ]", front, None), format!("[{a},{b}, 1 ]"));
        assert_eq!(extended("[ 1 ]", back, None), format!("[ 1 ,{a},{b}]"));
        assert_eq!(extended("[]", front, None), format!("[{a},{b}]"));
        let marked = r#"{"type":"text","text":"b","cache_control":{}}"#;
        assert_eq!(extended(r#""x""#, front, Some("{}")), format!("[{a},{marked},{x}]"));
    }

    #[test]
    fn runs_keep_the_separators_around_them() {
        let replace = |messages: Range<usize>| Edit::Replace { messages, with: new(r#"{"s":1}"#) };
        let insert = |before| Edit::Insert { before, with: new(r#"{"i":1}"#) };
        let remove = |messages| Edit::Remove { messages };
        for (edits, array) in [
            (vec![replace(0..2)], r#"[ {"s":1} ,  {"a":2} ]"#),
            (vec![replace(0..3)], r#"[ {"s":1} ]"#),
            (vec![remove(0..3)], "[  ]"),
            (vec![remove(0..2)], r#"[ {"a":2} ]"#),
            (
                vec![remove(2..3), insert(3)],
                r#"[ {"a":0,"content":"x"},{"a":1,"observation":{"type":"tool_output"},"content":[]},{"i":1} ]"#,
            ),
            (vec![insert(0), remove(0..2), insert(2)], r#"[ {"i":1} ,  {"i":1},{"a":2} ]"#),
            (
                vec![remove(0..1), replace(1..2), insert(3), insert(3)],
                r#"[ {"s":1} ,  {"a":2},{"i":1},{"i":1} ]"#,
            ),
        ] {
            let out = edited(BODY, &edits).unwrap();
            assert_eq!(out, format!("{{\"messages\":{array},\"n\":1}}"), "{edits:?}");
            assert!(serde_json::from_str::<serde_json::Value>(&out).is_ok());
        }
        assert_eq!(
            edited("{\"messages\":[ ]}", &[insert(0), insert(0)]).unwrap(),
            r#"{"messages":[{"i":1},{"i":1} ]}"#
        );
    }

    #[test]
    fn invalid_edits_are_refused() {
        let remove = |messages| Edit::Remove { messages };
        for (edits, error) in [
            (vec![mask(2)], BadEdit::NoContent { edit: 0 }),
            (vec![mask(3)], BadEdit::NoSuchMessage { edit: 0 }),
            (vec![mask(1), mask(0)], BadEdit::OutOfOrder { edit: 1 }),
            (vec![mask(1), mask(1)], BadEdit::OutOfOrder { edit: 1 }),
            (vec![Edit::Untag { message: 0 }], BadEdit::NoTag { edit: 0 }),
            (vec![remove(0..2), mask(1)], BadEdit::OutOfOrder { edit: 1 }),
            (vec![remove(1..4)], BadEdit::NoSuchMessage { edit: 0 }),
            (vec![remove(1..1)], BadEdit::NoSuchMessage { edit: 0 }),
            (vec![Edit::Insert { before: 4, with: new("{}") }], BadEdit::NoSuchMessage { edit: 0 }),
        ] {
            assert_eq!(edited(BODY, &edits), Err(error), "{edits:?}");
        }
    }
}
