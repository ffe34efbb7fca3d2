use crate::cursor::{Cursor, skip_whitespace};
use crate::dialect::is_messages_key;
use crate::envelope::{Envelope, Extra, OutputLimit};
use crate::responses::Side;
use crate::{Dialect, Fingerprint, Fingerprinter, MAX_DEPTH, Session, Span, Unreadable};

/// Values of the envelope from this size on are worth caching: checking them costs more than a lookup.
const LARGE: usize = 512;

/// The positions of the messages in a request's body, and the contents of its envelope.
///
/// The spans are ranges of the bytes that were split. Messages are only cut out, not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outline {
    pub dialect: Dialect,
    /// The array of messages, brackets included. Empty if there is none, because the provider has all messages.
    pub array: Span,
    /// Each message, without the white space and commas between them.
    pub messages: Vec<Span>,
    /// The fingerprint of each message. Empty if the body was split by [`split`] or [`split_envelope`].
    pub fingerprints: Vec<Fingerprint>,
    /// The model's name. Like every member of an unexpected type, a model that is not a string counts as absent.
    pub model: Option<String>,
    pub stream: bool,
    /// Whether the request asks the provider to manage the context.
    pub asks_native: bool,
    /// Whether the provider keeps the messages before these.
    pub continues_upstream: bool,
    /// The answer after which the provider continues, and how much the model is to think, as the client named them. For reports only.
    pub previous_response: Option<String>,
    pub reasoning_level: Option<String>,
    /// The names by which the client groups requests, the most specific first.
    pub sessions: Vec<Session>,
    /// Whether the request asks for cache breakpoints as a whole, beside those of its messages.
    pub sets_breakpoints: bool,
    /// Whether these are to live for an hour.
    pub sets_long_breakpoints: bool,
    pub output_limit: Option<OutputLimit>,
    /// What the model reads besides the messages, in an order that does not depend on the body.
    pub extras: Vec<Extra>,
    /// Large values of the envelope that were checked now, because `is_checked` did not know them. A caller that remembers them
    /// saves the check the next time.
    pub newly_checked: Vec<Fingerprint>,
}

/// Cuts the body of a request into its messages.
///
/// The envelope is checked in full. Messages are only cut out, and not even their UTF-8 is checked: read each one that has not been
/// seen before with [`Dialect::read_message`]. If that succeeds for all, the whole body is valid JSON.
///
/// ```
/// use tidegate_wire::{Dialect, split};
/// let body = br#"{"model": "m", "messages": [ {"role":"user","content":"hi"} ]}"#;
/// let outline = split(Dialect::Chat, body).unwrap();
/// assert_eq!(outline.model.as_deref(), Some("m"));
/// assert_eq!(outline.messages[0].of(body), br#"{"role":"user","content":"hi"}"#);
/// ```
pub fn split(dialect: Dialect, body: &[u8]) -> Result<Outline, Unreadable> {
    split_body(dialect, body, Fingerprints::None, &mut |_| false)
}

/// Cuts the body into messages and fingerprints each one while it is still in the processor's cache.
///
/// `is_checked` returns whether a large value of the envelope, such as `tools`, has been in [`Outline::newly_checked`] before. Such
/// a value is not checked again.
pub fn split_and_fingerprint(
    dialect: Dialect,
    body: &[u8],
    fingerprinter: &Fingerprinter,
    mut is_checked: impl FnMut(Fingerprint) -> bool,
) -> Result<Outline, Unreadable> {
    split_body(dialect, body, Fingerprints::All(fingerprinter), &mut is_checked)
}

/// Cuts the body into messages like [`split_and_fingerprint`], but leaves out the fingerprints of the messages: hashing a large body
/// that nobody edits costs more than cutting it.
pub fn split_envelope(
    dialect: Dialect,
    body: &[u8],
    fingerprinter: &Fingerprinter,
    mut is_checked: impl FnMut(Fingerprint) -> bool,
) -> Result<Outline, Unreadable> {
    split_body(dialect, body, Fingerprints::Envelope(fingerprinter), &mut is_checked)
}

