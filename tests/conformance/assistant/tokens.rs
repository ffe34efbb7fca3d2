//! "Optional Tokenizer Mode": the same limits in tokens.

use super::desk::{Desk, TALK, TOLD, history, notes, numbers, words};
use crate::support::reply::figure;

const SIZES: [usize; 4] = [30, 30, 30, 30];

/// What the history costs, as the profile without limits that matter counts it.
async fn tokens_of_history() -> u64 {
    let desk = Desk::start("").await;
    let before =
        async |sizes: &[usize]| figure(&desk.say(&history(sizes)).await.0, "x-tidegate-tokens-before");
    before(&SIZES).await - before(&[]).await
}

#[tokio::test]
async fn a_limit_in_tokens_is_exact() {
    let tokens = tokens_of_history().await;
    assert!(tokens > 120, "{tokens}: a word is a token, and each message has some of its own");
    for (limit, kept) in [(tokens, vec![0, 1, 2, 3]), (tokens - 1, vec![1, 2, 3])] {
        let settings =
            format!("unit = \"tokens\"\n{TOLD}[context.blocks]\nhistory_max = {limit}\ntotal_max = 4500\n");
        let desk = Desk::start(&settings).await;
        let request = desk.body(&history(&SIZES));
        let (_, body) = desk.send(TALK, &request).await;
        let (_, sent) = desk.say(&history(&SIZES)).await;
        assert_eq!(numbers(&sent), kept, "{limit}");
        assert_eq!(body == request, kept.len() == 4);
    }
}

/// The same 2,000 words are within the limit in words and not in tokens, where every message and every odd word costs more.
#[tokio::test]
async fn words_and_tokens_give_different_limits() {
    let mut messages = history(&[400; 5]);
    for message in &mut messages {
        let text = message["content"].as_str().unwrap().replace("word", "antidisestablishmentarianism");
        message["content"] = text.into();
    }
    for (unit, kept) in [("words", 5), ("tokens", 2)] {
        let desk = Desk::start(&format!("unit = \"{unit}\"\n{TOLD}")).await;
        assert_eq!(numbers(&desk.say(&messages).await.1).len(), kept, "{unit}");
    }
}

#[tokio::test]
async fn memory_is_cut_after_the_last_word_that_fits() {
    let desk = Desk::with_notes("unit = \"tokens\"\n").await;
    let text = words("word", 300);
    for pinned in [text.clone(), format!("{text} word")] {
        desk.pin(Some(&pinned)).await;
        let (_, sent) = desk.say(&history(&[10, 10])).await;
        assert_eq!(notes(&sent), Some(text.as_str()));
    }
    let blocks = desk.blocks(3).await;
    assert_eq!((&blocks["memory_before"], &blocks["memory_after"]), (&301.into(), &300.into()), "{blocks}");
    assert_eq!(blocks["fell_back_to_words"], false);
}
