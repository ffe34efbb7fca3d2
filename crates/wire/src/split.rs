use crate::cursor::{Cursor, skip_whitespace};
use crate::envelope::Envelope;
use crate::{Fingerprint, Fingerprinter, MAX_DEPTH, Span, Unreadable};

/// Values of the envelope from this size on are worth remembering, because reading them costs more than a lookup.
const LARGE: usize = 512;

/// Where things are in the body of a chat completion, and what its envelope says.
///
/// The spans are ranges of the very bytes that were split. Messages are only cut out, not read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    /// The array of messages, brackets included.
    pub array: Span,
    /// Each message, without the white space and commas between them.
    pub messages: Vec<Span>,
    /// The fingerprint of each message; none where [`split`] was not given a [`Fingerprinter`].
    pub fingerprints: Vec<Fingerprint>,
    /// What the members besides `messages` say. A member of an unexpected type is as good as absent: the upstream
    /// will say what it thinks of it.
    pub model: Option<String>,
    pub stream: bool,
    pub max_tokens: Option<u64>,
    pub max_completion_tokens: Option<u64>,
    pub n: Option<u64>,
    /// The values of these members, whatever they are.
    pub tools: Option<Span>,
    pub functions: Option<Span>,
    pub tool_choice: Option<Span>,
    pub response_format: Option<Span>,
    pub stream_options: Option<Span>,
    /// Large values of the envelope that were read in full because `known` did not know them. Whoever remembers them
    /// can say so the next time.
    pub newly_checked: Vec<Fingerprint>,
}

/// Cuts the body of a chat completion into its messages.
///
/// The envelope is checked in full. A message is only cut out, not even its UTF-8 is checked: have each one that was never seen before read by
/// [`read_message`](crate::read_message). If that succeeds for all, the body is valid JSON, byte for byte.
///
/// ```
/// let body = br#"{"model": "m", "messages": [ {"role":"user","content":"hi"} ]}"#;
/// let outline = tidegate_wire::split(body).unwrap();
/// assert_eq!(outline.model.as_deref(), Some("m"));
/// assert_eq!(outline.messages[0].of(body), br#"{"role":"user","content":"hi"}"#);
/// ```
pub fn split(body: &[u8]) -> Result<Outline, Unreadable> {
    split_body(body, None, &mut |_| false)
}

/// The same for a caller that remembers what it has read: the outline also has each message's fingerprint, taken while
/// the message is still in the processor's cache.
///
/// `known` says whether a large value of the envelope, such as `tools`, has been read before (it was in
/// [`Outline::newly_checked`] then); such a value is not read again.
pub fn split_seen(
    body: &[u8],
    fingerprinter: &Fingerprinter,
    mut known: impl FnMut(Fingerprint) -> bool,
) -> Result<Outline, Unreadable> {
    split_body(body, Some(fingerprinter), &mut known)
}

fn split_body(
    body: &[u8],
    fingerprinter: Option<&Fingerprinter>,
    known: &mut dyn FnMut(Fingerprint) -> bool,
) -> Result<Outline, Unreadable> {
    if u32::try_from(body.len()).is_err() {
        return Err(Unreadable::TooLarge);
    }
    let outline = match walk(body, fingerprinter, known) {
        Err(Unreadable::NotJson { .. }) if simdutf8::basic::from_utf8(body).is_err() => {
            return Err(Unreadable::NotUtf8);
        }
        walked => walked?,
    };
    // Between the brackets are only messages and ASCII, and whoever reads a message checks it; one seen before has been
    // checked then.
    let (before, behind) = (&body[..outline.array.range().start], &body[outline.array.range().end..]);
    if simdutf8::basic::from_utf8(before).is_err() || simdutf8::basic::from_utf8(behind).is_err() {
        return Err(Unreadable::NotUtf8);
    }
    Ok(outline)
}

