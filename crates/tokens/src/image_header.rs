use crate::Pixels;
use crate::base64::{Base64, base64_of_data_url};

/// Reads the size of the image in a `data:` URL from its PNG, JPEG, GIF or WebP header, decoding only the bytes it needs.
///
/// Returns `None` for everything else: another format, a link, or text that is not base64.
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

/// Walks the segments of a JPEG to its frame header, which can come after a camera's preview image.
fn jpeg(bytes: Base64<'_>) -> Option<Pixels> {
    let mut position = 2;
    for _ in 0..MAX_SEGMENTS {
        (bytes.at(position)? == 0xff).then_some(())?;
        match bytes.at(position + 1)? {
            // Fill bytes, and markers without a body.
            0xff => position += 1,
            0x01 | 0xd0..=0xd8 => position += 2,
            // Huffman tables, an extension and arithmetic coding: in the range of frame headers, but none.
            0xc4 | 0xc8 | 0xcc => position += 2 + bytes.big_u16(position + 2)? as usize,
            0xc0..=0xcf => {
                return Some(Pixels {
                    width: bytes.big_u16(position + 7)?,
                    height: bytes.big_u16(position + 5)?,
                });
            }
            // The image data begins, and there was no frame header.
            0xd9 | 0xda => return None,
            _ => position += 2 + bytes.big_u16(position + 2)? as usize,
        }
    }
    None
}

/// Real files have a few dozen segments.
const MAX_SEGMENTS: usize = 4_096;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base64::tests::data_url;

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
    fn reads_the_size_from_every_format() {
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
    fn reads_the_size_of_a_jpeg_after_its_preview() {
        let exif = [b"\xff\xe1\xff\xfe".as_slice(), &[0; 0xfffc]].concat();
        let frame = b"\xff\xc2\0\x11\x08\x02\x58\x03\x20\x03";
        let tables = b"\xff\xc4\0\x04\x01\x02";
        check(&[b"\xff\xd8", &exif, tables, b"\xff", frame], Some((800, 600)));
        check(&[b"\xff\xd8", b"\xff\xda", frame], None);
    }

    #[test]
    fn other_texts_have_no_size() {
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
}
