//! Sections 5 and 10: a summarizer that fails loses nothing.

use super::turns::{INSTRUCTION, answer, body, exchanged, headers, question, recent, send, turn, turns};
use crate::conformance::scene::{Scene, Sent, completion, message};
use crate::conformance::summarizer::{Summarizer, with_fact};
use crate::support::reply::{edited, figure};
use tidegate_testkit::RedisServer;

const MARKER: &str = "earlier turns of this conversation are missing here";

/// Too little for any summary, so that the built-in summarizer fails, too.
const NO_ROOM: &str = "max_tokens = 20";

/// No more than ten messages are sent raw, although the summarizer fails and although they are short.
#[tokio::test]
async fn the_built_in_summarizer_stands_in() {
    let summarizer = Summarizer::broken().await;
    let scene = Scene::start("rolling-memory", &summarizer.settings("")).await;
    for number in 1..=20 {
        let (reply, sent) = turn(&scene, "c", number).await;
        // The new question is not part of the history yet.
        assert!(recent(&sent).len() <= 11, "turn {number}: {:?}", sent.contents());
        let is_folded = sent.summary().is_some();
        assert_eq!(is_folded, number > 6, "turn {number}: {:?}", reply.headers);
    }
}

/// While everything fits, all messages are sent: more than ten are better than a gap.
#[tokio::test]
async fn messages_that_cannot_be_folded_are_kept_while_they_fit() {
    let summarizer = Summarizer::broken().await;
    let scene = Scene::start("rolling-memory", &summarizer.settings(NO_ROOM)).await;
    let (reply, sent) = turns(&scene, "c", 1..=7).await;
    assert_eq!(reply.header("x-tidegate-degraded"), Some("summarizer_server_error"));
    assert_eq!(recent(&sent), [exchanged(1..=6), vec![question(7)]].concat());
    assert!(sent.summary().is_none() && !sent.has(MARKER));
}

/// Otherwise a marker counts the dropped messages, and a later summary covers them.
#[tokio::test]
async fn dropped_messages_are_marked_and_folded_later() {
    let redis = RedisServer::start().await;
    let (broken, good) = (Summarizer::broken().await, Summarizer::start(&with_fact("All is known.")).await);
    let tight = "[models.\"tight\"]\nwindow = 2155\nencoding = \"o200k_base\"\n";
    let start = async |summarizer: &Summarizer, fold: &str| {
        let settings = summarizer.settings(fold) + tight;
        Scene::start_with("rolling-memory", &settings, |setup| setup.env("TIDEGATE_STORE", &redis.url()))
            .await
    };
    let one = start(&broken, NO_ROOM).await.model("tight");
    // 2,155 − 431 − 1,024.
    let (reply, sent) = {
        let mut last = turn(&one, "c", 1).await;
        let mut number = 1;
        while !last.1.has(MARKER) {
            number += 1;
            assert!(number < 30, "everything fits");
            last = turn(&one, "c", number).await;
        }
        last
    };
    assert_eq!(figure(&reply, "x-tidegate-budget"), 700);
    let missing = edited(&reply, "dropped");
    let at = sent.contents().iter().position(|text| text.contains(MARKER)).unwrap();
    // Instructions and the first request stay before the marker.
    assert_eq!((sent.contents()[0], sent.contents()[1], at), (INSTRUCTION, question(1).as_str(), 2));
    assert!(missing > 0 && reply.header("x-tidegate-degraded").is_some());
    let last = sent.contents().last().unwrap().to_string();

    let other = start(&good, "").await.model("tight");
    other.upstream.answer(completion(&answer(50)));
    let asked = body("tight", &[message("user", &question(50))]);
    let reply = send(other.tidegate.address, &headers("c"), &asked).await;
    assert_eq!((reply.status, reply.header("x-tidegate-degraded")), (200, None));
    let sent = Sent(other.upstream.next_request().await.json());
    assert!(sent.summary().is_some() && !sent.has(MARKER));
    // The summarizer read the dropped messages, from the first answer on.
    let (_, material) = &good.asked()[0];
    assert!(material.contains(answer(1).trim_end()) && material.contains(question(2).trim_end()));
    assert_eq!(edited(&reply, "dropped"), 0);
    assert!(sent.has(last.as_str()), "the last question is not among the recent messages");
}
