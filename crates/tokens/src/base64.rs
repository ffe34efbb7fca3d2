//! Random access to base64: reads a few bytes without decoding what comes before them.

/// Returns the payload of a `data:` URL, or `None` if it is not base64.
pub(crate) fn base64_of_data_url(url: &str) -> Option<Base64<'_>> {
    let bytes = url.as_bytes();
    if !bytes.get(..5)?.eq_ignore_ascii_case(b"data:") {
        return None;
    }
    // A media type is short. Do not search all of a long text that is not a base64 URL.
    let comma = bytes.iter().take(MAX_MEDIA_TYPE).position(|byte| *byte == b',')?;
    let media_type = &bytes[5..comma];
    let marker = media_type.len().checked_sub(b";base64".len())?;
    media_type[marker..].eq_ignore_ascii_case(b";base64").then(|| Base64(&bytes[comma + 1..]))
}

const MAX_MEDIA_TYPE: usize = 256;

/// A base64 text, in the standard or the URL-safe alphabet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Base64<'a>(pub(crate) &'a [u8]);

impl Base64<'_> {
    /// Decodes the byte at this position. Returns `None` if it is past the end or the text is not base64 there.
    pub(crate) fn at(self, byte: usize) -> Option<u8> {
        let first = byte / 3 * 4 + byte % 3;
        let (high, low) = (self.sextet(first)?, self.sextet(first + 1)?);
        Some(match byte % 3 {
            0 => high << 2 | low >> 4,
            1 => high << 4 | low >> 2,
            _ => high << 6 | low,
        })
    }

    /// The number of bytes that the text encodes.
    pub(crate) fn len(self) -> usize {
        let padding = self.0.iter().rev().take(2).take_while(|byte| **byte == b'=').count();
        (self.0.len() - padding) * 3 / 4
    }

    fn sextet(self, position: usize) -> Option<u8> {
        match *self.0.get(position)? {
            byte @ b'A'..=b'Z' => Some(byte - b'A'),
            byte @ b'a'..=b'z' => Some(byte - b'a' + 26),
            byte @ b'0'..=b'9' => Some(byte - b'0' + 52),
            b'+' | b'-' => Some(62),
            b'/' | b'_' => Some(63),
            _ => None,
        }
    }

    pub(crate) fn array<const N: usize>(self, start: usize) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        for (offset, byte) in bytes.iter_mut().enumerate() {
            *byte = self.at(start + offset)?;
        }
        Some(bytes)
    }

    pub(crate) fn big_u16(self, start: usize) -> Option<u32> {
        self.array(start).map(|bytes| u16::from_be_bytes(bytes).into())
    }

    pub(crate) fn little_u16(self, start: usize) -> Option<u32> {
        self.array(start).map(|bytes| u16::from_le_bytes(bytes).into())
    }

    pub(crate) fn little_u32(self, start: usize) -> Option<u32> {
        self.array(start).map(u32::from_le_bytes)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Encodes bytes as a `data:` URL.
    pub(crate) fn data_url(bytes: &[u8]) -> String {
        const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut url = String::from("data:image/any;base64,");
        for chunk in bytes.chunks(3) {
            let word =
                chunk.iter().fold(0u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
            for position in 0..4 {
                let sextet = (word >> (18 - 6 * position) & 63) as usize;
                url.push(if position <= chunk.len() { ALPHABET[sextet].into() } else { '=' });
            }
        }
        url
    }

    #[test]
    fn every_byte_decodes_to_what_was_encoded() {
        let bytes: Vec<u8> = (0..=255).collect();
        for length in [1, 2, 3, 100, 256] {
            let url = data_url(&bytes[..length]);
            let text = base64_of_data_url(&url).unwrap();
            assert_eq!(text.len(), length);
            assert!((0..length).all(|position| text.at(position) == Some(bytes[position])));
            assert_eq!(text.at(length), None);
        }
    }
}
