//! Finds what a later answer may have to spell exactly: paths, ids, names and numbers.

use std::collections::HashSet;
use twox_hash::XxHash3_128;

/// Longer ones are not worth the room: data, encoded images, minified code.
const MAX_LENGTH: usize = 80;

/// Shorter ones are in every text.
const MIN_LENGTH: usize = 3;

/// Returns the distinctive identifiers of a text, in order, with repetitions: words of ASCII letters, digits and `_ . / : @ # - \`
/// that have a digit, a letter case or a sign which plain words do not have.
///
/// ```
/// use tidegate_wire::identifiers;
/// let text = "Error in src/main.rs:17: order #W4817 of Mia_Li was not found (getOrder), see https://a.example/x.";
/// let found: Vec<&str> = identifiers(text).collect();
/// assert_eq!(found, ["src/main.rs:17", "#W4817", "Mia_Li", "getOrder", "https://a.example/x"]);
/// ```
pub fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|letter: char| !is_part(letter));
    words.map(trimmed).filter(|word| is_distinctive(word))
}

/// The hash of an identifier. The same in every process.
pub(super) fn hash(identifier: &str) -> u64 {
    XxHash3_128::oneshot(identifier.as_bytes()) as u64
}

/// The hashes of the identifiers of some texts.
pub(super) fn hashes<'a>(texts: impl Iterator<Item = &'a str>) -> Box<[u64]> {
    let unique: HashSet<u64> = texts.flat_map(identifiers).map(hash).collect();
    unique.into_iter().collect()
}

fn is_part(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.' | '/' | ':' | '@' | '#' | '-' | '\\')
}

/// Removes punctuation that belongs to the sentence.
fn trimmed(word: &str) -> &str {
    word.trim_start_matches(['.', ':', '-', '@', '\\']).trim_end_matches(['.', ':', '-', '/', '#', '@', '\\'])
}

fn is_distinctive(word: &str) -> bool {
    if !(MIN_LENGTH..=MAX_LENGTH).contains(&word.len()) {
        return false;
    }
    let bytes = word.as_bytes();
    if !bytes.iter().any(u8::is_ascii_alphanumeric) {
        return false;
    }
    let has_digit = bytes.iter().any(u8::is_ascii_digit);
    let has_sign = bytes.iter().any(|byte| matches!(byte, b'_' | b'/' | b'@' | b'\\' | b'#'));
    // `a.b` and `a::b` are names, `e.g` and `10:30` are not worth much but rare.
    let joins = |pair: &[u8]| matches!(pair, [a, b'.' | b':', b] if a.is_ascii_alphanumeric() && b.is_ascii_alphanumeric());
    let is_joined = bytes.windows(3).any(joins) || word.contains("::");
    let is_camel = bytes.windows(2).any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
    has_digit || has_sign || is_joined || is_camel
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<&str> {
        identifiers(text).collect()
    }

    #[test]
    fn plain_words_are_not_identifiers() {
        assert!(found("The quick brown fox, isn't it? well-known A B 42 -- ... // éé").is_empty());
    }

    #[test]
    fn paths_ids_names_and_numbers_are() {
        assert_eq!(found(r#"{"order_id": "W100", "total": 239.99}"#), ["order_id", "W100", "239.99"]);
        assert_eq!(
            found("at /usr/lib/x.so, in std::fs and C:\\temp."),
            ["/usr/lib/x.so", "std::fs", "C:\\temp"]
        );
        assert_eq!(found("a@b.example #1234 0x7f3a v1.2.3"), ["a@b.example", "#1234", "0x7f3a", "v1.2.3"]);
    }

    #[test]
    fn data_is_not_listed() {
        assert!(found(&"QUJD1".repeat(40)).is_empty());
    }
}
