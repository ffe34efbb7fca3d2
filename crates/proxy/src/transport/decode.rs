//! Decompresses request bodies.

use http::HeaderMap;
use http::header::CONTENT_ENCODING;
use std::io::{self, Read};

/// The content coding of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coding {
    Identity,
    Gzip,
    Deflate,
    Brotli,
    Zstd,
    /// An unsupported coding, or more than one. The body is forwarded unchanged.
    Unknown,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DecodeError {
    TooLarge,
    Corrupt,
    /// The memory for the result was refused.
    Unpaid,
}

pub(crate) fn coding(headers: &HeaderMap) -> Coding {
    let mut values = headers.get_all(CONTENT_ENCODING).iter();
    let coding = match values.next().map(|value| value.as_bytes().trim_ascii().to_ascii_lowercase()) {
        None => Coding::Identity,
        Some(name) => match name.as_slice() {
            b"" | b"identity" => Coding::Identity,
            b"gzip" | b"x-gzip" => Coding::Gzip,
            b"deflate" => Coding::Deflate,
            b"br" => Coding::Brotli,
            b"zstd" => Coding::Zstd,
            _ => Coding::Unknown,
        },
    };
    if values.next().is_some() { Coding::Unknown } else { coding }
}

/// Decompresses `body`. Fails if the result is larger than `limit`, since a few bytes can decompress to gigabytes.
pub(crate) fn decode(coding: Coding, body: &[u8], limit: u64) -> Result<Vec<u8>, DecodeError> {
    decode_paid(coding, body, limit, |_| true)
}

/// Decompresses `body`, and asks `pay` before each piece of the result is kept.
pub(crate) fn decode_paid(
    coding: Coding,
    body: &[u8],
    limit: u64,
    pay: impl FnMut(u64) -> bool,
) -> Result<Vec<u8>, DecodeError> {
    match coding {
        Coding::Identity | Coding::Unknown => read(body, limit, pay),
        Coding::Gzip => read(flate2::read::MultiGzDecoder::new(body), limit, pay),
        Coding::Deflate if is_zlib(body.first()) => read(flate2::read::ZlibDecoder::new(body), limit, pay),
        Coding::Deflate => read(flate2::read::DeflateDecoder::new(body), limit, pay),
        Coding::Brotli => read(brotli::Decompressor::new(body, 4096), limit, pay),
        Coding::Zstd => {
            let decoder = zstd::stream::read::Decoder::new(body).and_then(|mut decoder| {
                decoder.window_log_max(MAX_ZSTD_WINDOW_LOG)?;
                Ok(decoder)
            });
            read(decoder.map_err(|_| DecodeError::Corrupt)?, limit, pay)
        }
    }
}

/// The frame header sets the window size. RFC 9659 limits it to 8 MiB for content codings.
pub(super) const MAX_ZSTD_WINDOW_LOG: u32 = 23;

/// Whether a `deflate` body has the zlib header that the standard asks for. Some programs send it without.
pub(super) fn is_zlib(first: Option<&u8>) -> bool {
    first.is_some_and(|first| first & 0x0f == 8)
}

fn read(
    mut decoder: impl Read,
    limit: u64,
    mut pay: impl FnMut(u64) -> bool,
) -> Result<Vec<u8>, DecodeError> {
    let mut plain = Vec::new();
    loop {
        let before = plain.len() as u64;
        let step: io::Result<usize> =
            decoder.by_ref().take(STEP.min(limit.saturating_add(1) - before)).read_to_end(&mut plain);
        let read = step.map_err(|_| DecodeError::Corrupt)?;
        if plain.len() as u64 > limit {
            return Err(DecodeError::TooLarge);
        }
        if !pay(read as u64) {
            return Err(DecodeError::Unpaid);
        }
        if read == 0 {
            return Ok(plain);
        }
    }
}

/// How much is decompressed between two payments.
const STEP: u64 = 256 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn compressed(coding: Coding, text: &[u8]) -> Vec<u8> {
        match coding {
            Coding::Identity | Coding::Unknown => text.to_vec(),
            Coding::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
                encoder.write_all(text).unwrap();
                encoder.finish().unwrap()
            }
            Coding::Deflate => {
                let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
                encoder.write_all(text).unwrap();
                encoder.finish().unwrap()
            }
            Coding::Brotli => {
                let mut out = Vec::new();
                brotli::CompressorWriter::new(&mut out, 4096, 5, 20).write_all(text).unwrap();
                out
            }
            Coding::Zstd => zstd::encode_all(text, 3).unwrap(),
        }
    }

    #[test]
    fn every_coding_is_decompressed_up_to_the_limit() {
        let text = vec![b'a'; 100_000];
        for coding in [Coding::Gzip, Coding::Deflate, Coding::Brotli, Coding::Zstd] {
            let small = compressed(coding, &text);
            assert!(small.len() < 1000);
            assert_eq!(decode(coding, &small, 100_000), Ok(text.clone()), "{coding:?}");
            assert_eq!(decode(coding, &small, 99_999), Err(DecodeError::TooLarge), "{coding:?}");
            assert_eq!(decode(coding, b"\x00garbage\xff", 1000), Err(DecodeError::Corrupt), "{coding:?}");
            assert_eq!(
                decode(coding, &small[..small.len() - 5], 100_000),
                Err(DecodeError::Corrupt),
                "{coding:?}"
            );
        }
    }

    #[test]
    fn more_than_one_coding_is_unknown() {
        let mut headers = HeaderMap::new();
        assert_eq!(coding(&headers), Coding::Identity);
        headers.append(CONTENT_ENCODING, "GZIP".parse().unwrap());
        assert_eq!(coding(&headers), Coding::Gzip);
        headers.append(CONTENT_ENCODING, "br".parse().unwrap());
        assert_eq!(coding(&headers), Coding::Unknown);
        let mut headers = HeaderMap::new();
        headers.append(CONTENT_ENCODING, "gzip, br".parse().unwrap());
        assert_eq!(coding(&headers), Coding::Unknown);
    }
}
