use crate::Pixels;

/// The size of the image in a `data:` URL, read from the header of a PNG, JPEG, GIF or WebP.
///
/// Only the few bytes that tell the size are decoded, wherever they stand. Anything else (another format, a link, a text
/// that is not base64) is nothing, and the caller assumes a size.
#[must_use]
pub fn pixels_of_data_url(url: &str) -> Option<Pixels> {
    let bytes = base64_of_data_url(url)?;
    let size = match (bytes.at(0)?, bytes.at(1)?, bytes.at(2)?) {
        (0x89, b'P', b'N') => png(bytes),
        (0xff, 0xd8, 0xff) => jpeg(bytes),
        (b'G', b'I', b'F') => gif(bytes),
        (b'R', b'I', b'F') => webp(bytes),
        _ => None,
    }?;
    (size.width > 0 && size.height > 0).then_some(size)
}

/// The payload of a `data:` URL that is base64.
pub(crate) fn base64_of_data_url(url: &str) -> Option<Base64<'_>> {
    let bytes = url.as_bytes();
    if !bytes.get(..5)?.eq_ignore_ascii_case(b"data:") {
        return None;
    }
    // A media type is short; looking further would read a whole link of another kind.
    let comma = bytes.iter().take(LONGEST_MEDIA_TYPE).position(|byte| *byte == b',')?;
    let media_type = &bytes[5..comma];
    let marker = media_type.len().checked_sub(b";base64".len())?;
    media_type[marker..].eq_ignore_ascii_case(b";base64").then(|| Base64(&bytes[comma + 1..]))
}

const LONGEST_MEDIA_TYPE: usize = 256;

/// Base64 text that is read at any byte without decoding what stands before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Base64<'a>(pub(crate) &'a [u8]);

impl Base64<'_> {
    pub(crate) fn at(self, byte: usize) -> Option<u8> {
        let first = byte / 3 * 4 + byte % 3;
        let (high, low) = (self.sextet(first)?, self.sextet(first + 1)?);
        Some(match byte % 3 {
            0 => high << 2 | low >> 4,
            1 => high << 4 | low >> 2,
            _ => high << 6 | low,
        })
    }

    /// How many bytes the text holds.
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

    fn array<const N: usize>(self, start: usize) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        for (offset, byte) in bytes.iter_mut().enumerate() {
            *byte = self.at(start + offset)?;
        }
        Some(bytes)
    }

    fn big_u16(self, start: usize) -> Option<u32> {
        self.array(start).map(|bytes| u16::from_be_bytes(bytes).into())
    }

    fn little_u16(self, start: usize) -> Option<u32> {
        self.array(start).map(|bytes| u16::from_le_bytes(bytes).into())
    }

    pub(crate) fn little_u32(self, start: usize) -> Option<u32> {
        self.array(start).map(u32::from_le_bytes)
    }
}

fn png(bytes: Base64<'_>) -> Option<Pixels> {
    (bytes.array(12)? == *b"IHDR").then_some(())?;
    let side = |start| bytes.array(start).map(u32::from_be_bytes);
    Some(Pixels { width: side(16)?, height: side(20)? })
}

fn gif(bytes: Base64<'_>) -> Option<Pixels> {
    Some(Pixels { width: bytes.little_u16(6)?, height: bytes.little_u16(8)? })
}

fn webp(bytes: Base64<'_>) -> Option<Pixels> {
    (bytes.array(8)? == *b"WEBP").then_some(())?;
    match &bytes.array(12)? {
        b"VP8 " => {
            Some(Pixels { width: bytes.little_u16(26)? & 0x3fff, height: bytes.little_u16(28)? & 0x3fff })
        }
        b"VP8L" => {
            let sides = bytes.little_u32(21)?;
            Some(Pixels { width: (sides & 0x3fff) + 1, height: (sides >> 14 & 0x3fff) + 1 })
        }
        b"VP8X" => {
            let side = |start| bytes.array(start).map(|[a, b, c]| u32::from_le_bytes([a, b, c, 0]) + 1);
            Some(Pixels { width: side(24)?, height: side(27)? })
        }
        _ => None,
    }
}

