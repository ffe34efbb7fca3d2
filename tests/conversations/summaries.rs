//! Summaries can be read back.

use super::ask::{json, output_of, until_counted};
use super::scene::in_memory;
use crate::support::agent::{body, conversation, send};
use serde_json::Value;
use tidegate_testkit::MockUpstream;

const FOLD: &str = "[context]\nstrategy = \"summarization\"\n[context.fold]\nwhen = { turns = 3 }\nkeep = { turns = 1 }\nmode = \"inline\"\n";

#[tokio::test]
async fn the_api_and_the_command_show_a_summary() {
    let upstream = MockUpstream::start().await;
    let tidegate = in_memory(FOLD, &upstream).start().await;
    let sent = body("gpt-4o", &conversation(4), &[]);
    let (_, forwarded) = send(&tidegate, &upstream, &[("x-conversation-id", "build-7")], &sent).await;
    assert!(forwarded.contains("<conversation_record>"), "{forwarded}");
    until_counted(&tidegate, 1).await;

    let page = json(&tidegate, "/api/conversations/build-7").await;
    let summaries = page["summaries"].as_array().unwrap();
    let one = &summaries[0];
    // The task and three calls with their results.
    assert_eq!((summaries.len(), &one["covered"], &one["author"]), (1, &7.into(), &"extractive".into()));
    assert_eq!((&one["calls"], one["covers"].as_str().unwrap().len()), (&0.into(), 64));
    let entries = one["summary"].as_object().unwrap();
    assert!(!entries.is_empty(), "{page}");

    let shown = output_of(&tidegate, &["show", "build-7"]).await;
    let (_, text) =
        shown.split_once("\nsummaries\nof the first 7 messages, ").unwrap_or_else(|| panic!("{shown}"));
    let (text, _) = text.split_once("\n\nmessages\n").unwrap_or_else(|| panic!("{shown}"));
    assert!(text.contains(", by extractive\n    ") && text.contains("\n      - "), "{shown}");
    let all: Value =
        serde_json::from_str(&output_of(&tidegate, &["show", "build-7", "--json"]).await).unwrap();
    assert_eq!(all["summaries"], page["summaries"]);
}

#[tokio::test]
async fn without_a_summary_none_is_shown() {
    let upstream = MockUpstream::start().await;
    let tidegate = in_memory("", &upstream).start().await;
    let sent = body("gpt-4o", &conversation(1), &[]);
    send(&tidegate, &upstream, &[("x-conversation-id", "short")], &sent).await;
    until_counted(&tidegate, 1).await;
    let page = json(&tidegate, "/api/conversations/short").await;
    assert_eq!((&page["summaries"], page.get("summaries_degraded")), (&serde_json::json!([]), None));
    assert!(!output_of(&tidegate, &["show", "short"]).await.contains("summaries"));
}
