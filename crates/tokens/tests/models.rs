//! Lookups of model names as clients write them.

use std::time::Duration;

use tidegate_engine::{CacheKind, ContextWindow, Tokens};
use tidegate_tokens::{Caching, Encoding, ImageRule, ModelOverride, ModelTable, Prices};

/// Checks the row that matched, the window, and the prices as `[input, cached input, cache write, output]`.
#[track_caller]
fn check(name: &str, row: &str, window: u64, prices: Option<[f64; 4]>) {
    let model = ModelTable::builtin().lookup(name);
    assert_eq!(model.name, row, "{name}");
    assert_eq!(model.window.tokens(), Some(Tokens(window)), "{name}");
    let found = model.prices.map(|p| [p.input, p.cached(), p.written(), p.output.unwrap_or(f64::NAN)]);
    assert_eq!(found, prices, "{name}");
}

#[test]
fn finds_plain_names() {
    check("gpt-4o", "gpt-4o", 128_000, Some([2.5, 1.25, 2.5, 10.0]));
    check("gpt-4o-mini", "gpt-4o-mini", 128_000, Some([0.15, 0.075, 0.15, 0.6]));
    check("gpt-4", "gpt-4", 8_192, Some([30.0, 30.0, 30.0, 60.0]));
    check("gpt-4.1", "gpt-4.1", 1_047_576, Some([2.0, 0.5, 2.0, 8.0]));
    check("gpt-5", "gpt-5", 272_000, Some([1.25, 0.125, 1.25, 10.0]));
    check("gpt-5.6", "gpt-5.6", 1_050_000, Some([5.0, 0.5, 6.25, 30.0]));
    check("gpt-5.6-luna", "gpt-5.6-luna", 1_050_000, Some([0.2, 0.02, 0.25, 1.2]));
    check("o3", "o3", 200_000, Some([2.0, 0.5, 2.0, 8.0]));
    check("claude-opus-4-1", "claude-opus-4-1", 200_000, Some([15.0, 1.5, 18.75, 75.0]));
    check("deepseek-chat", "deepseek-chat", 131_072, Some([0.28, 0.028, 0.28, 0.42]));
    check("mistral-medium", "mistral-medium", 32_000, Some([2.7, 2.7, 2.7, 8.1]));
    check("mistral-medium-latest", "mistral-medium-latest", 262_144, Some([1.5, 1.5, 1.5, 7.5]));
}

#[test]
fn finds_releases_of_a_model() {
    check("gpt-4o-2024-08-06", "gpt-4o", 128_000, Some([2.5, 1.25, 2.5, 10.0]));
    check("gpt-4o-2024-05-13", "gpt-4o-2024-05-13", 128_000, Some([5.0, 5.0, 5.0, 15.0]));
    check("gpt-4-0613", "gpt-4", 8_192, Some([30.0, 30.0, 30.0, 60.0]));
    check("gpt-4-1106-preview", "gpt-4-1106", 128_000, Some([10.0, 10.0, 10.0, 30.0]));
    check("chatgpt-4o-latest", "chatgpt-4o", 128_000, Some([5.0, 5.0, 5.0, 15.0]));
    check("gpt-5.1-chat-latest", "gpt-5.1-chat", 128_000, Some([1.25, 0.125, 1.25, 10.0]));
    check("claude-opus-4-20250514", "claude-opus-4", 200_000, Some([15.0, 1.5, 18.75, 75.0]));
    check("claude-sonnet-4-5@20250929", "claude-sonnet-4-5", 200_000, Some([3.0, 0.3, 3.75, 15.0]));
    check(
        "gemini-2.5-flash-preview-09-2025",
        "gemini-2.5-flash-preview-09-2025",
        1_048_576,
        Some([0.3, 0.075, 0.3, 2.5]),
    );
    check(
        "gemini-2.5-flash-lite-preview-09-2025",
        "gemini-2.5-flash-lite",
        1_048_576,
        Some([0.1, 0.01, 0.1, 0.4]),
    );
    check("grok-4-0709", "grok-4", 256_000, Some([3.0, 3.0, 3.0, 15.0]));
    check("mistral-large-2411", "mistral-large-2411", 128_000, Some([2.0, 2.0, 2.0, 6.0]));
    check("mistral-large-2512", "mistral-large", 262_144, Some([0.5, 0.5, 0.5, 1.5]));
}