/// Walks the segments of a JPEG to its frame header, which may stand behind a camera's whole preview image.
fn jpeg(bytes: Base64<'_>) -> Option<Pixels> {
    let mut position = 2;
    for _ in 0..MOST_SEGMENTS {
        (bytes.at(position)? == 0xff).then_some(())?;
        match bytes.at(position + 1)? {
            // Fill bytes, and markers that have no body.
            0xff => position += 1,
            0x01 | 0xd0..=0xd8 => position += 2,
            // Huffman tables, an extension and arithmetic coding stand among the frame headers without being one.
            0xc4 | 0xc8 | 0xcc => position += 2 + bytes.big_u16(position + 2)? as usize,
            0xc0..=0xcf => {
                return Some(Pixels {
                    width: bytes.big_u16(position + 7)?,
                    height: bytes.big_u16(position + 5)?,
                });
            }
            // The picture itself: no frame header came before it.
            0xd9 | 0xda => return None,
            _ => position += 2 + bytes.big_u16(position + 2)? as usize,
        }
    }
    None
}

/// Real files have a few dozen.
const MOST_SEGMENTS: usize = 4_096;

#[cfg(test)]
mod tests {
    use super::*;

    fn data_url(bytes: &[u8]) -> String {
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

    #[track_caller]
    fn check(parts: &[&[u8]], size: Option<(u32, u32)>) {
        let bytes = parts.concat();
        let expected = size.map(|(width, height)| Pixels { width, height });
        assert_eq!(pixels_of_data_url(&data_url(&bytes)), expected);
        for cut in 0..bytes.len().min(64) {
            let found = pixels_of_data_url(&data_url(&bytes[..cut]));
            assert!(found.is_none() || found == expected, "cut at {cut}");
        }
    }

    #[test]
    fn sizes_are_read_from_every_format() {
        let png: &[&[u8]] =
            &[b"\x89PNG\r\n\x1a\n", b"\0\0\0\x0dIHDR", &[0, 0, 4, 0, 0, 0, 3, 0], b"\x08\x06"];
        check(png, Some((1_024, 768)));
        check(&[b"GIF89a", &[0x40, 1, 0xf0, 0]], Some((320, 240)));
        let lossy: &[&[u8]] =
            &[b"RIFF....WEBPVP8 ....", b"\x30\x01\0", b"\x9d\x01\x2a", &[0x80, 0x02, 0xe0, 0x01]];
        check(lossy, Some((640, 480)));
        let sides = (99u32 | 49 << 14).to_le_bytes();
        check(&[b"RIFF....WEBPVP8L....\x2f", &sides], Some((100, 50)));
        check(&[b"RIFF....WEBPVP8X....\0\0\0\0", &[0xff, 0x0f, 0, 0xff, 0x07, 0]], Some((4_096, 2_048)));
    }

    #[test]
    fn a_jpeg_is_read_behind_its_preview() {
        let exif = [b"\xff\xe1\xff\xfe".as_slice(), &[0; 0xfffc]].concat();
        let frame = b"\xff\xc2\0\x11\x08\x02\x58\x03\x20\x03";
        let tables = b"\xff\xc4\0\x04\x01\x02";
        check(&[b"\xff\xd8", &exif, tables, b"\xff", frame], Some((800, 600)));
        check(&[b"\xff\xd8", b"\xff\xda", frame], None);
    }

    #[test]
    fn what_is_not_an_image_has_no_size() {
        for url in [
            "",
            "data:",
            "https://example.com/a.png",
            "data:image/png,abc",
            "data:image/png;base64,",
            "dåta:;base64,",
        ] {
            assert_eq!(pixels_of_data_url(url), None, "{url}");
        }
        check(&[b"\x89PNG\r\n\x1a\n", b"\0\0\0\x0dIHDR", &[0; 8]], None);
        check(&[b"BM", &[0; 60]], None);
    }

    #[test]
    fn decoding_anywhere_agrees_with_what_was_encoded() {
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
