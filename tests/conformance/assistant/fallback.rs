//! Fallbacks without a tokenizer and without a summarizer.

use super::harness::{Assistant, CONVERSATION, SCRIPTED, history, numbers, summary};
use crate::support::reply::edited;
use tidegate_testkit::Answer;

/// "Optional Tokenizer Mode": words are counted instead, with one warning.
#[tokio::test]
async fn a_model_without_a_tokenizer_counts_words_and_warns_once() {
    let settings = format!("unit = \"tokens\"\n{SCRIPTED}[models.\"unheard-of\"]\nencoding = \"estimate\"\n");
    let assistant = Assistant::start(&settings).await.model("unheard-of");
    let within = assistant.body(&history(&[100; 25]));
    assert_eq!(assistant.send_body(CONVERSATION, &within).await.1, within, "2,500 words");
    let mut sizes = [100; 25];
    sizes[0] = 101;
    for _ in 0..3 {
        assert_eq!(numbers(&assistant.send(&history(&sizes)).await.1), (1..25).collect::<Vec<_>>());
    }
    for turn in 1..=4 {
        assert_eq!(assistant.blocks(turn).await["fell_back_to_words"], true);
    }
    let log = assistant.tidegate.stop().await;
    let warnings: Vec<&str> = log.lines().filter(|line| line.contains("\"level\":\"WARN\"")).collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("no tokenizer") && warnings[0].contains("words"), "{warnings:?}");
}

#[tokio::test]
async fn a_model_with_a_tokenizer_logs_no_warning() {
    let assistant = Assistant::start(&format!("unit = \"tokens\"\n{SCRIPTED}")).await;
    assistant.send(&history(&[100; 25])).await;
    assert_eq!(assistant.blocks(1).await["fell_back_to_words"], false);
    let log = assistant.tidegate.stop().await;
    assert!(!log.contains("\"level\":\"WARN\""), "{log}");
}

/// Without a summary the limit still holds, and a marker counts the missing turns.
#[tokio::test]
async fn without_a_summarizer_a_marker_replaces_the_excess_history() {
    // Too little for any summary, so that the built-in summarizer fails, too.
    let assistant = Assistant::start(&format!("{SCRIPTED}max_tokens = 20\n")).await;
    assistant.summarizer.answer(Answer::error(500, "broken", "no summaries today"));
    let messages = history(&[100; 30]);
    // Once while the summarizer is called, and once during its back-off.
    for _ in 0..2 {
        let (reply, sent) = assistant.send(&messages).await;
        // The task stays although it is the oldest message.
        let task = numbers(&sent).into_iter().filter(|&number| number < 5).collect::<Vec<_>>();
        assert_eq!(task, [0], "{:?}", sent.contents());
        // With it, 25 messages are 2,500 words. The last one is to be answered and does not count.
        assert_eq!(numbers(&sent)[1..], (6..30).collect::<Vec<_>>());
        assert_eq!((summary(&sent), edited(&reply, "dropped")), (None, 5));
        assert!(sent.has("earlier turns of this conversation are missing here"));
        assert!(reply.header("x-tidegate-degraded").is_some_and(|why| why.starts_with("summarizer_")));
    }
    // A history within its limit needs no summary.
    let request = assistant.body(&history(&[100; 25]));
    let (reply, body) = assistant.send_body("another", &request).await;
    assert_eq!((body, reply.header("x-tidegate-degraded")), (request, None));
}
