//! Section 5: up to six plus four messages accumulate, and every message is folded before it is dropped.

use super::turns::{INSTRUCTION, answer, exchanged, question, recent, turn, turns};
use crate::conformance::scene::{Scene, completion, message};
use crate::conformance::summarizer::{Summarizer, with_fact};
use crate::support::reply::edited;

#[tokio::test]
async fn ten_recent_messages_do_not_overflow() {
    let scene = Scene::start("rolling-memory", "").await;
    for number in 1..=6 {
        // More than six messages alone do not trigger a summary.
        let (reply, sent) = turn(&scene, "c", number).await;
        assert_eq!((recent(&sent).len(), edited(&reply, "folded")), (2 * number - 1, 0));
        assert_eq!((sent.summary(), reply.header("x-tidegate-trigger")), (None, None));
    }
}

/// Two user messages in the first turn make eleven messages at the sixth.
#[tokio::test]
async fn at_eleven_messages_all_but_six_are_folded() {
    let summarizer = Summarizer::start(&with_fact("The piers are short.")).await;
    let scene = Scene::start("rolling-memory", &summarizer.settings("")).await;
    scene.upstream.answer(completion(&answer(1)));
    let opening =
        [message("system", INSTRUCTION), message("user", "Hello there."), message("user", &question(1))];
    scene.send("c", &opening).await;
    turns(&scene, "c", 2..=5).await;
    assert!(summarizer.asked().is_empty(), "a summary was made too early");
    let (reply, sent) = turn(&scene, "c", 6).await;
    assert_eq!(reply.header("x-tidegate-trigger"), Some("messages"));
    assert_eq!(edited(&reply, "folded"), 5);
    let kept: Vec<String> = [exchanged(3..=5), vec![question(6)]].concat();
    assert_eq!(recent(&sent), kept);
    assert!(sent.summary().unwrap()["content"].as_str().unwrap().contains("Record of 5 earlier messages"));
    // The summarizer read the five folded messages, each once and in order, and no kept one.
    let asked = summarizer.asked();
    let (_, material) = &asked[0];
    let gone = ["Hello there.".to_owned(), question(1), answer(1), question(2), answer(2)];
    let places: Vec<usize> = gone.iter().map(|text| material.find(text.trim_end()).expect(text)).collect();
    assert!(places.is_sorted(), "{material}");
    assert_eq!((asked.len(), material.matches("<folded_message ").count()), (1, 5));
    assert!(kept.iter().all(|text| !material.contains(text.trim_end())));
}

/// At every turn, each message is in the context or was read by the summarizer.
#[tokio::test]
async fn every_message_is_folded_before_it_is_dropped() {
    let summarizer = Summarizer::start(&with_fact("The piers are short.")).await;
    let scene = Scene::start("rolling-memory", &summarizer.settings("")).await;
    for number in 1..=20 {
        let (_, sent) = turn(&scene, "c", number).await;
        let recent = recent(&sent);
        assert!(recent.len() <= 10 + 1, "turn {number}: {} messages", recent.len());
        let folded: Vec<String> = summarizer.asked().into_iter().map(|(_, material)| material).collect();
        let said = exchanged(1..=number - 1).into_iter().chain([question(number)]);
        for text in said {
            let is_folded = folded.iter().any(|material| material.contains(text.trim_end()));
            assert!(is_folded != recent.contains(&text.as_str()), "turn {number}: {text}");
        }
    }
    assert_eq!(summarizer.asked().len(), 5, "not exactly at turns 7, 10, 13, 16 and 19");
}

/// Ten is a limit, also for messages that are shorter than any summary of them.
#[tokio::test]
async fn short_messages_overflow_like_long_ones() {
    let scene = Scene::start("rolling-memory", "").await;
    scene.upstream.answer(completion("No."));
    for number in 1..=22 {
        let (_, sent) = scene.send("c", &[message("user", &format!("So, {number}?"))]).await;
        assert!(recent(&sent).len() <= 10 + 1, "turn {number}: {:?}", sent.contents());
    }
}
