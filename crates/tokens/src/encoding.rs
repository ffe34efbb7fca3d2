use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::str::FromStr;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

use bpe_openai::Tokenizer;
use tidegate_engine::Tokens;
use tiktoken_rs::CoreBPE;

use crate::Error;
use crate::vocabulary::{CL100K, O200K};

/// A tokenizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// `o200k_base`: OpenAI's models since gpt-4o. Also the approximation for models whose tokenizer we do not have; the
    /// calibration corrects the difference.
    O200k,
    /// `o200k_harmony`: gpt-oss. Its ordinary tokens are those of `o200k_base`.
    O200kHarmony,
    /// `cl100k_base`: gpt-4 and gpt-3.5.
    Cl100k,
    /// `p50k_base`: text-davinci and the first code models.
    P50k,
    /// `r50k_base`: GPT-3.
    R50k,
    /// No tokenizer: the rule of [`estimate`].
    Estimate,
}

impl Encoding {
    const ALL: [Encoding; 6] = [
        Encoding::O200k,
        Encoding::O200kHarmony,
        Encoding::Cl100k,
        Encoding::P50k,
        Encoding::R50k,
        Encoding::Estimate,
    ];

    /// The name in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Encoding::O200k => "o200k_base",
            Encoding::O200kHarmony => "o200k_harmony",
            Encoding::Cl100k => "cl100k_base",
            Encoding::P50k => "p50k_base",
            Encoding::R50k => "r50k_base",
            Encoding::Estimate => "estimate",
        }
    }
}

impl FromStr for Encoding {
    type Err = Error;

