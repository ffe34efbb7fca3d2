use super::Family;
use crate::{Encoding, ImageRule};

/// Fine-tuned models (`ft:…`) have rows of their own, because they cost more than their base models.
#[rustfmt::skip]
pub(super) const FAMILIES: &[Family] = &[
    legacy("gpt-3.5-turbo",        16_385, 4_096).usd(0.5, 1.5),
    legacy("gpt-3.5-turbo-1106",   16_385, 4_096).usd(1.0, 2.0),
    legacy("gpt-3.5-turbo-16k",    16_385, 4_096).usd(3.0, 4.0),
    legacy("ft:gpt-3.5-turbo",     16_385, 4_096).usd(3.0, 6.0),
    legacy("gpt-35-turbo",         16_385, 4_096).usd(0.5, 1.5),
    legacy("gpt-4",                 8_192, 4_096).usd(30.0, 60.0),
    legacy("gpt-4-32k",            32_768, 4_096).usd(60.0, 120.0),
    legacy("gpt-4-0125",          128_000, 4_096).usd(10.0, 30.0),
    legacy("gpt-4-1106",          128_000, 4_096).usd(10.0, 30.0),
    legacy("gpt-4-1106-vision",   128_000, 4_096).usd(10.0, 30.0),
    legacy("gpt-4-vision",        128_000, 4_096).usd(10.0, 30.0),
    legacy("gpt-4-turbo",         128_000, 4_096).usd(10.0, 30.0),
    legacy("gpt-4-*",               8_192, 4_096),

    family("gpt-4o",              128_000, 16_384).usd(2.5, 10.0).cached(1.25),
    family("gpt-4o-2024-05-13",   128_000,  4_096).usd(5.0, 15.0),
    family("gpt-4o-*",            128_000,  4_096),
    family("gpt-4o-mini",         128_000, 16_384).usd(0.15, 0.6).cached(0.075).images(MINI_TILES),
    family("gpt-4o-mini-*",       128_000, 16_384).images(MINI_TILES),
    family("ft:gpt-4o",           128_000, 16_384).usd(3.75, 15.0).cached(1.875),
    family("ft:gpt-4o-mini",      128_000, 16_384).usd(0.3, 1.2).cached(0.15).images(MINI_TILES),
    family("chatgpt-4o",          128_000,  4_096).usd(5.0, 15.0),

    family("gpt-4.1",           1_047_576, 32_768).usd(2.0, 8.0).cached(0.5),
    family("gpt-4.1-mini",      1_047_576, 32_768).usd(0.4, 1.6).cached(0.1).images(patches(1_536, 162)),
    family("gpt-4.1-nano",      1_047_576, 32_768).usd(0.1, 0.4).cached(0.025).images(patches(1_536, 246)),
    family("ft:gpt-4.1",        1_047_576, 32_768).usd(3.0, 12.0).cached(0.75),
    family("ft:gpt-4.1-mini",   1_047_576, 32_768).usd(0.8, 3.2).cached(0.2).images(patches(1_536, 162)),
    family("ft:gpt-4.1-nano",   1_047_576, 32_768).usd(0.2, 0.8).cached(0.05).images(patches(1_536, 246)),

    family("gpt-5",               272_000, 128_000).input_only().usd(1.25, 10.0).cached(0.125).images(GPT_5_TILES),
    family("gpt-5-chat",          128_000,  16_384).usd(1.25, 10.0).cached(0.125).images(GPT_5_TILES),
    // The guide says 1.62 and 2.46 for these two, but the price calculator and the billed usage say 1.2 and 1.5.
    family("gpt-5-mini",          272_000, 128_000).input_only().usd(0.25, 2.0).cached(0.025).images(patches(1_536, 120)),
    family("gpt-5-nano",          272_000, 128_000).input_only().usd(0.05, 0.4).cached(0.005).images(patches(1_536, 150)),
    family("gpt-5-*",             128_000,  16_384).images(GPT_5_TILES),
    family("gpt-5.1",             272_000, 128_000).input_only().usd(1.25, 10.0).cached(0.125).images(GPT_5_TILES),
    family("gpt-5.1-chat",        128_000,  16_384).usd(1.25, 10.0).cached(0.125).images(GPT_5_TILES),
    family("gpt-5.2",             272_000, 128_000).input_only().usd(1.75, 14.0).cached(0.175).images(GPT_5_TILES),
    family("gpt-5.2-chat",        128_000,  16_384).usd(1.75, 14.0).cached(0.175).images(GPT_5_TILES),
    family("gpt-5.3-chat",        128_000,  16_384).usd(1.75, 14.0).cached(0.175).images(GPT_5_TILES),
    family("gpt-5.4",           1_050_000, 128_000).usd(2.5, 15.0).cached(0.25).images(patches(2_500, 100)),
    family("gpt-5.4-mini",        272_000, 128_000).input_only().usd(0.75, 4.5).cached(0.075).images(patches(1_536, 162)),
    family("gpt-5.4-nano",        272_000, 128_000).input_only().usd(0.2, 1.25).cached(0.02).images(patches(1_536, 246)),
    family("gpt-5.5",           1_050_000, 128_000).usd(5.0, 30.0).cached(0.5).images(patches(2_500, 100)),
    family("gpt-5.6",           1_050_000, 128_000).usd(5.0, 30.0).cached(0.5).written(6.25).images(patches(2_500, 120)),
    family("gpt-5.6-luna",      1_050_000, 128_000).usd(0.2, 1.2).cached(0.02).written(0.25).images(patches(2_500, 120)),
    family("gpt-5.6-sol",       1_050_000, 128_000).usd(5.0, 30.0).cached(0.5).written(6.25).images(patches(2_500, 120)),
    family("gpt-5.6-terra",     1_050_000, 128_000).usd(2.0, 12.0).cached(0.2).written(2.5).images(patches(2_500, 120)),
    family("gpt-5.*",             128_000,  16_384).images(patches(2_500, 120)),

    family("o1",                  200_000, 100_000).usd(15.0, 60.0).cached(7.5).images(O_TILES),
    family("o1-preview",          128_000,  32_768).usd(15.0, 60.0).cached(7.5).images(O_TILES),
    family("o1-mini",             128_000,  65_536).usd(1.1, 4.4).cached(0.55).images(O_TILES),
    family("o1-*",                128_000,  32_768).images(O_TILES),
    family("o3",                  200_000, 100_000).usd(2.0, 8.0).cached(0.5).images(O_TILES),
    family("o3-mini",             200_000, 100_000).usd(1.1, 4.4).cached(0.55).images(O_TILES),
    family("o3-*",                200_000, 100_000).images(O_TILES),
    family("o4-mini",             200_000, 100_000).usd(1.1, 4.4).cached(0.275).images(patches(1_536, 172)),
    family("o4-*",                200_000, 100_000).images(patches(1_536, 172)),

    // Cerebras uses the bare name, Groq the prefixed one.
    family("gpt-oss-120b",        131_072, 32_768).typical().usd(0.35, 0.75),
    family("openai/gpt-oss-120b", 131_072, 32_766).typical().usd(0.15, 0.6).cached(0.075),
    family("gpt-oss-20b",         131_072, 32_768).typical().usd(0.075, 0.3).cached(0.0375),
    family("gpt-oss-safeguard-20b", 131_072, 65_536).typical().usd(0.075, 0.3).cached(0.037),
    family("gpt-oss-*",           131_072, 32_766).typical(),
];

/// OpenAI publishes its vocabularies, so these counts are exact.
const fn family(pattern: &'static str, window: u64, max_output: u64) -> Family {
    super::family(pattern, window, max_output).exact().at(&["api.openai.com"])
}

/// A model before gpt-4o, with the older encoding.
const fn legacy(pattern: &'static str, window: u64, max_output: u64) -> Family {
    family(pattern, window, max_output).encoding(Encoding::Cl100k)
}

const MINI_TILES: ImageRule = ImageRule::Tiles { base: 2_833, tile: 5_667 };
const GPT_5_TILES: ImageRule = ImageRule::Tiles { base: 70, tile: 140 };
const O_TILES: ImageRule = ImageRule::Tiles { base: 75, tile: 150 };

const fn patches(limit: u32, percent: u32) -> ImageRule {
    ImageRule::Patches { edge: 32, limit, percent }
}