/// What is fingerprinted while a body is split.
#[derive(Clone, Copy)]
enum Fingerprints<'a> {
    None,
    /// Large values beside the messages, which are then checked only once.
    Envelope(&'a Fingerprinter),
    /// These and the messages.
    All(&'a Fingerprinter),
}

impl Outline {
    /// Whether the provider has messages that the request has not, or all of them.
    #[must_use]
    pub fn is_elsewhere(&self) -> bool {
        self.continues_upstream || self.array.is_empty()
    }
}

impl<'a> Fingerprints<'a> {
    fn of_envelope(self) -> Option<&'a Fingerprinter> {
        match self {
            Fingerprints::None => None,
            Fingerprints::Envelope(fingerprinter) | Fingerprints::All(fingerprinter) => Some(fingerprinter),
        }
    }

    fn of_messages(self) -> Option<&'a Fingerprinter> {
        match self {
            Fingerprints::None | Fingerprints::Envelope(_) => None,
            Fingerprints::All(fingerprinter) => Some(fingerprinter),
        }
    }
}

fn split_body(
    dialect: Dialect,
    body: &[u8],
    fingerprints: Fingerprints<'_>,
    is_checked: &mut dyn FnMut(Fingerprint) -> bool,
) -> Result<Outline, Unreadable> {
    if u32::try_from(body.len()).is_err() {
        return Err(Unreadable::TooLarge);
    }
    let outline = match walk(dialect, body, fingerprints, is_checked) {
        Err(Unreadable::NotJson { .. }) if simdutf8::basic::from_utf8(body).is_err() => {
            return Err(Unreadable::NotUtf8);
        }
        walked => walked?,
    };
    // Between the brackets there are only messages and ASCII. Messages are checked when they are first read.
    let (before, after) = (&body[..outline.array.range().start], &body[outline.array.range().end..]);
    if simdutf8::basic::from_utf8(before).is_err() || simdutf8::basic::from_utf8(after).is_err() {
        return Err(Unreadable::NotUtf8);
    }
    Ok(outline)
}

fn walk(
    dialect: Dialect,
    body: &[u8],
    fingerprints: Fingerprints<'_>,
    is_checked: &mut dyn FnMut(Fingerprint) -> bool,
) -> Result<Outline, Unreadable> {
    let start = skip_whitespace(body, 0);
    if body.get(start) != Some(&b'{') {
        return Err(Unreadable::NotAnObject);
    }

    let messages_key = dialect.messages_key();
    let mut messages = None;
    // Of another dialect, to whose path the request belongs.
    let mut has_messages_elsewhere = false;
    let mut newly_checked = Vec::new();
    let mut envelope = Envelope::new(dialect);
    let mut cursor = Cursor::enter(body, start, MAX_DEPTH);
    while let Some((key, _)) = cursor.next_key()? {
        if key == messages_key {
            let found = cut_messages(dialect, &mut cursor, body, fingerprints.of_messages());
            // A first value of the wrong type must not hide a second one.
            match (&messages, found) {
                (Some(_), _) => return Err(Unreadable::DuplicateMessages { key: messages_key }),
                (None, Err(error @ Unreadable::MessagesNotAnArray { .. })) => messages = Some(Err(error)),
                (None, found) => messages = Some(Ok(found?)),
            }
            continue;
        }
        has_messages_elsewhere |= is_messages_key(&key);
        let value = cursor.value()?;
        if !envelope.read(&key, value)? {
            match fingerprints.of_envelope() {
                Some(fingerprinter) if value.raw().len() >= LARGE => {
                    let fingerprint = fingerprinter.of(value.raw());
                    if !is_checked(fingerprint) {
                        value.check()?;
                        newly_checked.push(fingerprint);
                    }
                }
                Some(_) | None => value.check()?,
            }
        }
    }
    let end = skip_whitespace(body, cursor.at);
    if end != body.len() {
        return Err(Unreadable::NotJson { at: end });
    }
    let is_elsewhere = (envelope.continues_upstream || envelope.names_template) && !has_messages_elsewhere;
    let none = || Messages { array: Span::new(end, end), spans: Vec::new(), fingerprints: Vec::new() };
    let messages = messages.or_else(|| is_elsewhere.then(|| Ok(none())));
    let Messages { array, spans, fingerprints } =
        messages.ok_or(Unreadable::NoMessages { key: messages_key })??;
    Ok(Outline {
        dialect,
        array,
        messages: spans,
        fingerprints,
        output_limit: envelope.output_limit(),
        sessions: envelope.sessions(),
        extras: envelope.extras(),
        model: envelope.model,
        stream: envelope.stream,
        asks_native: envelope.asks_native,
        continues_upstream: envelope.continues_upstream,
        previous_response: envelope.previous_response,
        reasoning_level: envelope.reasoning_level,
        sets_breakpoints: envelope.sets_breakpoints,
        sets_long_breakpoints: envelope.sets_long_breakpoints,
        newly_checked,
    })
}

