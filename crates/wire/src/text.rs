use std::borrow::Cow;

/// The text of a JSON string, quotes included in `raw`, or nothing if `raw` is not one.
///
/// A lone surrogate escape (`"\ud800"`) is valid JSON but no text. It reads as U+FFFD here, so that one odd character
/// does not make a whole request unreadable; the bytes that go upstream stay the client's.
///
/// This is most of what reading a message costs. A general parser would collect the text in a buffer of its own, check its
/// UTF-8 with the slower check, and have it copied once more.
pub(crate) fn text(raw: &[u8]) -> Option<Cow<'_, str>> {
    let [b'"', inner @ .., b'"'] = raw else { return None };
    let inner = simdutf8::basic::from_utf8(inner).ok()?;
    let run = run(inner.as_bytes());
    if run == inner.len() { Some(Cow::Borrowed(inner)) } else { unescape(inner, run).map(Cow::Owned) }
}

/// Puts together the runs between escapes, the first of which is `run` bytes long.
fn unescape(inner: &str, mut run: usize) -> Option<String> {
    let mut text = String::with_capacity(inner.len());
    let mut rest = inner;
    loop {
        let (plain, behind) = rest.split_at_checked(run)?;
        text.push_str(plain);
        rest = match behind.as_bytes() {
            [] => return Some(text),
            [b'\\', b'u', ..] => {
                let (character, length) = unicode(behind.as_bytes())?;
                text.push(character);
                behind.get(length..)?
            }
            [b'\\', escape, ..] => {
                text.push(char::from(short(*escape)?));
                behind.get(2..)?
            }
            _ => return None,
        };
        run = self::run(rest.as_bytes());
    }
}

/// What the letter behind a backslash stands for.
fn short(escape: u8) -> Option<u8> {
    match escape {
        b'"' | b'\\' | b'/' => Some(escape),
        b'b' => Some(0x08),
        b'f' => Some(0x0c),
        b'n' => Some(b'\n'),
        b'r' => Some(b'\r'),
        b't' => Some(b'\t'),
        _ => None,
    }
}

/// The character whose escape `bytes` begin with, and how long the escape is: characters beyond the first 65,536 are
/// written as two surrogates.
fn unicode(bytes: &[u8]) -> Option<(char, usize)> {
    const ONE: usize = r"\u0000".len();
    let first = unit(bytes)?;
    let second = bytes.get(ONE..).and_then(unit).filter(|_| (0xd800..0xdc00).contains(&first));
    if let Some(Ok(character)) = second.and_then(|second| char::decode_utf16([first, second]).next()) {
        return Some((character, 2 * ONE));
    }
    Some((char::from_u32(first.into()).unwrap_or(char::REPLACEMENT_CHARACTER), ONE))
}

/// The sixteen bits of the escape that `bytes` begin with.
fn unit(bytes: &[u8]) -> Option<u16> {
    let digits = bytes.strip_prefix(br"\u")?.first_chunk::<4>()?;
    digits.iter().try_fold(0, |unit, &digit| Some(unit << 4 | char::from(digit).to_digit(16)? as u16))
}

/// How many bytes come before the first one that cannot stand for itself in a string: a backslash, a quote, a control
/// character.
///
/// Runs are short in code, an escape every fifteen or twenty bytes, too short for a vector search to pay its start. So eight
/// bytes are looked at as one number.
fn run(bytes: &[u8]) -> usize {
    let (words, tail) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let special = special(u64::from_le_bytes(*word));
        if special != 0 {
            return 8 * index + special.trailing_zeros() as usize / 8;
        }
    }
    let tail_at = bytes.len() - tail.len();
    tail_at + tail.iter().position(|&b| b < b' ' || b == b'"' || b == b'\\').unwrap_or(tail.len())
}

