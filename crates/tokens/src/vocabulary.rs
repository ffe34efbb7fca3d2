//! The vocabularies of the fast tokenizer, compressed in the binary and decompressed on first use.

use bpe_openai::{Tokenizer, byte_pair_encoding::BytePairEncoding};
use std::io::BufReader;
use std::sync::LazyLock;

pub(crate) static O200K: LazyLock<Tokenizer> =
    LazyLock::new(|| load(include_bytes!(concat!(env!("OUT_DIR"), "/o200k.zst")), &O200K_PIECES));

pub(crate) static CL100K: LazyLock<Tokenizer> =
    LazyLock::new(|| load(include_bytes!(concat!(env!("OUT_DIR"), "/cl100k.zst")), &CL100K_PIECES));

/// The pieces that `o200k_base` splits a text into before it looks for tokens: words in a spelling of their own with a contraction, up to
/// three digits, punctuation, line breaks, trailing white space.
const O200K_PIECES: [&str; 6] = [
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}",
    r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
    r"\s*[\r\n]+",
    r"\s+$",
];

/// Those of `cl100k_base`.
const CL100K_PIECES: [&str; 6] = [
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)",
    r"[^\r\n\p{L}\p{N}]?\p{L}+",
    r"\p{N}{1,3}",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*",
    r"\s*[\r\n]+",
    r"\s+$",
];

/// White space before a word leaves its last character to the word. Matched with that character, because the engine of the expressions
/// cannot look ahead.
const SPACE_BEFORE_SPACE: &str = r"\s+\s";
const SPACE: &str = r"\s+";

#[expect(clippy::expect_used, reason = "both inputs are constants that the tests of this crate load")]
fn load(compressed: &'static [u8], pieces: &[&str]) -> Tokenizer {
    const BUFFER: usize = 1 << 20;
    let tables = zstd::Decoder::with_buffer(compressed).expect("the build script has compressed them");
    // As a stream, so that the 32 MB are never in memory at once.
    let tables = BufReader::with_capacity(BUFFER, tables);
    let tables: BytePairEncoding =
        rmp_serde::from_read(tables).expect("the build script has serialized them");
    let pieces = pieces.join("|");
    let patterns = [(&*pieces, false), (SPACE_BEFORE_SPACE, true), (SPACE, false)];
    Tokenizer::new_lookahead(tables, &patterns, false).expect("the expressions are valid")
}
