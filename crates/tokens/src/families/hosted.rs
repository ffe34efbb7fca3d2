use super::Family;
use crate::Caching;

/// DeepSeek, Moonshot, xAI, Z.ai, Qwen, and open models hosted by Cerebras and Groq.
#[rustfmt::skip]
pub(super) const FAMILIES: &[Family] = &[
    deepseek("deepseek-chat",       131_072,   8_192).usd(0.28, 0.42).cached(0.028),
    deepseek("deepseek-coder",      128_000,   4_096).usd(0.14, 0.28),
    deepseek("deepseek-r1",          65_536,   8_192).usd(0.55, 2.19),
    deepseek("deepseek-reasoner",   131_072,  65_536).usd(0.28, 0.42).cached(0.028),
    deepseek("deepseek-v3",          65_536,   8_192).usd(0.27, 1.1).cached(0.07),
    deepseek("deepseek-v3.2",       163_840, 163_840).usd(0.28, 0.4),
    deepseek("deepseek-v4-flash", 1_000_000,   8_192).usd(0.14, 0.28).cached(0.0028),
    deepseek("deepseek-v4-pro",   1_000_000,   8_192).usd(0.435, 0.87).cached(0.003625),

    family("kimi-k2-0711",           131_072, 131_072).usd(0.6, 2.5).cached(0.15),
    family("kimi-k2-0905",           262_144, 262_144).usd(0.6, 2.5).cached(0.15),
    family("kimi-k2-instruct-0905",  262_144,  16_384).usd(1.0, 3.0).cached(0.5),
    family("kimi-k2-thinking",       262_144, 262_144).usd(0.6, 2.5).cached(0.15),
    family("kimi-k2-thinking-turbo", 262_144, 262_144).usd(1.15, 8.0).cached(0.15),
    family("kimi-k2-turbo",          262_144, 262_144).usd(1.15, 8.0).cached(0.15),
    family("kimi-k2.5",              262_144, 262_144).usd(0.6, 3.0).cached(0.1),
    family("kimi-k2.6",              262_144, 262_144).usd(0.95, 4.0).cached(0.16),
    family("kimi-k2*",               131_072,  16_384),
    family("kimi-latest",            131_072, 131_072).usd(2.0, 5.0).cached(0.15),
    family("kimi-latest-128k",       131_072, 131_072).usd(2.0, 5.0).cached(0.15),
    family("kimi-latest-32k",         32_768,  32_768).usd(1.0, 3.0).cached(0.15),
    family("kimi-latest-8k",           8_192,   8_192).usd(0.2, 2.0).cached(0.15),
    family("kimi-thinking",          131_072, 131_072).usd(0.6, 2.5).cached(0.15),
    family("moonshot-v1-auto",       131_072, 131_072).usd(2.0, 5.0),
    family("moonshot-v1-128k*",      131_072, 131_072).usd(2.0, 5.0),
    family("moonshot-v1-32k*",        32_768,  32_768).usd(1.0, 3.0),
    family("moonshot-v1-8k*",          8_192,   8_192).usd(0.2, 2.0),

    family("grok-2",             131_072,   131_072).usd(2.0, 10.0),
    family("grok-2-vision",       32_768,    32_768).usd(2.0, 10.0),
    family("grok-3",             131_072,   131_072).usd(3.0, 15.0).cached(0.75),
    family("grok-3-fast",        131_072,   131_072).usd(5.0, 25.0).cached(1.25),
    family("grok-3-mini",        131_072,   131_072).usd(0.3, 0.5).cached(0.075),
    family("grok-3-mini-fast",   131_072,   131_072).usd(0.6, 4.0).cached(0.15),
    family("grok-4",             256_000,   256_000).usd(3.0, 15.0),
    family("grok-4-fast*",     2_000_000, 2_000_000).usd(0.2, 0.5).cached(0.05),
    family("grok-4-1-fast*",   2_000_000, 2_000_000).usd(0.2, 0.5).cached(0.05),
    family("grok-4.20*",       2_000_000, 2_000_000).usd(2.0, 6.0).cached(0.2),
    family("grok-4.3",         1_000_000, 1_000_000).usd(1.25, 2.5).cached(0.2),
    family("grok-4.5",           500_000,   500_000).usd(2.0, 6.0).cached(0.5),
    family("grok-beta",          131_072,   131_072).usd(5.0, 15.0),
    family("grok-code-fast*",    256_000,   256_000).usd(0.2, 1.5).cached(0.02),
    family("grok-vision",          8_192,     8_192).usd(5.0, 15.0),

    family("glm-4-32b-0414-128k", 128_000,  32_000).usd(0.1, 0.1),
    family("glm-4.5",             128_000,  32_000).usd(0.6, 2.2),
    family("glm-4.5-air",         128_000,  32_000).usd(0.2, 1.1),
    family("glm-4.5-airx",        128_000,  32_000).usd(1.1, 4.5),
    family("glm-4.5-flash",       128_000,  32_000).usd(0.0, 0.0),
    family("glm-4.5-x",           128_000,  32_000).usd(2.2, 8.9),
    family("glm-4.5v",            128_000,  32_000).usd(0.6, 1.8),
    family("glm-4.6",             200_000, 128_000).usd(0.6, 2.2).cached(0.11),
    family("glm-4.7",             200_000, 128_000).usd(0.6, 2.2).cached(0.11),
    family("glm-4.7-flash",       200_000, 128_000).usd(0.0, 0.0),
    family("glm-5",               200_000, 128_000).usd(1.0, 3.2).cached(0.2),
    family("glm-5-code",          200_000, 128_000).usd(1.2, 5.0).cached(0.3),
    family("glm-5.1",             200_000, 128_000).usd(1.4, 4.4).cached(0.26),
    family("zai-glm-4.6",         131_072, 128_000).usd(2.25, 2.75),
    family("zai-glm-4.7",         128_000, 128_000).usd(2.25, 2.75),

    qwen("qwen-3-32b",             128_000, 128_000).usd(0.4, 0.8),
    qwen("qwen-3-235b*",           131_072,  32_768),
    qwen("qwen-coder",           1_000_000,  16_384).usd(0.3, 1.5),
    qwen("qwen-max",                30_720,   8_192).usd(1.6, 6.4),
    qwen("qwen-plus",              129_024,  16_384).usd(0.4, 1.2),
    qwen("qwen-plus-2025-01-25",   129_024,   8_192).usd(0.4, 1.2),
    qwen("qwen-turbo",             129_024,  16_384).usd(0.05, 0.2),
    qwen("qwen-turbo-2024-11-01", 1_000_000,  8_192).usd(0.05, 0.2),
    qwen("qwen-turbo-2025-04-28", 1_000_000, 16_384).usd(0.05, 0.2),
    qwen("qwen-turbo-latest",     1_000_000, 16_384).usd(0.05, 0.2),
    qwen("qwen3-32b",              131_000, 131_000).usd(0.29, 0.59).caching(LONG),
    qwen("qwen3-next-80b-a3b*",    262_144,  65_536).usd(0.15, 1.2),
    qwen("qwen3-vl-235b-a22b-instruct", 131_072, 32_768).usd(0.4, 1.6),
    qwen("qwen3-vl-235b-a22b-thinking", 131_072, 32_768).usd(0.4, 4.0),
    qwen("qwen3-vl-32b-instruct",  131_072,  32_768).usd(0.16, 0.64),
    qwen("qwen3-vl-32b-thinking",  131_072,  32_768).usd(0.16, 2.87),
    qwen("qwen3.7-max",            991_808,  65_536).usd(2.5, 7.5).cached(0.5),
    family("qwq-plus",                98_304,   8_192).usd(0.8, 2.4),

    // Cerebras uses the bare name, and serves half the window of the others.
    family("llama-3.3-70b",            65_536, 65_536).usd(0.85, 1.2),
    family("llama-3.3-70b-versatile", 128_000, 32_768).usd(0.59, 0.79).caching(LONG),
    family("llama-3.1-70b",           131_072,  8_192),
    family("llama3.1-70b",            128_000, 128_000).usd(0.6, 0.6),
    family("llama-3.1-8b-instant",    128_000,  8_192).usd(0.05, 0.08).caching(LONG),
    family("llama3.1-8b",             128_000, 128_000).usd(0.1, 0.1),
    family("llama-4-maverick-17b-128e-instruct", 131_072, 8_192).usd(0.2, 0.6).caching(LONG),
    family("llama-4-scout-17b-16e-instruct",     131_072, 8_192).usd(0.11, 0.34).caching(LONG),
    family("llama-guard-4-12b",         8_192,  8_192).usd(0.2, 0.2).caching(LONG),
];

/// Open models are hosted by many, with windows of their own choosing.
const fn family(pattern: &'static str, window: u64, max_output: u64) -> Family {
    super::family(pattern, window, max_output).typical()
}

/// DeepSeek caches on disk, for hours, in units of 64 tokens.
const fn deepseek(pattern: &'static str, window: u64, max_output: u64) -> Family {
    family(pattern, window, max_output).factor(1.06).caching(Caching::of(7_200, 64, 64))
}

const fn qwen(pattern: &'static str, window: u64, max_output: u64) -> Family {
    family(pattern, window, max_output).factor(1.07)
}

/// Groq keeps prefixes for two hours.
const LONG: Caching = Caching::of(7_200, 1_024, 128);
