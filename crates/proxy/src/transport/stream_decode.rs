//! Decompresses a response on the side, as it arrives.

use crate::transport::decode::{Coding, MAX_ZSTD_WINDOW_LOG, is_zlib};
use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use std::fmt;
use std::io::{self, Write};

/// A decoder that is fed with the chunks of a response.
pub(crate) struct StreamDecoder {
    decoder: Decoder,
    /// How much it may still produce.
    left: usize,
}

enum Decoder {
    Gzip(Box<MultiGzDecoder<Plain>>),
    /// The first byte decides whether there is a zlib header.
    Deflate,
    Zlib(Box<ZlibDecoder<Plain>>),
    Raw(Box<DeflateDecoder<Plain>>),
    Brotli(Box<brotli::DecompressorWriter<Plain>>),
    Zstd(Box<zstd::stream::write::Decoder<'static, Plain>>),
}

/// Where a decoder writes to. It fails if a chunk becomes too large.
#[derive(Debug, Default)]
struct Plain {
    bytes: Vec<u8>,
}

/// The response cannot be decoded, or becomes too large.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Undecodable;

/// How much is decompressed of one response: a few bytes can become gigabytes, and they are decompressed on the worker.
const MAX_PLAIN: usize = 64 * 1024 * 1024;
/// How much is decompressed at a time, so that memory stays bounded.
const STEP: usize = 4 * 1024;
const MAX_STEP: usize = 8 * 1024 * 1024;

impl StreamDecoder {
    /// Returns `None` if the response is not compressed, or in a way that we cannot read.
    pub(crate) fn new(coding: Coding) -> Option<StreamDecoder> {
        let decoder = match coding {
            Coding::Identity | Coding::Unknown => return None,
            Coding::Gzip => Decoder::Gzip(Box::new(MultiGzDecoder::new(Plain::default()))),
            Coding::Deflate => Decoder::Deflate,
            Coding::Brotli => {
                Decoder::Brotli(Box::new(brotli::DecompressorWriter::new(Plain::default(), STEP)))
            }
            Coding::Zstd => {
                let mut decoder = zstd::stream::write::Decoder::new(Plain::default()).ok()?;
                decoder.window_log_max(MAX_ZSTD_WINDOW_LOG).ok()?;
                Decoder::Zstd(Box::new(decoder))
            }
        };
        Some(StreamDecoder { decoder, left: MAX_PLAIN })
    }

