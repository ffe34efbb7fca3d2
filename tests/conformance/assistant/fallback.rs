//! What is done without a tokenizer, and without a summarizer.

use super::desk::{Desk, TALK, TOLD, history, numbers, summary};
use crate::support::reply::edited;
use tidegate_testkit::Answer;

/// "Optional Tokenizer Mode": words are counted, one warning says so, and nothing fails.
#[tokio::test]
async fn a_model_without_a_tokenizer_counts_words_and_warns_once() {
    let settings = format!("unit = \"tokens\"\n{TOLD}[models.\"unheard-of\"]\nencoding = \"estimate\"\n");
    let desk = Desk::start(&settings).await.model("unheard-of");
    let within = desk.body(&history(&[100; 25]));
    assert_eq!(desk.send(TALK, &within).await.1, within, "2,500 words");
    let mut sizes = [100; 25];
    sizes[0] = 101;
    for _ in 0..3 {
        assert_eq!(numbers(&desk.say(&history(&sizes)).await.1), (1..25).collect::<Vec<_>>());
    }
    for turn in 1..=4 {
        assert_eq!(desk.blocks(turn).await["fell_back_to_words"], true);
    }
    let log = desk.tidegate.stop().await;
    let warnings: Vec<&str> = log.lines().filter(|line| line.contains("\"level\":\"WARN\"")).collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("no tokenizer") && warnings[0].contains("words"), "{warnings:?}");
}

#[tokio::test]
async fn a_model_with_a_tokenizer_logs_no_warning() {
    let desk = Desk::start(&format!("unit = \"tokens\"\n{TOLD}")).await;
    desk.say(&history(&[100; 25])).await;
    assert_eq!(desk.blocks(1).await["fell_back_to_words"], false);
    let log = desk.tidegate.stop().await;
    assert!(!log.contains("\"level\":\"WARN\""), "{log}");
}

/// Where no summary can be made the limit holds all the same, and the request says what is missing.
#[tokio::test]
async fn without_a_summarizer_a_marker_replaces_the_excess_history() {
    let desk = Desk::start(TOLD).await;
    desk.summarizer.answer(Answer::error(500, "broken", "no summaries today"));
    let messages = history(&[100; 30]);
    // Once while it is tried, and once while it is not tried again.
    for _ in 0..2 {
        let (reply, sent) = desk.say(&messages).await;
        // The task stays; it is not what is dropped first.
        let task = numbers(&sent).into_iter().filter(|&number| number < 5).collect::<Vec<_>>();
        assert_eq!(task, [0], "{:?}", sent.contents());
        assert_eq!(numbers(&sent)[1..], (5..30).collect::<Vec<_>>());
        assert_eq!((summary(&sent), edited(&reply, "dropped")), (None, 4));
        assert!(sent.has("earlier turns of this conversation are missing here"));
        assert!(reply.header("x-tidegate-degraded").is_some_and(|why| why.starts_with("summarizer_")));
    }
    // What is within its limit needs no summary.
    let request = desk.body(&history(&[100; 25]));
    let (reply, body) = desk.send("another", &request).await;
    assert_eq!((body, reply.header("x-tidegate-degraded")), (request, None));
}
