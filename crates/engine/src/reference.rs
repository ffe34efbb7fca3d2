use crate::Digest;
use std::fmt;
use std::str::FromStr;

/// The short name of a message within its conversation, which placeholders and excerpts give to the model: `ref 7f3a09c1`.
///
/// It is the beginning of the message's [`Digest`]. So it is the same at every request and in every process, and a branch of the
/// conversation has other references from where it branches off. Its length never changes, because that would change what is
/// forwarded: eight digits leave one chance in ten thousand that any two of a thousand messages share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference(u32);

impl Reference {
    /// The reference of the message at which the conversation has this digest.
    #[must_use]
    pub fn of(digest: Digest) -> Reference {
        let [a, b, c, d, ..] = digest.0;
        Reference(u32::from_be_bytes([a, b, c, d]))
    }

    /// Whether it refers to the message at which the conversation has this digest.
    #[must_use]
    pub fn is_of(self, digest: Digest) -> bool {
        self == Reference::of(digest)
    }
}

/// Eight hexadecimal digits.
impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

/// A text is not a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidReference;

impl fmt::Display for InvalidReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a reference must have eight hexadecimal digits")
    }
}

impl std::error::Error for InvalidReference {}

/// Parses eight hexadecimal digits. Models copy more than that out of a placeholder, so `ref` before them and brackets around them
/// are accepted.
impl FromStr for Reference {
    type Err = InvalidReference;

    fn from_str(text: &str) -> Result<Reference, InvalidReference> {
        let text = text.trim_matches(|letter: char| !letter.is_ascii_alphanumeric());
        let digits = text.strip_prefix("ref").unwrap_or(text);
        let digits = digits.trim_start_matches([' ', ':', '=']);
        let is_digits = digits.len() == 8 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let number = is_digits.then(|| u32::from_str_radix(digits, 16).ok()).flatten();
        number.map(Reference).ok_or(InvalidReference)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_the_beginning_of_a_digest() {
        let digest = Digest(std::array::from_fn(|index| index as u8 + 10));
        let reference = Reference::of(digest);
        assert_eq!(reference.to_string(), digest.to_string()[..8]);
        assert_eq!(reference.to_string().parse(), Ok(reference));
        assert!(reference.is_of(digest) && !reference.is_of(Digest::default()));
    }

    #[test]
    fn parses_what_models_copy_and_nothing_else() {
        for text in
            ["0a0b0c0d", "ref 0a0b0c0d", "[ref 0a0b0c0d]", " 0A0B0C0D\n", "ref: 0a0b0c0d", "`0a0b0c0d`"]
        {
            assert_eq!(text.parse(), Ok(Reference(0x0a0b_0c0d)), "{text}");
        }
        for text in ["", "ref", "0a0b0c0", "0a0b0c0d0", "+a0b0c0d", "ref ref 0a0b0c0d", "0a0b0c0é", "call_1"]
        {
            assert_eq!(text.parse::<Reference>(), Err(InvalidReference), "{text}");
        }
    }
}
