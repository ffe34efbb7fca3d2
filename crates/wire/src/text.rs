use serde::Deserializer;
use serde::de::{Error, IgnoredAny, Visitor};
use std::borrow::Cow;
use std::fmt;

/// The text of a JSON string, quotes included in `raw`, or nothing if `raw` is not one.
///
/// A lone surrogate escape (`"\ud800"`) is valid JSON but no text. It reads as U+FFFD here, so that one odd character
/// does not make a whole request unreadable; the bytes that go upstream stay the client's.
pub(crate) fn text(raw: &[u8]) -> Option<Cow<'_, str>> {
    if let Some(plain) = plain(raw) {
        return Some(Cow::Borrowed(plain));
    }
    let mut strict = serde_json::Deserializer::from_slice(raw);
    match strict.deserialize_str(TextVisitor).and_then(|text| strict.end().map(|()| text)) {
        Ok(text) => Some(text),
        Err(_) => lossy(raw).map(Cow::Owned),
    }
}

/// Most keys are short words: no parser is needed to see that nothing is escaped in them.
fn plain(raw: &[u8]) -> Option<&str> {
    let [b'"', inner @ .., b'"'] = raw else { return None };
    let is_plain =
        inner.len() <= 32 && inner.iter().all(|&b| matches!(b, b' '..=b'~') && b != b'"' && b != b'\\');
    if is_plain { std::str::from_utf8(inner).ok() } else { None }
}

/// The parser's byte mode gives lone surrogates in their three-byte form, but also lets control characters pass. So
/// the grammar is checked first, by the mode that looks at nothing else.
fn lossy(raw: &[u8]) -> Option<String> {
    std::str::from_utf8(raw).ok()?;
    serde_json::from_slice::<IgnoredAny>(raw).ok()?;
    let bytes = serde_json::Deserializer::from_slice(raw).deserialize_bytes(BytesVisitor).ok()?;
    let mut text = String::with_capacity(bytes.len());
    let mut rest = bytes.as_slice();
    loop {
        match std::str::from_utf8(rest) {
            Ok(valid) => {
                text.push_str(valid);
                return Some(text);
            }
            Err(error) => {
                let (valid, broken) = rest.split_at(error.valid_up_to());
                text.push_str(std::str::from_utf8(valid).ok()?);
                text.push(char::REPLACEMENT_CHARACTER);
                // The body was UTF-8, so whatever is broken now is a surrogate, three bytes long.
                rest = broken.get(3..)?;
            }
        }
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

struct BytesVisitor;

impl Visitor<'_> for BytesVisitor {
    type Value = Vec<u8>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Self::Value, E> {
        Ok(bytes.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_borrowed_where_nothing_is_escaped() {
        let long = format!("\"{}é\"", "x".repeat(40));
        assert!(matches!(text(b"\"role\""), Some(Cow::Borrowed("role"))));
        assert!(matches!(text(long.as_bytes()), Some(Cow::Borrowed(_))));
        assert_eq!(text(br#""m\u0065ss""#).unwrap(), "mess");
    }

    #[test]
    fn lone_surrogates_become_one_replacement_character() {
        assert_eq!(text(br#""a\ud800b\udc00""#).unwrap(), "a\u{fffd}b\u{fffd}");
        assert_eq!(text(br#""\ud83d\ude00\ud83d""#).unwrap(), "😀\u{fffd}");
        assert_eq!(text(br#""\ud800\ud800\n""#).unwrap(), "\u{fffd}\u{fffd}\n");
    }

    #[test]
    fn what_is_not_a_string_has_no_text() {
        for raw in [
            &b"1"[..],
            b"\"a\nb\"",
            b"\"\\x\"",
            b"\"a\"b\"",
            b"\"a",
            b"\"",
            b"\"\xff\"",
            b"\"\\ud800\n\"",
            b"",
        ] {
            assert_eq!(text(raw), None, "{raw:?}");
        }
    }
}
