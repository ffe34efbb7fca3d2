//! "Observability": what each block was and is, in the log and in the record of the turn.

use super::desk::{Desk, TOLD, count, facts_for, frame, history, instructed, notes, summary, words};
use serde_json::{Value, json};

/// The figures of the last request, from the log.
async fn logged(desk: &mut Desk, times: usize) -> Value {
    desk.tidegate.logged_times("block sizes", times).await;
    let log = desk.tidegate.output();
    let line = log.lines().filter(|line| line.contains("block sizes")).nth(times - 1);
    serde_json::from_str(line.unwrap()).unwrap()
}

fn figures(line: &Value) -> Value {
    let names = [
        "memory_before",
        "memory_after",
        "summary_before",
        "summary_after",
        "history_before",
        "history_after",
    ];
    let others = ["removed_lines", "fell_back_to_words"];
    names.iter().chain(&others).map(|name| ((*name).to_owned(), line[*name].clone())).collect()
}

async fn debugged() -> Desk {
    Desk::with_notes(&format!("{TOLD}[log]\nlevel = \"debug\"\n")).await
}

#[tokio::test]
async fn block_sizes_removed_lines_and_the_fallback_are_reported() {
    let mut desk = debugged().await;
    desk.summarizes(&["Ada has 2 cats", "Ada sails", "Ada prefers green tea"]);
    desk.pin(Some(&format!("Ada sails\nAda has 2 cats\n{}", words("Likes", 400)))).await;
    let (_, sent) = desk.say(&history(&[500, 1_000, 1_000, 600])).await;
    let after = count(summary(&sent).unwrap());
    let expected = json!({
        "memory_before": 406, "memory_after": 300,
        "summary_before": after + count("- Ada has 2 cats - Ada sails"), "summary_after": after,
        "history_before": 3_100, "history_after": 1_600,
        "removed_lines": 2, "fell_back_to_words": false,
    });
    assert_eq!(notes(&sent).map(count), Some(300));
    assert_eq!(figures(&logged(&mut desk, 2).await), expected);
    assert_eq!(desk.blocks(2).await, expected);
}

/// A question is part of no block, so that what is not cut is the same before and after.
#[tokio::test]
async fn unchanged_blocks_have_equal_sizes() {
    let desk = Desk::start("").await;
    desk.say(&history(&[10, 20])).await;
    let expected = json!({
        "memory_before": 0, "memory_after": 0, "summary_before": 0, "summary_after": 0,
        "history_before": 30, "history_after": 30, "removed_lines": 0, "fell_back_to_words": false,
    });
    assert_eq!(desk.blocks(1).await, expected);
}

/// What the total takes is told as it is in the request, not as it might have been.
#[tokio::test]
async fn the_sizes_after_the_total_match_the_request() {
    let told = facts_for(150, frame().await);
    let desk = Desk::with_notes(TOLD).await;
    desk.summarizes(&told);
    desk.pin(Some(&words("Likes", 300))).await;
    for (turn, instructions) in [(2, 4_011), (3, 4_200)] {
        let (_, sent) = desk.say(&instructed(instructions, &[20; 20])).await;
        let blocks = desk.blocks(turn).await;
        let told = |name: &str| blocks[name].as_u64().unwrap() as usize;
        assert_eq!(told("summary_after"), summary(&sent).map_or(0, count), "{blocks}");
        assert_eq!(told("memory_after"), notes(&sent).map_or(0, count), "{blocks}");
        assert_eq!((told("summary_before"), told("memory_before")), (150, 300), "{blocks}");
        assert_eq!((told("history_before"), told("history_after")), (400, 40), "{blocks}");
    }
}

/// "No persistence impact", and no content: figures alone are logged, and only where they are asked for.
#[tokio::test]
async fn the_debug_log_has_figures_and_no_content() {
    let mut desk = debugged().await;
    desk.summarizes(&["Ada has 2 cats"]);
    desk.pin(Some("Ada keeps a secretgarden")).await;
    desk.say(&history(&[2_000, 600, 600])).await;
    logged(&mut desk, 2).await;
    let log = desk.tidegate.stop().await;
    for secret in ["secretgarden", "cats", "m0 word"] {
        assert!(!log.contains(secret), "{log}");
    }
    let quiet = Desk::start("").await;
    quiet.say(&history(&[2_000, 600, 600])).await;
    quiet.told(1).await;
    assert!(!quiet.tidegate.stop().await.contains("block sizes"));
}