#[test]
fn finds_names_with_a_gateways_prefix() {
    check("openai/gpt-4o", "gpt-4o", 128_000, Some([2.5, 1.25, 2.5, 10.0]));
    check("azure/gpt-4o-2024-11-20", "gpt-4o", 128_000, Some([2.5, 1.25, 2.5, 10.0]));
    check("OpenAI/GPT-4o", "gpt-4o", 128_000, Some([2.5, 1.25, 2.5, 10.0]));
    check("anthropic/claude-3-7-sonnet-20250219", "claude-3-7-sonnet", 200_000, Some([3.0, 0.3, 3.75, 15.0]));
    check(
        "openrouter/anthropic/claude-sonnet-4.5",
        "claude-sonnet-4-5",
        200_000,
        Some([3.0, 0.3, 3.75, 15.0]),
    );
    check(
        "us.anthropic.claude-3-7-sonnet-20250219-v1:0",
        "claude-3-7-sonnet",
        200_000,
        Some([3.0, 0.3, 3.75, 15.0]),
    );
    check("cerebras/gpt-oss-120b", "gpt-oss-120b", 131_072, Some([0.35, 0.35, 0.35, 0.75]));
    check("groq/openai/gpt-oss-120b", "openai/gpt-oss-120b", 131_072, Some([0.15, 0.075, 0.15, 0.6]));
    check("deepseek/deepseek-r1:free", "deepseek-r1", 65_536, None);
}

#[test]
fn finds_fine_tunes() {
    check("ft:gpt-4o-mini:acme::9xYz", "ft:gpt-4o-mini", 128_000, Some([0.3, 0.15, 0.3, 1.2]));
    check("ft:gpt-4o-2024-08-06:acme:tides:9x", "ft:gpt-4o", 128_000, Some([3.75, 1.875, 3.75, 15.0]));
    check("ft:gpt-4-0613:acme::9x", "gpt-4", 8_192, Some([30.0, 30.0, 30.0, 60.0]));
}

#[test]
fn finds_hosted_models() {
    check("zai-glm-4.6", "zai-glm-4.6", 131_072, Some([2.25, 2.25, 2.25, 2.75]));
    check("qwen-3-235b", "qwen-3-235b*", 131_072, None);
    check("qwen-3-235b-a22b-instruct-2507", "qwen-3-235b*", 131_072, None);
    check("llama-3.3-70b", "llama-3.3-70b", 65_536, Some([0.85, 0.85, 0.85, 1.2]));
    check("llama-3.3-70b-versatile", "llama-3.3-70b-versatile", 128_000, Some([0.59, 0.59, 0.59, 0.79]));
    check("meta-llama/llama-3.1-70b", "llama-3.1-70b", 131_072, None);
    check("gemini-2.0-flash", "gemini-2.0-flash", 1_000_000, Some([0.1, 0.025, 0.1, 0.4]));
    check("gemini-2.0-flash-001", "gemini-2.0-flash", 1_000_000, Some([0.1, 0.025, 0.1, 0.4]));
}

#[test]
fn an_unknown_sibling_gets_the_smallest_window_of_its_family_and_no_price() {
    check("gpt-5.9", "gpt-5.*", 128_000, None);
    check("gpt-5-ultra", "gpt-5-*", 128_000, None);
    check("gpt-4o-realtime", "gpt-4o-*", 128_000, None);
    check("claude-opus-4-9", "claude-*", 200_000, None);
}

#[test]
fn an_unknown_model_has_neither_window_nor_price() {
    let long = "gpt-4o-".repeat(100);
    for name in
        ["", "my-model", "gpt-6", "gpt-4obscure", "ft:", "ft:::", "/", "x/", ":", "*", "é/ü", long.as_str()]
    {
        let model = ModelTable::builtin().lookup(name);
        assert_eq!((model.window.tokens(), model.max_output, model.prices), (None, None, None), "{name}");
        assert_eq!(model.encoding, Encoding::O200k);
    }
}

