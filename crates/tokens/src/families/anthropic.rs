use super::Family;
use crate::{Caching, ImageRule};

/// Only what stands before a `cache_control` is cached. Writing to the prompt cache costs 1.25 times the input price (for five minutes), and reading about a tenth of it.
#[rustfmt::skip]
pub(super) const FAMILIES: &[Family] = &[
    claude("claude-3-opus",     200_000,   4_096).usd(15.0, 75.0).cached(1.5).written(18.75),
    claude("claude-3-haiku",    200_000,   4_096).usd(0.25, 1.25).cached(0.03).written(0.3).caching(HAIKU),
    claude("claude-3-5-sonnet", 200_000,   8_192).usd(3.0, 15.0).cached(0.3).written(3.75),
    claude("claude-3-5-haiku",  200_000,   8_192).usd(0.8, 4.0).cached(0.08).written(1.0).caching(HAIKU),
    claude("claude-3-7-sonnet", 200_000,  64_000).usd(3.0, 15.0).cached(0.3).written(3.75),
    claude("claude-4-opus",     200_000,  32_000).usd(15.0, 75.0).cached(1.5).written(18.75),
    claude("claude-4-sonnet", 1_000_000,  64_000).usd(3.0, 15.0).cached(0.3).written(3.75).long(1_000_000),
    claude("claude-opus-4",     200_000,  32_000).usd(15.0, 75.0).cached(1.5).written(18.75),
    claude("claude-opus-4-0",   200_000,  32_000).usd(15.0, 75.0).cached(1.5).written(18.75),
    claude("claude-opus-4-1",   200_000,  32_000).usd(15.0, 75.0).cached(1.5).written(18.75),
    claude("claude-opus-4-5",   200_000,  64_000).usd(5.0, 25.0).cached(0.5).written(6.25).caching(LARGE),
    claude("claude-opus-4-6", 1_000_000, 128_000).usd(5.0, 25.0).cached(0.5).written(6.25).caching(LARGE),
    claude("claude-opus-4-7", 1_000_000, 128_000).usd(5.0, 25.0).cached(0.5).written(6.25).caching(LARGE).newer(),
    claude("claude-opus-4-8", 1_000_000, 128_000).usd(5.0, 25.0).cached(0.5).written(6.25).caching(LARGE).newer(),
    claude("claude-opus-5",   1_000_000, 128_000).usd(5.0, 25.0).cached(0.5).written(6.25).caching(LARGE).newer(),
    claude("claude-sonnet-4",   1_000_000,  64_000).usd(3.0, 15.0).cached(0.3).written(3.75).long(1_000_000),
    claude("claude-sonnet-4-0", 1_000_000,  64_000).usd(3.0, 15.0).cached(0.3).written(3.75).long(1_000_000),
    claude("claude-sonnet-4-5",   200_000,  64_000).usd(3.0, 15.0).cached(0.3).written(3.75).long(1_000_000),
    claude("claude-sonnet-4-6", 1_000_000,  64_000).usd(3.0, 15.0).cached(0.3).written(3.75),
    claude("claude-sonnet-5",   1_000_000, 128_000).usd(2.0, 10.0).cached(0.2).written(2.5).newer(),
    claude("claude-haiku-4-5",    200_000,  64_000).usd(1.0, 5.0).cached(0.1).written(1.25).caching(LARGE),
    claude("claude-fable-5",    1_000_000, 128_000).usd(10.0, 50.0).cached(1.0).written(12.5).newer(),
    claude("claude-*",            200_000,   4_096).newer(),
];

const fn claude(pattern: &'static str, window: u64, max_output: u64) -> Family {
    // A beta header gives some of them a larger window (`long`).
    super::family(pattern, window, max_output)
        .typical()
        .factor(1.12)
        .caching(Caching::of(300, 1_024, 1).explicit())
        .images(ImageRule::Patches { edge: 28, limit: 1_568, percent: 100 })
}

/// The minimum length of a cached prompt differs between models.
const HAIKU: Caching = Caching::of(300, 2_048, 1).explicit();
const LARGE: Caching = Caching::of(300, 4_096, 1).explicit();

/// Newer models have another tokenizer, and see images at a higher resolution.
impl Family {
    const fn newer(self) -> Family {
        self.factor(1.47).images(FINE)
    }
}

const FINE: ImageRule = ImageRule::Patches { edge: 28, limit: 4_784, percent: 100 };