/// The highest bit of the lowest special byte is set, and of no byte below it. What is set above means nothing, because the
/// subtractions borrow.
fn special(word: u64) -> u64 {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word;
    let equal = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    (below(word, 0x20) | equal(b'"') | equal(b'\\')) & (ONES << 7)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde::Deserializer;
    use serde::de::{Error, IgnoredAny, Visitor};
    use std::fmt;

    #[test]
    fn text_is_borrowed_where_nothing_is_escaped() {
        let long = format!("\"{}é\"", "x".repeat(40));
        assert!(matches!(text(b"\"role\""), Some(Cow::Borrowed("role"))));
        assert!(matches!(text(b"\"\""), Some(Cow::Borrowed(""))));
        assert!(matches!(text(long.as_bytes()), Some(Cow::Borrowed(_))));
        assert_eq!(text(br#""m\u0065ss""#).unwrap(), "mess");
    }

    #[test]
    fn every_escape_reads_as_what_it_stands_for() {
        assert_eq!(text(br#""\"\\\/\b\f\n\r\t\u00e9\u20AC""#).unwrap(), "\"\\/\u{8}\u{c}\n\r\té€");
        assert_eq!(
            text("\"ü\\n漢字\\t and some more 😀\\\"\"".as_bytes()).unwrap(),
            "ü\n漢字\t and some more 😀\""
        );
    }

    #[test]
    fn lone_surrogates_become_one_replacement_character() {
        assert_eq!(text(br#""a\ud800b\udc00""#).unwrap(), "a\u{fffd}b\u{fffd}");
        assert_eq!(text(br#""\ud83d\ude00\ud83d""#).unwrap(), "😀\u{fffd}");
        assert_eq!(text(br#""\ud800\ud800\n""#).unwrap(), "\u{fffd}\u{fffd}\n");
        assert_eq!(text(br#""\ud800\ud83d\ude00\ud800\u0041""#).unwrap(), "\u{fffd}😀\u{fffd}A");
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
            b"\"\\\"",
            b"\"\xff\"",
            b"\"\\ud800\n\"",
            b"\"\\u12\"",
            b"\"\\u+123\"",
            b"\"\\ud800\\u00g0\"",
            b"",
        ] {
            assert_eq!(text(raw), None, "{raw:?}");
        }
    }

    /// Pieces of strings, right and wrong, of every length that the words of eight bytes could be cut at.
    fn pieces() -> impl Strategy<Value = Vec<u8>> {
        let words: &[&[u8]] = &[
            br"\n", br"\t", br#"\""#, br"\\", br"\/", br"\u0041", br"\u00E9", br"\ud83d", br"\ude00",
            br"\uDFFF",
        ];
        let wrong: &[&[u8]] = &[
            b"\"",
            b"\\",
            br"\x",
            br"\u",
            br"\u12",
            br"\u00g0",
            b"\n",
            b"\0",
            b"\x1f",
            b"\xff",
            b"\xc3",
            b"\xed\xa0\x80",
        ];
        let piece = prop_oneof![
            8 => prop::sample::select(words).prop_map(<[u8]>::to_vec),
            8 => "[ -!#-\\[\\]-~]{0,20}".prop_map(String::into_bytes),
            4 => "[\u{7f}-\u{10ffff}]{1,3}".prop_map(String::into_bytes),
            1 => prop::sample::select(wrong).prop_map(<[u8]>::to_vec),
        ];
        prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn the_parser_reads_the_same(inner in pieces()) {
            let raw = [b"\"", &*inner, b"\""].concat();
            prop_assert_eq!(text(&raw).map(Cow::into_owned), parsed(&raw));
        }

        #[test]
        fn the_parser_reads_the_same_of_any_bytes(inner in prop::collection::vec(any::<u8>(), 0..12)) {
            let raw = [b"\"", &*inner, b"\""].concat();
            prop_assert_eq!(text(&raw).map(Cow::into_owned), parsed(&raw));
        }
    }

    /// The same by a general parser. Its byte mode gives lone surrogates in their three-byte form, but also lets control
    /// characters pass; so the grammar is checked first, by the mode that looks at nothing else.
    fn parsed(raw: &[u8]) -> Option<String> {
        if let Ok(text) = serde_json::from_slice::<String>(raw) {
            return Some(text);
        }
        std::str::from_utf8(raw).ok()?;
        serde_json::from_slice::<IgnoredAny>(raw).ok()?;
        let bytes = serde_json::Deserializer::from_slice(raw).deserialize_bytes(BytesVisitor).ok()?;
        let mut text = String::new();
        // The raw bytes were UTF-8, so whatever is broken now is a surrogate, whose three bytes are broken one by one.
        for chunk in bytes.utf8_chunks() {
            text.push_str(chunk.valid());
            if chunk.invalid().first() == Some(&0xed) {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        Some(text)
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
}