fn walk(
    body: &[u8],
    fingerprinter: Option<&Fingerprinter>,
    known: &mut dyn FnMut(Fingerprint) -> bool,
) -> Result<Outline, Unreadable> {
    let start = skip_whitespace(body, 0);
    if body.get(start) != Some(&b'{') {
        return Err(Unreadable::NotAnObject);
    }

    let mut outline = Outline::default();
    let mut envelope = Envelope::default();
    let mut messages = None;
    let mut cursor = Cursor::enter(body, start, MAX_DEPTH);
    while let Some((key, _)) = cursor.next_key()? {
        if key == "messages" {
            // A first one of the wrong type must not hide that there are two.
            let found = read_array(&mut cursor, body, fingerprinter, &mut outline);
            match (messages.replace(()), found) {
                (Some(()), _) => return Err(Unreadable::DuplicateMessages),
                (None, Err(Unreadable::MessagesNotAnArray)) => envelope.not_an_array = true,
                (None, found) => found?,
            }
            continue;
        }
        let value = cursor.value()?;
        if !envelope.take(&key, value)? {
            match fingerprinter {
                Some(fingerprinter) if value.raw().len() >= LARGE => {
                    let fingerprint = fingerprinter.of(value.raw());
                    if !known(fingerprint) {
                        value.check()?;
                        outline.newly_checked.push(fingerprint);
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
    if messages.is_none() {
        return Err(Unreadable::NoMessages);
    }
    envelope.finish(outline)
}

fn read_array(
    cursor: &mut Cursor<'_>,
    body: &[u8],
    fingerprinter: Option<&Fingerprinter>,
    outline: &mut Outline,
) -> Result<(), Unreadable> {
    let start = cursor.at;
    if cursor.peek() != Some(b'[') {
        cursor.value()?.check()?;
        return Err(Unreadable::MessagesNotAnArray);
    }
    let mut array = Cursor::enter(body, start, MAX_DEPTH - 1);
    while array.next_element()? {
        if array.peek() != Some(b'{') {
            array.value()?.check()?;
            return Err(Unreadable::MessageNotAnObject { index: outline.messages.len() });
        }
        let message = array.value()?;
        outline.messages.push(message.span());
        if let Some(fingerprinter) = fingerprinter {
            outline.fingerprints.push(fingerprinter.of(message.raw()));
        }
    }
    cursor.at = array.at;
    outline.array = Span::new(start, array.at);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(body: &[u8]) -> Unreadable {
        split(body).unwrap_err()
    }

    #[test]
    fn the_envelope_says_what_it_says() {
        let body = br#" {"n":2,"mod\u0065l":"a\"b","messages":[{} , {"a":[]}],"stream":true,"max_tokens":7,
            "max_completion_tokens":9,"tools":[1],"x":1e999,"stream_options":{"include_usage":true}} "#;
        let outline = split(body).unwrap();
        assert_eq!(outline.model.as_deref(), Some("a\"b"));
        assert_eq!(
            (outline.n, outline.max_tokens, outline.max_completion_tokens),
            (Some(2), Some(7), Some(9))
        );
        assert!(outline.stream);
        assert_eq!(outline.array.of(body), br#"[{} , {"a":[]}]"#);
        assert_eq!(outline.messages[1].of(body), br#"{"a":[]}"#);
        assert_eq!(outline.tools.unwrap().of(body), b"[1]");
        assert_eq!(outline.stream_options.unwrap().of(body), br#"{"include_usage":true}"#);
    }

    #[test]
    fn members_of_another_type_are_as_good_as_absent() {
        let outline = split(br#"{"model":1,"stream":"true","max_tokens":-1,"n":1.5,"messages":[]}"#).unwrap();
        assert_eq!((outline.model, outline.stream, outline.max_tokens, outline.n), (None, false, None, None));
    }

    #[test]
    fn every_refusal_has_its_name() {
        assert_eq!(refusal(b"\xef\xbb\xbf{\"messages\":[]}"), Unreadable::NotAnObject);
        assert_eq!(refusal(b"[]"), Unreadable::NotAnObject);
        assert_eq!(refusal(b""), Unreadable::NotAnObject);
        assert_eq!(refusal(b"{\"messages\":[]} x"), Unreadable::NotJson { at: 16 });
        assert_eq!(refusal(b"{\"messages\":[],\"a\":\"\xff\"}"), Unreadable::NotUtf8);
        assert_eq!(refusal(b"{\"a\":{\"\xff\":\"\xc3\"},\"messages\":[]}"), Unreadable::NotUtf8);
        assert_eq!(refusal(b"{\"model\":\"m\"}"), Unreadable::NoMessages);
        assert_eq!(refusal(b"{\"messages\":{}}"), Unreadable::MessagesNotAnArray);
        assert_eq!(refusal(b"{\"messages\":[{},1]}"), Unreadable::MessageNotAnObject { index: 1 });
        assert_eq!(refusal(br#"{"messages":[],"m\u0065ssages":[]}"#), Unreadable::DuplicateMessages);
        assert_eq!(refusal(br#"{"messages":null,"messages":[]}"#), Unreadable::DuplicateMessages);
        assert_eq!(refusal(br#"{"model":"a","messages":[],"model":1}"#), Unreadable::Ambiguous("model"));
        assert_eq!(refusal(br#"{"stream":1,"messages":[],"stream":true}"#), Unreadable::Ambiguous("stream"));
        for body in
            ["{\"messages\":[{},]}", "{\"messages\":[{}{}]}", "{\"messages\":[,{}]}", "{\"messages\":[{}}}"]
        {
            assert!(matches!(refusal(body.as_bytes()), Unreadable::NotJson { .. }), "{body}");
        }
    }

    #[test]
    fn nesting_counts_from_the_body_itself() {
        let nested = |levels: usize| {
            let value = "[".repeat(levels) + &"]".repeat(levels);
            (format!("{{\"messages\":[{{\"a\":{value}}}]}}"), format!("{{\"messages\":[],\"a\":{value}}}"))
        };
        assert!(split(nested(MAX_DEPTH - 3).0.as_bytes()).is_ok());
        assert!(split(nested(MAX_DEPTH - 1).1.as_bytes()).is_ok());
        assert_eq!(refusal(nested(MAX_DEPTH - 2).0.as_bytes()), Unreadable::TooDeep);
        assert_eq!(refusal(nested(MAX_DEPTH).1.as_bytes()), Unreadable::TooDeep);
        assert_eq!(refusal(nested(10_000).0.as_bytes()), Unreadable::TooDeep);
    }

    #[test]
    fn a_large_value_is_read_once() {
        let tools = format!("[{}1]", "1,".repeat(LARGE));
        let body = format!("{{\"tools\":{tools},\"messages\":[]}}");
        let fingerprinter = Fingerprinter::new(1);
        let fingerprint = fingerprinter.of(tools.as_bytes());
        let first = split_seen(body.as_bytes(), &fingerprinter, |_| false).unwrap();
        assert_eq!(first.newly_checked, [fingerprint]);

        let again = split_seen(body.as_bytes(), &fingerprinter, |known| known == fingerprint).unwrap();
        assert_eq!(again.newly_checked, []);
        assert_eq!(again.tools.unwrap().of(body.as_bytes()), tools.as_bytes());
        assert_eq!(refusal(body.replace(",1]", ",1,]").as_bytes()).reason(), "not_json");
    }
}