struct Messages {
    array: Span,
    spans: Vec<Span>,
    fingerprints: Vec<Fingerprint>,
}

/// Cuts out each element of the array at the cursor, and moves the cursor past it. Elements that are one message are cut out as one.
fn cut_messages(
    dialect: Dialect,
    cursor: &mut Cursor<'_>,
    body: &[u8],
    fingerprinter: Option<&Fingerprinter>,
) -> Result<Messages, Unreadable> {
    let (start, key) = (cursor.at, dialect.messages_key());
    let (mut spans, mut fingerprints) = (Vec::new(), Vec::new());
    if cursor.peek() == Some(b'"') && dialect.takes_text() {
        let span = cursor.value()?.span();
        fingerprints.extend(fingerprinter.map(|fingerprinter| fingerprinter.of(span.of(body))));
        return Ok(Messages { array: span, spans: vec![span], fingerprints });
    }
    if cursor.peek() != Some(b'[') {
        cursor.value()?.check()?;
        return Err(Unreadable::MessagesNotAnArray { key });
    }
    let mut array = Cursor::enter(body, start, MAX_DEPTH - 1);
    let (mut items, mut run) = (0, None);
    while array.next_element()? {
        if array.peek() != Some(b'{') {
            array.value()?.check()?;
            return Err(Unreadable::MessageNotAnObject { key, index: items });
        }
        let item = array.value()?;
        items += 1;
        let span = item.span();
        if dialect.side(item.raw()) == Some(Side::Model) {
            run = Some(run.map_or(span, |run: Span| Span::new(run.range().start, span.range().end)));
            continue;
        }
        // Each message is fingerprinted while it is still in the processor's cache.
        for message in run.take().into_iter().chain([span]) {
            fingerprints.extend(fingerprinter.map(|fingerprinter| fingerprinter.of(message.of(body))));
            spans.push(message);
        }
    }
    if let Some(message) = run {
        fingerprints.extend(fingerprinter.map(|fingerprinter| fingerprinter.of(message.of(body))));
        spans.push(message);
    }
    cursor.at = array.at;
    Ok(Messages { array: Span::new(start, array.at), spans, fingerprints })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ExtraKind;

    fn error(body: &[u8]) -> Unreadable {
        split(Dialect::Chat, body).unwrap_err()
    }

    #[test]
    fn splitting_without_fingerprints_of_messages_finds_the_same_messages() {
        let body =
            br#"{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"user","content":"ho"}]}"#;
        let fingerprinter = Fingerprinter::new(1);
        let all = split_and_fingerprint(Dialect::Chat, body, &fingerprinter, |_| false).unwrap();
        let envelope = split_envelope(Dialect::Chat, body, &fingerprinter, |_| false).unwrap();
        assert_eq!(all.fingerprints.len(), 2);
        assert_eq!(envelope, Outline { fingerprints: Vec::new(), ..all });
    }

    #[test]
    fn the_envelope_is_read() {
        let body = br#" {"n":2,"mod\u0065l":"a\"b","messages":[{} , {"a":[]}],"stream":true,"max_tokens":7,
            "response_format":{},"max_completion_tokens":9,"tools":[1],"x":1e999,"stream_options":{"include_usage":true}} "#;
        let outline = split(Dialect::Chat, body).unwrap();
        assert_eq!(outline.model.as_deref(), Some("a\"b"));
        assert_eq!(outline.output_limit, Some(OutputLimit { key: "max_completion_tokens", tokens: 9 }));
        assert!(outline.stream);
        assert_eq!(outline.array.of(body), br#"[{} , {"a":[]}]"#);
        assert_eq!(outline.messages[1].of(body), br#"{"a":[]}"#);
        let extras: Vec<_> = outline.extras.iter().map(|extra| (extra.kind, extra.span.of(body))).collect();
        assert_eq!(extras, [(ExtraKind::Tools, &b"[1]"[..]), (ExtraKind::ResponseFormat, b"{}")]);
    }

    #[test]
    fn members_of_an_unexpected_type_count_as_absent() {
        let body = br#"{"model":1,"stream":"true","max_tokens":-1,"n":1.5,"messages":[]}"#;
        let outline = split(Dialect::Chat, body).unwrap();
        assert_eq!((outline.model, outline.stream, outline.output_limit), (None, false, None));
        let body = br#"{"max_tokens":7,"max_completion_tokens":"9","messages":[]}"#;
        let limit = split(Dialect::Chat, body).unwrap().output_limit;
        assert_eq!(limit, Some(OutputLimit { key: "max_tokens", tokens: 7 }));
    }

    #[test]
    fn every_error_has_its_variant() {
        assert_eq!(error(b"\xef\xbb\xbf{\"messages\":[]}"), Unreadable::NotAnObject);
        assert_eq!(error(b"[]"), Unreadable::NotAnObject);
        assert_eq!(error(b""), Unreadable::NotAnObject);
        assert_eq!(error(b"{\"messages\":[]} x"), Unreadable::NotJson { at: 16 });
        assert_eq!(error(b"{\"messages\":[],\"a\":\"\xff\"}"), Unreadable::NotUtf8);
        assert_eq!(error(b"{\"a\":{\"\xff\":\"\xc3\"},\"messages\":[]}"), Unreadable::NotUtf8);
        assert_eq!(error(b"{\"model\":\"m\"}"), Unreadable::NoMessages { key: "messages" });
        assert_eq!(error(b"{\"messages\":{}}"), Unreadable::MessagesNotAnArray { key: "messages" });
        assert_eq!(
            error(b"{\"messages\":[{},1]}"),
            Unreadable::MessageNotAnObject { key: "messages", index: 1 }
        );
        assert_eq!(
            error(br#"{"messages":[],"m\u0065ssages":[]}"#),
            Unreadable::DuplicateMessages { key: "messages" }
        );
        assert_eq!(
            error(br#"{"messages":null,"messages":[]}"#),
            Unreadable::DuplicateMessages { key: "messages" }
        );
        assert_eq!(error(br#"{"model":"a","messages":[],"model":1}"#), Unreadable::Ambiguous("model"));
        assert_eq!(error(br#"{"stream":1,"messages":[],"stream":true}"#), Unreadable::Ambiguous("stream"));
        for body in
            ["{\"messages\":[{},]}", "{\"messages\":[{}{}]}", "{\"messages\":[,{}]}", "{\"messages\":[{}}}"]
        {
            assert!(matches!(error(body.as_bytes()), Unreadable::NotJson { .. }), "{body}");
        }
    }

    #[test]
    fn nesting_counts_from_the_body_itself() {
        let nested = |levels: usize| {
            let value = "[".repeat(levels) + &"]".repeat(levels);
            (format!("{{\"messages\":[{{\"a\":{value}}}]}}"), format!("{{\"messages\":[],\"a\":{value}}}"))
        };
        assert!(split(Dialect::Chat, nested(MAX_DEPTH - 3).0.as_bytes()).is_ok());
        assert!(split(Dialect::Chat, nested(MAX_DEPTH - 1).1.as_bytes()).is_ok());
        assert_eq!(error(nested(MAX_DEPTH - 2).0.as_bytes()), Unreadable::TooDeep);
        assert_eq!(error(nested(MAX_DEPTH).1.as_bytes()), Unreadable::TooDeep);
        assert_eq!(error(nested(10_000).0.as_bytes()), Unreadable::TooDeep);
    }

    #[test]
    fn a_large_value_is_checked_once() {
        let tools = format!("[{}1]", "1,".repeat(LARGE));
        let body = format!("{{\"tools\":{tools},\"messages\":[]}}");
        let fingerprinter = Fingerprinter::new(1);
        let fingerprint = fingerprinter.of(tools.as_bytes());
        let first = split_and_fingerprint(Dialect::Chat, body.as_bytes(), &fingerprinter, |_| false).unwrap();
        assert_eq!(first.newly_checked, [fingerprint]);

        let again = split_and_fingerprint(Dialect::Chat, body.as_bytes(), &fingerprinter, |known| {
            known == fingerprint
        })
        .unwrap();
        assert_eq!(again.newly_checked, []);
        assert_eq!(again.extras[0].span.of(body.as_bytes()), tools.as_bytes());
        assert_eq!(error(body.replace(",1]", ",1,]").as_bytes()).reason(), "not_json");
    }
}