#[test]
fn openai_models_have_their_own_encoding() {
    let encoding = |name: &str| ModelTable::builtin().lookup(name).encoding;
    for name in [
        "gpt-4o",
        "gpt-4.1-nano",
        "gpt-5-mini",
        "o1",
        "o3-mini",
        "o4-mini",
        "chatgpt-4o-latest",
        "gpt-oss-20b",
    ] {
        assert_eq!(encoding(name), Encoding::O200k, "{name}");
    }
    for name in
        ["gpt-4", "gpt-4-turbo-2024-04-09", "gpt-4-32k-0613", "gpt-3.5-turbo-0125", "azure/gpt-35-turbo"]
    {
        assert_eq!(encoding(name), Encoding::Cl100k, "{name}");
    }
}

#[test]
fn some_models_have_a_longer_window_for_those_who_ask() {
    let long =
        |table: &ModelTable, name: &str| table.lookup(name).with_long_window().map(|model| model.window);
    let table = ModelTable::builtin();
    let million = Some(ContextWindow::Typical(Tokens(1_000_000)));
    for name in ["claude-sonnet-4-5-20250929", "anthropic/claude-sonnet-4.5", "claude-sonnet-4-20250514"] {
        assert_eq!(long(&table, name), million, "{name}");
    }
    for name in ["claude-haiku-4-5", "claude-opus-4-1", "gpt-5"] {
        assert_eq!(long(&table, name), None, "{name}");
    }
    let window = Some(Tokens(100_000));
    let own = table.with([("claude-*".to_owned(), ModelOverride { window, ..ModelOverride::default() })]);
    assert_eq!(long(&own, "claude-sonnet-4-5"), None, "the operator's window stands");
}

#[test]
fn models_have_caching_and_image_rules() {
    let table = ModelTable::builtin();
    let openai = table.lookup("gpt-5").caching;
    assert_eq!((openai.minimum, openai.step), (Tokens(1_024), Tokens(128)));
    let claude = table.lookup("claude-sonnet-4-5").caching;
    assert_eq!((claude.ttl, claude.minimum), (Duration::from_secs(300), Tokens(1_024)));
    assert_eq!((openai.kind, claude.kind), (CacheKind::Automatic, CacheKind::Explicit));
    let named =
        ["anthropic/claude-sonnet-4.5", "claude-opus-4-6", "claude-9", "us.anthropic.claude-sonnet-4-5-v1:0"];
    assert_eq!(named.map(|name| table.lookup(name).caching.kind), [CacheKind::Explicit; 4]);
    let cache = Some(CacheKind::None);
    let table = table.with([("claude-*".to_owned(), ModelOverride { cache, ..ModelOverride::default() })]);
    assert_eq!(table.lookup("claude-sonnet-4-5").caching, Caching { kind: CacheKind::None, ..claude });
    assert_eq!(table.lookup("gpt-4o-mini-2024-07-18").images, ImageRule::Tiles { base: 2_833, tile: 5_667 });
    assert_eq!(table.lookup("o4-mini").images, ImageRule::Patches { edge: 32, limit: 1_536, percent: 172 });
}

#[test]
fn overrides_win_and_inherit_what_they_do_not_set() {
    let window = |tokens| ModelOverride { window: Some(Tokens(tokens)), ..ModelOverride::default() };
    let table = ModelTable::builtin().with([
        ("gpt-*".to_owned(), window(1_000)),
        ("GPT-4o".to_owned(), window(2_000)),
        ("my-model".to_owned(), ModelOverride { input: Some(1.0), cached_input: Some(0.1), ..window(3_000) }),
    ]);
    let found = |name: &str| {
        let model = table.lookup(name);
        (model.name.clone(), model.window.tokens(), model.prices.map(|prices| prices.input))
    };
    assert_eq!(found("openai/gpt-4o-2024-08-06"), ("gpt-4o".to_owned(), Some(Tokens(2_000)), Some(2.5)));
    assert_eq!(found("gpt-4o-mini"), ("gpt-*".to_owned(), Some(Tokens(1_000)), Some(0.15)));
    assert_eq!(found("o3"), ("o3".to_owned(), Some(Tokens(200_000)), Some(2.0)));
    assert_eq!(found("my-model-2"), ("my-model-2".to_owned(), None, None));
    let expected = Prices { input: 1.0, cached_input: Some(0.1), cache_write: None, output: None };
    assert_eq!(table.lookup("my-model").prices, Some(expected));
    assert!(std::ptr::eq(&*table.lookup("o3"), &*table.lookup("o3")), "the second lookup is cached");
}
