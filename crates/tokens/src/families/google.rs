use super::{Family, family};
use crate::{Caching, ImageRule};

#[rustfmt::skip]
pub(super) const FAMILIES: &[Family] = &[
    gemini("gemini-2.0-flash",       1_000_000,  8_192).usd(0.1, 0.4).cached(0.025),
    gemini("gemini-2.0-flash-lite",  1_048_576,  8_192).usd(0.075, 0.3).cached(0.01875),
    gemini("gemini-2.5-computer-use",  128_000, 64_000).usd(1.25, 10.0),
    gemini("gemini-2.5-flash",       1_048_576, 65_535).usd(0.3, 2.5).cached(0.03),
    gemini("gemini-2.5-flash-lite",  1_048_576, 65_535).usd(0.1, 0.4).cached(0.01),
    gemini("gemini-2.5-flash-lite-preview-06-17", 1_048_576, 65_535).usd(0.1, 0.4).cached(0.025),
    gemini("gemini-2.5-flash-preview-09-2025",    1_048_576, 65_535).usd(0.3, 2.5).cached(0.075),
    gemini("gemini-2.5-pro",         1_048_576, 65_535).usd(1.25, 10.0).cached(0.125).caching(PRO),
    gemini("gemini-3-flash",         1_048_576, 65_535).usd(0.5, 3.0).cached(0.05),
    gemini("gemini-3-pro",           1_048_576, 65_535).usd(2.0, 12.0).cached(0.2).caching(PRO),
    gemini("gemini-3.1-flash-lite",  1_048_576, 65_536).usd(0.25, 1.5).cached(0.025),
    gemini("gemini-3.1-pro*",        1_048_576, 65_536).usd(2.0, 12.0).cached(0.2).caching(PRO),
    gemini("gemini-3.5-flash",       1_048_576, 65_535).usd(1.5, 9.0).cached(0.15),
    gemini("gemini-3.5-flash-lite",  1_048_576, 65_536).usd(0.3, 2.5).cached(0.03),
    gemini("gemini-3.6-flash",       1_048_576, 65_536).usd(1.5, 7.5).cached(0.15),
    gemini("gemini-exp-1114",        1_048_576,  8_192).usd(0.0, 0.0),
    gemini("gemini-exp-1206",        1_048_576, 65_535).usd(0.3, 2.5).cached(0.03),
    gemini("gemini-flash",           1_048_576, 65_535).usd(0.3, 2.5).cached(0.03),
    gemini("gemini-flash-lite",      1_048_576, 65_535).usd(0.1, 0.4).cached(0.01),
    gemini("gemini-omni-flash",      1_048_576, 65_535).usd(1.5, 9.0),
    gemini("gemini-pro",             1_048_576, 65_535).usd(1.25, 10.0).cached(0.125).caching(PRO),
    gemini("gemini-robotics-er-1.5", 1_048_576, 65_535).usd(0.3, 2.5),
    gemini("gemini-robotics-er-1.6",   131_072, 65_536).usd(1.0, 5.0),
    gemini("gemini-robotics-er-2",     131_072, 65_536).usd(2.0, 10.0).cached(0.2),
    gemini("gemini-*",                 128_000,  8_192),
    gemini("gemma-3-27b-it",           131_072,  8_192).usd(0.0, 0.0),
    gemini("learnlm-1.5-pro",           32_767,  8_192).usd(0.0, 0.0),
    gemini("lyria-3-clip",             131_072,  8_192).usd(0.0, 0.0),
    gemini("lyria-3-pro",              131_072,  8_192).usd(0.0, 0.0),
    family("gemma-7b-it",                8_192,  8_192).usd(0.05, 0.08),
];

const fn gemini(pattern: &'static str, window: u64, max_output: u64) -> Family {
    family(pattern, window, max_output)
        .factor(1.15)
        .at(&["generativelanguage.googleapis.com", "aiplatform.googleapis.com"])
        .caching(Caching::of(300, 1_024, 1))
        .images(ImageRule::Grid { edge: 768, cell: 258 })
}

/// Pro models cache only longer prompts.
const PRO: Caching = Caching::of(300, 4_096, 1);
