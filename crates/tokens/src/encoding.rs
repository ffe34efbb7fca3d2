use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};

use bpe_openai::Tokenizer;
use tidegate_engine::Tokens;

use crate::Error;

/// A tokenizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// `o200k_base`: OpenAI's models since gpt-4o. Also the approximation for models whose tokenizer we do not have; the
    /// calibration corrects the difference.
    O200k,
    /// `cl100k_base`: gpt-4 and gpt-3.5.
    Cl100k,
    /// No tokenizer: the rule of [`estimate`].
    Estimate,
}

impl Encoding {
    /// The name in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Encoding::O200k => "o200k_base",
            Encoding::Cl100k => "cl100k_base",
            Encoding::Estimate => "estimate",
        }
    }
}

impl FromStr for Encoding {
    type Err = Error;

    fn from_str(name: &str) -> Result<Encoding, Error> {
        [Encoding::O200k, Encoding::Cl100k, Encoding::Estimate]
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
        Encoding::O200k => guarded(&O200K_WARNED, encoding, text, |text| {
            let tokenizer = bpe_openai::o200k_base();
            O200K_LOADED.store(true, Ordering::Relaxed);
            tokens_of(tokenizer, text)
        }),
        Encoding::Cl100k => guarded(&CL100K_WARNED, encoding, text, |text| {
            let tokenizer = bpe_openai::cl100k_base();
            CL100K_LOADED.store(true, Ordering::Relaxed);
            tokens_of(tokenizer, text)
        }),
        Encoding::Estimate => estimate(text),
    }
}

/// Whether the vocabulary of an encoding is loaded. The first count loads it, which takes a tenth of a second: too long for a
/// thread that serves requests.
#[must_use]
pub fn is_loaded(encoding: Encoding) -> bool {
    match encoding {
        Encoding::O200k => O200K_LOADED.load(Ordering::Relaxed),
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
        for name in ["o200k_base", "cl100k_base", "estimate"] {
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
    fn special_tokens_count_as_ordinary_text() {
        assert!(count(Encoding::O200k, "<|endoftext|>") > Tokens(1));
        assert!(count(Encoding::Cl100k, "<|im_start|>") > Tokens(1));
    }
}
