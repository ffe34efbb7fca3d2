//! "Configuration": the document's defaults and invalid values, through `tidegate check`.

use crate::support::command::{command, run};
use tempfile::TempDir;

/// Returns whether `tidegate check` accepts these lines of `[context]`, and its output.
async fn check(settings: &str) -> (bool, String) {
    let directory = TempDir::new().unwrap();
    let config = format!("[context]\nprofile = \"assistant\"\n{settings}");
    std::fs::write(directory.path().join("proxy.toml"), config).unwrap();
    let output = run(command(directory.path()).arg("check")).await;
    (output.code == Some(0), output.out + &output.err)
}

#[tokio::test]
async fn the_defaults_match_the_document() {
    let (is_valid, output) = check("").await;
    assert!(is_valid, "{output}");
    for (name, value) in [
        ("context.unit", "\"words\""),
        ("context.blocks.memory_max", "300"),
        ("context.blocks.summary_max", "500"),
        ("context.blocks.history_max", "2500"),
        ("context.blocks.total_max", "4500"),
        ("context.blocks.dedupe", "true"),
        ("context.blocks.min_recent_messages", "2"),
    ] {
        let words = |line: &str| line.split_whitespace().take(2).map(str::to_owned).collect::<Vec<_>>();
        assert!(output.lines().any(|line| words(line) == [name, value]), "{name} = {value}\n{output}");
    }
}

#[tokio::test]
async fn every_limit_and_the_floor_must_be_positive() {
    for name in ["memory_max", "summary_max", "history_max", "total_max", "min_recent_messages"] {
        for wrong in ["0", "-1", "\"many\"", "1.5"] {
            let (is_valid, output) = check(&format!("[context.blocks]\n{name} = {wrong}\n")).await;
            assert!(
                !is_valid && output.contains(&format!("`context.blocks.{name}`")),
                "{name} = {wrong}: {output}"
            );
        }
        let smallest = if name == "total_max" { "2500" } else { "1" };
        let (is_valid, output) = check(&format!("[context.blocks]\n{name} = {smallest}\n")).await;
        assert!(is_valid, "{name}: {output}");
    }
}

#[tokio::test]
async fn the_total_must_be_at_least_the_history() {
    let (is_valid, output) = check("[context.blocks]\nhistory_max = 4500\n").await;
    assert!(is_valid, "{output}");
    // Also if one of them is the profile's default.
    for settings in ["history_max = 4501", "total_max = 2499", "history_max = 10\ntotal_max = 9"] {
        let (is_valid, output) = check(&format!("[context.blocks]\n{settings}\n")).await;
        assert!(!is_valid, "{settings}: {output}");
        assert!(output.contains("must be at least `history_max`"), "{settings}: {output}");
    }
}

#[tokio::test]
async fn the_unit_is_words_or_tokens() {
    for (unit, is_unit) in [("words", true), ("tokens", true), ("Words", false), ("characters", false)] {
        let (is_valid, output) = check(&format!("unit = \"{unit}\"\n")).await;
        assert_eq!(is_valid, is_unit, "{unit}: {output}");
        assert!(is_unit || (output.contains("`context.unit`") && output.contains("words")), "{output}");
    }
}

#[tokio::test]
async fn de_duplication_is_on_or_off() {
    for (value, is_one) in [("true", true), ("false", true), ("1", false), ("\"yes\"", false)] {
        let (is_valid, output) = check(&format!("[context.blocks]\ndedupe = {value}\n")).await;
        assert_eq!(is_valid, is_one, "{value}: {output}");
    }
}
