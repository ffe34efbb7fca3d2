//! "Observability": the block sizes before and after, in the log and in the record of the turn.

use super::harness::{
    Assistant, SCRIPTED, count, facts_for, frame, history, instructed, memory, summary, words,
};
use serde_json::{Value, json};

/// The log line with the block sizes of the last request.
async fn logged(assistant: &mut Assistant, times: usize) -> Value {
    assistant.tidegate.logged_times("block sizes", times).await;
    let log = assistant.tidegate.output();
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

async fn debugged() -> Assistant {
    Assistant::with_memory(&format!("{SCRIPTED}[log]\nlevel = \"debug\"\n")).await
}

#[tokio::test]
async fn block_sizes_removed_lines_and_the_fallback_are_reported() {
    let mut assistant = debugged().await;
    assistant.set_summary(&["Ada has 2 cats", "Ada sails", "Ada prefers green tea"]);
    assistant.pin(Some(&format!("Ada sails\nAda has 2 cats\n{}", words("Likes", 400)))).await;
    let (_, sent) = assistant.send(&history(&[500, 1_000, 1_000, 600])).await;
    let after = count(summary(&sent).unwrap());
    let expected = json!({
        "memory_before": 406, "memory_after": 300,
        "summary_before": after + count("- Ada has 2 cats - Ada sails"), "summary_after": after,
        "history_before": 3_100, "history_after": 1_600,
        "removed_lines": 2, "fell_back_to_words": false,
    });
    assert_eq!(memory(&sent).map(count), Some(300));
    assert_eq!(figures(&logged(&mut assistant, 2).await), expected);
    assert_eq!(assistant.blocks(2).await, expected);
}

/// The question belongs to no block, so unchanged blocks have the same size before and after.
#[tokio::test]
async fn unchanged_blocks_have_equal_sizes() {
    let assistant = Assistant::start("").await;
    assistant.send(&history(&[10, 20])).await;
    let expected = json!({
        "memory_before": 0, "memory_after": 0, "summary_before": 0, "summary_after": 0,
        "history_before": 30, "history_after": 30, "removed_lines": 0, "fell_back_to_words": false,
    });
    assert_eq!(assistant.blocks(1).await, expected);
}

/// The reported sizes are those in the request after the total limit.
#[tokio::test]
async fn the_sizes_after_the_total_match_the_request() {
    let scripted = facts_for(150, frame().await);
    let assistant = Assistant::with_memory(SCRIPTED).await;
    assistant.set_summary(&scripted);
    assistant.pin(Some(&words("Likes", 300))).await;
    for (turn, instructions) in [(2, 4_011), (3, 4_200)] {
        let (_, sent) = assistant.send(&instructed(instructions, &[20; 20])).await;
        let blocks = assistant.blocks(turn).await;
        let size = |name: &str| blocks[name].as_u64().unwrap() as usize;
        assert_eq!(size("summary_after"), summary(&sent).map_or(0, count), "{blocks}");
        assert_eq!(size("memory_after"), memory(&sent).map_or(0, count), "{blocks}");
        assert_eq!((size("summary_before"), size("memory_before")), (150, 300), "{blocks}");
        assert_eq!((size("history_before"), size("history_after")), (400, 40), "{blocks}");
    }
}

/// "No persistence impact": only figures are logged, and only at debug level.
#[tokio::test]
async fn the_debug_log_has_figures_and_no_content() {
    let mut assistant = debugged().await;
    assistant.set_summary(&["Ada has 2 cats"]);
    assistant.pin(Some("Ada keeps a secretgarden")).await;
    assistant.send(&history(&[2_000, 600, 600])).await;
    logged(&mut assistant, 2).await;
    let log = assistant.tidegate.stop().await;
    for secret in ["secretgarden", "cats", "m0 word"] {
        assert!(!log.contains(secret), "{log}");
    }
    let quiet = Assistant::start("").await;
    quiet.send(&history(&[2_000, 600, 600])).await;
    quiet.conversation(1).await;
    assert!(!quiet.tidegate.stop().await.contains("block sizes"));
}
