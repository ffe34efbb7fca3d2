//! Compressed answers, as providers send them to SDKs that accept them.

use std::io::Write;
use std::str::FromStr;

use bytes::Bytes;

use crate::answer::Answer;
use crate::recorded::Recorded;
use crate::step::Step;

/// A content coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

impl Coding {
    pub const ALL: [Coding; 4] = [Coding::Gzip, Coding::Deflate, Coding::Brotli, Coding::Zstd];

    pub fn name(self) -> &'static str {
        match self {
            Coding::Gzip => "gzip",
            Coding::Deflate => "deflate",
            Coding::Brotli => "br",
            Coding::Zstd => "zstd",
        }
    }

    /// Compresses a whole body.
    pub fn compress(self, body: &[u8]) -> Vec<u8> {
        let mut encoder = Encoder::new(self);
        let mut compressed = encoder.chunk(body);
        compressed.extend(encoder.end());
        compressed
    }

    fn is_accepted(self, request: &Recorded) -> bool {
        let accepted = request.header("accept-encoding").unwrap_or_default();
        accepted.split(',').any(|coding| coding.split(';').next().unwrap_or_default().trim() == self.name())
    }
}

impl FromStr for Coding {
    type Err = ();

    fn from_str(name: &str) -> Result<Coding, ()> {
        Coding::ALL.into_iter().find(|coding| coding.name() == name).ok_or(())
    }
}

/// Compresses an answer if the client accepts that. Each chunk can be read when it arrives.
pub(crate) fn compressed(answer: Answer, coding: Coding, request: &Recorded) -> Answer {
    let is_encoded = answer.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-encoding"));
    let is_plain = |step: &Step| matches!(step, Step::Raw(_) | Step::Fill(_));
    if is_encoded || !coding.is_accepted(request) || answer.cut.is_some() || answer.steps.iter().any(is_plain)
    {
        return answer;
    }
    let mut encoder = Encoder::new(coding);
    let mut steps = Vec::new();
    let mut is_broken = false;
    for step in answer.steps.clone() {
        match step {
            Step::Chunk(bytes) => steps.push(Step::Chunk(encoder.chunk(&bytes).into())),
            Step::UsageChunk(bytes) if request.asked_for_usage() => {
                steps.push(Step::Chunk(encoder.chunk(&bytes).into()));
            }
            Step::UsageChunk(_) => {}
            other => {
                is_broken |= matches!(other, Step::Break(_));
                steps.push(other);
            }
        }
    }
    if !is_broken {
        steps.push(Step::Chunk(Bytes::from(encoder.end())));
    }
    Answer { steps, ..answer }.header("content-encoding", coding.name())
}

enum Encoder {
    Gzip(flate2::write::GzEncoder<Vec<u8>>),
    Deflate(flate2::write::ZlibEncoder<Vec<u8>>),
    Brotli(Box<brotli::CompressorWriter<Vec<u8>>>),
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
}

impl Encoder {
    fn new(coding: Coding) -> Encoder {
        let level = flate2::Compression::default();
        match coding {
            Coding::Gzip => Encoder::Gzip(flate2::write::GzEncoder::new(Vec::new(), level)),
            Coding::Deflate => Encoder::Deflate(flate2::write::ZlibEncoder::new(Vec::new(), level)),
            Coding::Brotli => {
                Encoder::Brotli(Box::new(brotli::CompressorWriter::new(Vec::new(), 4096, 5, 20)))
            }
            Coding::Zstd => {
                Encoder::Zstd(zstd::stream::write::Encoder::new(Vec::new(), 3).expect("a valid level"))
            }
        }
    }

    fn chunk(&mut self, bytes: &[u8]) -> Vec<u8> {
        fn flushed<W: Write>(encoder: &mut W, bytes: &[u8]) {
            encoder.write_all(bytes).expect("writing to memory");
            encoder.flush().expect("writing to memory");
        }
        match self {
            Encoder::Gzip(encoder) => {
                flushed(encoder, bytes);
                std::mem::take(encoder.get_mut())
            }
            Encoder::Deflate(encoder) => {
                flushed(encoder, bytes);
                std::mem::take(encoder.get_mut())
            }
            Encoder::Brotli(encoder) => {
                flushed(encoder, bytes);
                std::mem::take(encoder.get_mut())
            }
            Encoder::Zstd(encoder) => {
                flushed(encoder, bytes);
                std::mem::take(encoder.get_mut())
            }
        }
    }

    fn end(self) -> Vec<u8> {
        match self {
            Encoder::Gzip(encoder) => encoder.finish().expect("writing to memory"),
            Encoder::Deflate(encoder) => encoder.finish().expect("writing to memory"),
            Encoder::Brotli(encoder) => encoder.into_inner(),
            Encoder::Zstd(encoder) => encoder.finish().expect("writing to memory"),
        }
    }
}
