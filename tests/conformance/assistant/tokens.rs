//! "Optional Tokenizer Mode": the same limits in tokens.

use super::harness::{Assistant, CONVERSATION, SCRIPTED, history, memory, numbers, words};
use crate::support::reply::figure;

const SIZES: [usize; 4] = [30, 30, 30, 30];

/// The tokens of the history, measured under limits that do not apply.
async fn tokens_of_history() -> u64 {
    let assistant = Assistant::start("").await;
    let before =
        async |sizes: &[usize]| figure(&assistant.send(&history(sizes)).await.0, "x-tidegate-tokens-before");
    before(&SIZES).await - before(&[]).await
}

#[tokio::test]
async fn a_limit_in_tokens_is_exact() {
    let tokens = tokens_of_history().await;
    assert!(tokens > 120, "{tokens}");
    for (limit, kept) in [(tokens, vec![0, 1, 2, 3]), (tokens - 1, vec![1, 2, 3])] {
        let settings = format!(
            "unit = \"tokens\"\n{SCRIPTED}[context.blocks]\nhistory_max = {limit}\ntotal_max = 4500\n"
        );
        let assistant = Assistant::start(&settings).await;
        let request = assistant.body(&history(&SIZES));
        let (_, body) = assistant.send_body(CONVERSATION, &request).await;
        let (_, sent) = assistant.send(&history(&SIZES)).await;
        assert_eq!(numbers(&sent), kept, "{limit}");
        assert_eq!(body == request, kept.len() == 4);
    }
}

/// 2,000 words are within the limit in words but not in tokens, because rare words have several tokens.
#[tokio::test]
async fn words_and_tokens_give_different_limits() {
    let mut messages = history(&[400; 5]);
    for message in &mut messages {
        let text = message["content"].as_str().unwrap().replace("word", "antidisestablishmentarianism");
        message["content"] = text.into();
    }
    for (unit, kept) in [("words", 5), ("tokens", 2)] {
        let assistant = Assistant::start(&format!("unit = \"{unit}\"\n{SCRIPTED}")).await;
        assert_eq!(numbers(&assistant.send(&messages).await.1).len(), kept, "{unit}");
    }
}

#[tokio::test]
async fn memory_is_cut_after_the_last_word_that_fits() {
    let assistant = Assistant::with_memory("unit = \"tokens\"\n").await;
    let text = words("word", 300);
    for pinned in [text.clone(), format!("{text} word")] {
        assistant.pin(Some(&pinned)).await;
        let (_, sent) = assistant.send(&history(&[10, 10])).await;
        assert_eq!(memory(&sent), Some(text.as_str()));
    }
    let blocks = assistant.blocks(3).await;
    assert_eq!((&blocks["memory_before"], &blocks["memory_after"]), (&301.into(), &300.into()), "{blocks}");
    assert_eq!(blocks["fell_back_to_words"], false);
}