    /// Decompresses the next bytes of the response and passes them on in pieces.
    pub(crate) fn feed(&mut self, chunk: &[u8], mut each: impl FnMut(&[u8])) -> Result<(), Undecodable> {
        for step in chunk.chunks(STEP) {
            let plain = self.decoder.step(step).map_err(|_| Undecodable)?;
            self.left = self.left.checked_sub(plain.bytes.len()).ok_or(Undecodable)?;
            each(&plain.bytes);
            plain.bytes.clear();
        }
        Ok(())
    }
}

impl Decoder {
    fn step(&mut self, bytes: &[u8]) -> io::Result<&mut Plain> {
        if let Decoder::Deflate = self {
            *self = if is_zlib(bytes.first()) {
                Decoder::Zlib(Box::new(ZlibDecoder::new(Plain::default())))
            } else {
                Decoder::Raw(Box::new(DeflateDecoder::new(Plain::default())))
            };
        }
        match self {
            Decoder::Gzip(decoder) => {
                write(decoder, bytes)?;
                Ok(decoder.get_mut())
            }
            Decoder::Deflate => Err(io::ErrorKind::InvalidData.into()),
            Decoder::Zlib(decoder) => {
                write(decoder, bytes)?;
                Ok(decoder.get_mut())
            }
            Decoder::Raw(decoder) => {
                write(decoder, bytes)?;
                Ok(decoder.get_mut())
            }
            Decoder::Brotli(decoder) => {
                write(decoder, bytes)?;
                Ok(decoder.get_mut())
            }
            Decoder::Zstd(decoder) => {
                write(decoder, bytes)?;
                Ok(decoder.get_mut())
            }
        }
    }
}

/// Everything that the bytes decompress to is written, so that an event is read when it arrives.
fn write(decoder: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    decoder.write_all(bytes)?;
    decoder.flush()
}

impl Write for Plain {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > MAX_STEP {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for StreamDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamDecoder").field("left", &self.left).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compresses texts so that each can be read when it has arrived.
    fn compressed(coding: Coding, texts: &[&str]) -> Vec<Vec<u8>> {
        fn flushed<W: Write>(mut encoder: W, texts: &[&str], sizes: impl Fn(&W) -> usize) -> Vec<usize> {
            texts
                .iter()
                .map(|text| {
                    encoder.write_all(text.as_bytes()).unwrap();
                    encoder.flush().unwrap();
                    sizes(&encoder)
                })
                .collect()
        }
        let level = flate2::Compression::default();
        let mut out = Vec::new();
        let ends = match coding {
            Coding::Identity | Coding::Unknown => unreachable!(),
            Coding::Gzip => {
                let encoder = flate2::write::GzEncoder::new(&mut out, level);
                flushed(encoder, texts, |encoder| encoder.get_ref().len())
            }
            Coding::Deflate => {
                let encoder = flate2::write::ZlibEncoder::new(&mut out, level);
                flushed(encoder, texts, |encoder| encoder.get_ref().len())
            }
            Coding::Brotli => {
                let encoder = brotli::CompressorWriter::new(&mut out, 4096, 5, 20);
                flushed(encoder, texts, |encoder| encoder.get_ref().len())
            }
            Coding::Zstd => {
                let encoder = zstd::stream::write::Encoder::new(&mut out, 3).unwrap();
                flushed(encoder, texts, |encoder| encoder.get_ref().len())
            }
        };
        let starts = [0].into_iter().chain(ends.iter().copied());
        starts.zip(&ends).map(|(start, end)| out[start..*end].to_vec()).collect()
    }

    #[test]
    fn each_event_is_decoded_when_it_arrives() {
        let texts = ["data: one\n\n", "data: two\n\n", "data: [DONE]\n\n"];
        for coding in [Coding::Gzip, Coding::Deflate, Coding::Brotli, Coding::Zstd] {
            let mut decoder = StreamDecoder::new(coding).unwrap();
            for (chunk, text) in compressed(coding, &texts).iter().zip(texts) {
                let mut plain = Vec::new();
                // However it is cut.
                for byte in chunk {
                    decoder.feed(&[*byte], |bytes| plain.extend_from_slice(bytes)).unwrap();
                }
                assert_eq!(String::from_utf8(plain).unwrap(), text, "{coding:?}");
            }
        }
    }

    #[test]
    fn deflate_without_a_header_is_decoded() {
        let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(b"plain").unwrap();
        let mut plain = Vec::new();
        let mut decoder = StreamDecoder::new(Coding::Deflate).unwrap();
        decoder.feed(&encoder.finish().unwrap(), |bytes| plain.extend_from_slice(bytes)).unwrap();
        assert_eq!(plain, b"plain");
    }

    #[test]
    fn a_bomb_is_given_up() {
        let zeros = vec![0; 1 << 20];
        for coding in [Coding::Gzip, Coding::Deflate, Coding::Brotli, Coding::Zstd] {
            let text = String::from_utf8(zeros.clone()).unwrap();
            let bomb = compressed(coding, &[text.as_str(); 100]).concat();
            let (mut decoder, mut largest) = (StreamDecoder::new(coding).unwrap(), 0);
            let fed = decoder.feed(&bomb, |bytes| largest = largest.max(bytes.len()));
            assert_eq!(fed, Err(Undecodable), "{coding:?}");
            assert!(largest <= MAX_STEP, "{coding:?}: {largest}");
        }
    }

    #[test]
    fn garbage_is_an_error() {
        for coding in [Coding::Gzip, Coding::Brotli, Coding::Zstd] {
            let mut decoder = StreamDecoder::new(coding).unwrap();
            assert_eq!(decoder.feed(b"\x00garbage\xff\xff\xff", |_| {}), Err(Undecodable), "{coding:?}");
        }
    }
}
