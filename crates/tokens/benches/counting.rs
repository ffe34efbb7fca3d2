//! Counting speed in bytes per second, compared with the reference tokenizer.
//!
//! Run with `cargo bench -p tidegate-tokens`. The texts consist of random words, so that caches do not help, and the vocabulary is
//! loaded before the measurement.

use divan::{Bencher, counter::BytesCount};
use tidegate_tokens::{Encoding, count};

fn main() {
    divan::main();
}

const TEXTS: [&str; 6] = ["prose", "code", "json", "cjk", "letter", "spaces"];
const BYTES: usize = 1 << 20;

#[divan::bench(args = TEXTS, sample_count = 10)]
fn tidegate(bencher: Bencher<'_, '_>, kind: &str) {
    let text = text(kind);
    let _warm = count(Encoding::O200k, "warm");
    bencher.counter(BytesCount::of_str(&text)).bench_local(|| count(Encoding::O200k, &text));
}

/// Without the text of spaces, on which the reference panics.
#[divan::bench(args = &TEXTS[..5], sample_count = 3)]
fn tiktoken_rs(bencher: Bencher<'_, '_>, kind: &str) {
    let text = text(kind);
    let reference = tiktoken_rs::o200k_base_singleton();
    let _warm = reference.encode_ordinary("warm");
    bencher.counter(BytesCount::of_str(&text)).bench_local(|| reference.encode_ordinary(&text).len());
}

fn text(kind: &str) -> String {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = |choices: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % choices as u64) as usize
    };
    let mut text = String::with_capacity(BYTES + 100);
    while text.len() < BYTES {
        let (first, second) = (WORDS[draw(WORDS.len())], WORDS[draw(WORDS.len())]);
        match kind {
            "prose" if draw(9) == 0 => text.extend([first, ", ", second, ". The "]),
            "prose" => text.extend([first, second, " "]),
            "code" => text.extend(["    let ", first, "_", second, " = self.", second, "(&", first, ")?;\n"]),
            "json" => text.extend([
                "{\"",
                first,
                "\": ",
                &draw(100_000).to_string(),
                ", \"",
                second,
                "\": true},\n",
            ]),
            "cjk" => text.extend((0..8).filter_map(|_| char::from_u32(0x4e00 + draw(5_000) as u32))),
            "letter" => text.push('a'),
            _ => text.push(' '),
        }
    }
    text
}

const WORDS: [&str; 40] = [
    "request",
    "window",
    "of",
    "the",
    "budget",
    "mask",
    "observation",
    "tide",
    "gate",
    "stream",
    "token",
    "count",
    "frontier",
    "in",
    "to",
    "upstream",
    "prefix",
    "answer",
    "summary",
    "fold",
    "conversation",
    "by",
    "model",
    "price",
    "cache",
    "header",
    "not",
    "is",
    "reader",
    "digest",
    "turn",
    "tool",
    "call",
    "result",
    "pinned",
    "journal",
    "archive",
    "route",
    "what",
    "because",
];
