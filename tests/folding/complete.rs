//! What a model leaves out of its summary is added to it.

use super::scene::{FACT, send, start, summarization, summarizer, upstream, with_summarizer};
use crate::support::chat::{assistant, system, user};
use crate::support::client::admin;
use crate::support::metrics::value;

/// Questions with one fact, which no summary by [`summarizer`] has.
fn talk() -> Vec<String> {
    let mut messages = vec![system("Be brief.")];
    for turn in 0..4 {
        let said =
            if turn == 1 { "The vault is opened with 4711, says Ottoline." } else { "Tell me of the sea." };
        messages.push(user(said));
        messages.push(assistant(&"The gulls cried, and the wind came up from the sea. ".repeat(12)));
    }
    messages.push(user("And now?"));
    messages
}

#[tokio::test]
async fn a_model_s_summary_keeps_the_numbers_that_it_left_out() {
    for (complete, added) in [("", 1.0), ("complete = false\n", 0.0)] {
        let (upstream, summarizer) = (upstream().await, summarizer().await);
        let settings = summarization(&format!("mode = \"inline\"\n{complete}"));
        let tidegate = start(&with_summarizer(&settings, &summarizer, "30s"), &upstream).await;
        let (_, forwarded) = send(&tidegate, &upstream, "a", &talk()).await;
        let summary = forwarded.summary().expect("a summary").text;
        assert!(summary.contains(FACT), "{summary}");
        assert_eq!(summary.contains("4711"), added > 0.0, "{summary}");
        let page = admin(tidegate.admin, "/metrics").await.text();
        assert_eq!(value(&page, "tidegate_facts_added_total", &[]), Some(added));
    }
}
