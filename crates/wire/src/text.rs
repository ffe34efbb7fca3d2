use std::borrow::Cow;

/// Returns the text of a JSON string, or `None` if `raw` is not one. `raw` includes the quotes.
///
/// A lone surrogate escape (`"\ud800"`) is valid JSON but not valid text. It reads as U+FFFD, so that one such character does not make
/// the whole request unreadable. The forwarded bytes stay the client's.
///
/// Most of the time to read a message is spent here. A general parser would collect the text in its own buffer, validate UTF-8 more
/// slowly, and copy the text once more.
pub(crate) fn text(raw: &[u8]) -> Option<Cow<'_, str>> {
    let [b'"', inner @ .., b'"'] = raw else { return None };
    let inner = simdutf8::basic::from_utf8(inner).ok()?;
    let run = run(inner.as_bytes());
    if run == inner.len() { Some(Cow::Borrowed(inner)) } else { unescape(inner, run).map(Cow::Owned) }
}

/// Decodes a text with escapes. Its first `run` bytes have none.
fn unescape(inner: &str, mut run: usize) -> Option<String> {
    let mut text = String::with_capacity(inner.len());
    let mut rest = inner;
    loop {
        let (plain, after) = rest.split_at_checked(run)?;
        text.push_str(plain);
        rest = match after.as_bytes() {
            [] => return Some(text),
            [b'\\', b'u', ..] => {
                let (character, length) = unicode(after.as_bytes())?;
                text.push(character);
                after.get(length..)?
            }
            [b'\\', escape, ..] => {
                text.push(char::from(short(*escape)?));
                after.get(2..)?
            }
            _ => return None,
        };
        run = self::run(rest.as_bytes());
    }
}

/// Decodes a one-letter escape.
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

/// Decodes the `\u` escape at the start of `bytes`, and returns the character and the length of the escape. Characters above U+FFFF
/// are written as two surrogates.
fn unicode(bytes: &[u8]) -> Option<(char, usize)> {
    const ONE: usize = r"\u0000".len();
    let first = unit(bytes)?;
    let second = bytes.get(ONE..).and_then(unit).filter(|_| (0xd800..0xdc00).contains(&first));
    if let Some(Ok(character)) = second.and_then(|second| char::decode_utf16([first, second]).next()) {
        return Some((character, 2 * ONE));
    }
    Some((char::from_u32(first.into()).unwrap_or(char::REPLACEMENT_CHARACTER), ONE))
}

/// Decodes one `\u` escape into a UTF-16 code unit.
fn unit(bytes: &[u8]) -> Option<u16> {
    let digits = bytes.strip_prefix(br"\u")?.first_chunk::<4>()?;
    digits.iter().try_fold(0, |unit, &digit| Some(unit << 4 | char::from(digit).to_digit(16)? as u16))
}

/// Returns the number of bytes before the first backslash, quote or control character.
///
/// Source code has an escape every fifteen to twenty bytes, which is too short for a vector search to pay off. So eight bytes are
/// tested at a time, as one integer.
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

/// Sets the highest bit of the lowest special byte, and clears those of the bytes below it. Higher bits are undefined, because the
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
    fn text_without_escapes_is_borrowed() {
        let long = format!("\"{}é\"", "x".repeat(40));
        assert!(matches!(text(b"\"role\""), Some(Cow::Borrowed("role"))));
        assert!(matches!(text(b"\"\""), Some(Cow::Borrowed(""))));
        assert!(matches!(text(long.as_bytes()), Some(Cow::Borrowed(_))));
        assert_eq!(text(br#""m\u0065ss""#).unwrap(), "mess");
    }

    #[test]
    fn every_escape_is_decoded() {
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
    fn invalid_strings_have_no_text() {
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
        fn valid_strings_read_as_serde_json_reads_them(inner in pieces()) {
            let raw = [b"\"", &*inner, b"\""].concat();
            prop_assert_eq!(text(&raw).map(Cow::into_owned), parsed(&raw));
        }

        #[test]
        fn any_bytes_read_as_serde_json_reads_them(inner in prop::collection::vec(any::<u8>(), 0..12)) {
            let raw = [b"\"", &*inner, b"\""].concat();
            prop_assert_eq!(text(&raw).map(Cow::into_owned), parsed(&raw));
        }
    }

    /// Decodes with `serde_json`. Its byte mode returns lone surrogates in their three-byte form, but also accepts control characters,
    /// so the grammar is checked first.
    fn parsed(raw: &[u8]) -> Option<String> {
        if let Ok(text) = serde_json::from_slice::<String>(raw) {
            return Some(text);
        }
        std::str::from_utf8(raw).ok()?;
        serde_json::from_slice::<IgnoredAny>(raw).ok()?;
        let bytes = serde_json::Deserializer::from_slice(raw).deserialize_bytes(BytesVisitor).ok()?;
        let mut text = String::new();
        // The raw bytes were UTF-8, so invalid bytes now are the three bytes of a surrogate, each its own chunk.
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
