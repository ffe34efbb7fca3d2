//! Hostile texts are counted in linear time and without a panic.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use tidegate_engine::Tokens;
use tidegate_tokens::{
    Encoding, ModelTable, audio_tokens, count, estimate, file_tokens, pixels_of_data_url, tools_tokens,
};

const SMALL: usize = 1_000_000;

#[test]
fn a_repeated_letter_takes_linear_time() {
    linear(|bytes| "a".repeat(bytes));
}

#[test]
fn spaces_take_linear_time() {
    linear(|bytes| " ".repeat(bytes));
}

#[test]
fn spaces_before_a_letter_take_linear_time() {
    linear(|bytes| " ".repeat(bytes) + "x");
}

#[test]
fn random_bytes_take_linear_time() {
    linear(|bytes| String::from_utf8_lossy(&noise(bytes / 4)).into_owned());
}

/// Asserts that ten times the text takes at most twelve times the CPU time of this thread. A quadratic tokenizer would take a hundred
/// times as long in every attempt; a busy machine distorts only some of them.
#[track_caller]
fn linear(text: impl Fn(usize) -> String) {
    let (small, large) = (text(SMALL), text(10 * SMALL));
    let _warm = count(Encoding::O200k, &small);
    let ratios = (0..5).map(|_| seconds(&large) / seconds(&small));
    let mut seen = Vec::new();
    for ratio in ratios {
        if ratio <= 12.0 {
            return;
        }
        seen.push(ratio);
    }
    panic!("ten times the text took {seen:?} times as long");
}

fn seconds(text: &str) -> f64 {
    let (start, wall) = (processor_time(), Instant::now());
    let tokens = count(Encoding::O200k, text);
    assert!(tokens > Tokens::ZERO);
    let spent = match (start, processor_time()) {
        (Some(start), Some(end)) => end.saturating_sub(start),
        _ => wall.elapsed(),
    };
    spent.max(Duration::from_micros(1)).as_secs_f64()
}

/// The CPU time of this thread, or `None` if the system does not report it.
fn processor_time() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    stat.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let step = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    std::iter::repeat_with(step).take(bytes).collect()
}

#[test]
fn odd_texts_are_counted_and_not_estimated() {
    // The estimate would be far off for each of these.
    for text in
        ["\0".repeat(100_000), "\u{feff}".repeat(50_000), "\u{10ffff}".repeat(50_000), "ʰA".repeat(50_000)]
    {
        for encoding in [Encoding::O200k, Encoding::Cl100k] {
            assert_ne!(count(encoding, &text), estimate(&text), "{encoding} of {:?}…", text.chars().next());
        }
    }
}

proptest! {
    #[test]
    fn lookup_accepts_any_name(name in any::<String>(), tail in "(gpt-4o|claude-|ft:|/|:|-|@|\\*|[a-z0-9.]){0,8}") {
        let table = ModelTable::builtin();
        for name in [name.clone() + &tail, tail + &name] {
            prop_assert_eq!(table.lookup(&name), ModelTable::builtin().lookup(&name));
        }
    }

    #[test]
    fn attachments_of_any_bytes_have_a_cost(bytes in "[A-Za-z0-9+/=]{0,200}", text in any::<String>()) {
        for head in ["", "iVBORw0KGgo", "/9j/4", "/9j//", "R0lGODlh", "UklGR"] {
            let url = format!("data:image/x;base64,{head}{bytes}");
            if let Some(size) = pixels_of_data_url(&url) {
                prop_assert!(size.width > 0 && size.height > 0);
            }
            prop_assert!(file_tokens(Some(&url)) >= Tokens(1_500));
        }
        prop_assert_eq!(pixels_of_data_url(&text), None);
        for format in ["wav", "mp3"] {
            prop_assert!(audio_tokens(format, &bytes) >= Tokens(1));
            prop_assert!(audio_tokens(format, &text) >= Tokens(1));
        }
    }

    #[test]
    fn tools_of_any_text_have_a_cost(text in "[\\[\\]{}\",:a-z0-9 ]{0,80}") {
        let tokens = tools_tokens(Encoding::Estimate, &text);
        prop_assert!(tokens > Tokens::ZERO || text.trim().is_empty() || text.split_whitespace().collect::<String>() == "[]");
    }
}