    fn from_str(name: &str) -> Result<Encoding, Error> {
        Encoding::ALL
            .into_iter()
            .find(|encoding| encoding.name() == name)
            .ok_or_else(|| Error::UnknownEncoding(name.to_owned()))
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Counts the tokens of a text. A special token such as `<|endoftext|>` counts as ordinary text, because providers treat it so
/// inside a message.
///
/// Takes linear time for any text and never panics: if the tokenizer does, the text is counted with [`estimate`], with one warning
/// per process and encoding. The first count in an encoding loads its vocabulary.
#[must_use]
pub fn count(encoding: Encoding, text: &str) -> Tokens {
    match encoding {
        Encoding::O200k | Encoding::O200kHarmony => guarded(&O200K_WARNED, encoding, text, |text| {
            let tokenizer = LazyLock::force(&O200K);
            O200K_LOADED.store(true, Ordering::Relaxed);
            tokens_of(tokenizer, text)
        }),
        Encoding::Cl100k => guarded(&CL100K_WARNED, encoding, text, |text| {
            let tokenizer = LazyLock::force(&CL100K);
            CL100K_LOADED.store(true, Ordering::Relaxed);
            tokens_of(tokenizer, text)
        }),
        Encoding::P50k => legacy(&P50K_WARNED, encoding, text, tiktoken_rs::p50k_base_singleton),
        Encoding::R50k => legacy(&R50K_WARNED, encoding, text, tiktoken_rs::r50k_base_singleton),
        Encoding::Estimate => estimate(text),
    }
}

/// Counts with tiktoken-rs, which has the encodings that the fast tokenizer lacks. It takes quadratic time for a long run without
/// white space, so such a text is estimated.
fn legacy(
    warned: &AtomicBool,
    encoding: Encoding,
    text: &str,
    tokenizer: fn() -> &'static CoreBPE,
) -> Tokens {
    if is_estimated(encoding, text) {
        return estimate(text);
    }
    guarded(warned, encoding, text, |text| tokenizer().count_ordinary(text))
}

/// Whether [`count`] estimates this text, although it has a tokenizer for the encoding.
#[must_use]
pub fn is_estimated(encoding: Encoding, text: &str) -> bool {
    matches!(encoding, Encoding::P50k | Encoding::R50k)
        && text.split_ascii_whitespace().any(|run| run.len() > LONGEST_RUN)
}

const LONGEST_RUN: usize = 4096;

/// Loads the vocabulary of an encoding, which takes a tenth of a second, before the first request needs it. Does nothing for
/// encodings of tiktoken-rs, which few requests use and which would take memory for nothing.
pub fn load(encoding: Encoding) {
    if !matches!(encoding, Encoding::P50k | Encoding::R50k) {
        let _ = count(encoding, "");
    }
}

/// Whether texts can be counted at once: the first count loads the vocabulary, which takes a tenth of a second and is too long for
/// a thread that serves requests. The encodings of tiktoken-rs are always too slow for one.
#[must_use]
pub fn is_loaded(encoding: Encoding) -> bool {
    match encoding {
        Encoding::O200k | Encoding::O200kHarmony => O200K_LOADED.load(Ordering::Relaxed),
        Encoding::P50k | Encoding::R50k => false,
        Encoding::Cl100k => CL100K_LOADED.load(Ordering::Relaxed),
        Encoding::Estimate => true,
    }
}

/// Estimates the tokens of a text without a tokenizer: `ceil(characters / 4 × 1.25)`.
#[must_use]
pub fn estimate(text: &str) -> Tokens {
    let characters = text.chars().count() as u64;
    // 1.25 / 4 is 5 / 16, which keeps the arithmetic exact.
    Tokens(characters.saturating_mul(5).div_ceil(16))
}

static O200K_LOADED: AtomicBool = AtomicBool::new(false);
static CL100K_LOADED: AtomicBool = AtomicBool::new(false);
static O200K_WARNED: AtomicBool = AtomicBool::new(false);
static CL100K_WARNED: AtomicBool = AtomicBool::new(false);
static P50K_WARNED: AtomicBool = AtomicBool::new(false);
static R50K_WARNED: AtomicBool = AtomicBool::new(false);

fn tokens_of(tokenizer: &Tokenizer, text: &str) -> usize {
    tokenizer.count(text)
}

/// Runs a tokenizer, and falls back to [`estimate`] if it panics.
fn guarded(warned: &AtomicBool, encoding: Encoding, text: &str, tokenizer: impl Fn(&str) -> usize) -> Tokens {
    // Unwind safety: a loaded tokenizer is read-only, and a load that panicked poisons its lazy cell. So nobody can observe a
    // half-changed state.
    match catch_unwind(AssertUnwindSafe(|| tokenizer(text))) {
        Ok(tokens) => Tokens(tokens as u64),
        Err(_) => {
            if !warned.swap(true, Ordering::Relaxed) {
                tracing::warn!(
                    encoding = encoding.name(),
                    bytes = text.len(),
                    "tokenizer failed; estimating tokens from the length of the text"
                );
            }
            estimate(text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_and_display() {
        for name in ["o200k_base", "o200k_harmony", "cl100k_base", "p50k_base", "r50k_base", "estimate"] {
            assert_eq!(name.parse::<Encoding>().unwrap().to_string(), name);
        }
        let error = "o200k".parse::<Encoding>().unwrap_err().to_string();
        assert!(error.contains("`o200k`") && error.contains("`o200k_base`"), "{error}");
    }

    #[test]
    fn estimate_counts_characters_and_rounds_up() {
        for (text, tokens) in
            [("", 0), ("a", 1), ("abc", 1), ("abcd", 2), ("sixteen letters.", 5), ("日本語日", 2)]
        {
            assert_eq!(estimate(text), Tokens(tokens), "{text:?}");
        }
    }

    #[test]
    fn a_panicking_tokenizer_is_replaced_by_the_estimate() {
        let warned = AtomicBool::new(false);
        let tokens =
            guarded(&warned, Encoding::O200k, "sixteen letters.", |_| panic!("a bug in a tokenizer"));
        assert_eq!(tokens, Tokens(5));
        assert!(warned.load(Ordering::Relaxed));
    }

    #[test]
    fn a_long_run_is_estimated_by_the_slow_tokenizers() {
        let run = "x".repeat(1 << 20);
        assert_eq!(count(Encoding::P50k, &run), estimate(&run));
        assert_ne!(count(Encoding::P50k, "tide after tide"), estimate("tide after tide"));
        assert!(!is_loaded(Encoding::R50k));
    }

    #[test]
    fn special_tokens_count_as_ordinary_text() {
        assert!(count(Encoding::O200k, "<|endoftext|>") > Tokens(1));
        assert!(count(Encoding::Cl100k, "<|im_start|>") > Tokens(1));
    }
}
