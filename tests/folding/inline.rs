//! Inline summaries, which the request waits for.

use super::forwarded::Forwarded;
use super::scene::{FIRST_FOLD, assert_fits, degraded, edits, send, start, summarization, trigger, upstream};
use crate::support::chat::{body, chat, question, user};
use crate::support::reply::{edited, figure};
use tidegate_testkit::MockUpstream;

const INLINE: &str = "mode = \"inline\"\n";

#[tokio::test]
async fn at_the_trigger_a_summary_replaces_the_older_messages() {
    let upstream = upstream().await;
    let tidegate = start(&summarization(INLINE), &upstream).await;
    let three = chat(3);
    let (reply, before) = send(&tidegate, &upstream, "a", &three).await;
    assert_eq!((before.body, edits(&reply)), (body(&three), "masked=0,folded=0,dropped=0"));
    assert_eq!((trigger(&reply), degraded(&reply)), (None, None));

    let four = chat(4);
    let (reply, forwarded) = send(&tidegate, &upstream, "a", &four).await;
    let summary = forwarded.summary().expect("a summary");
    assert_eq!((edits(&reply), trigger(&reply), degraded(&reply)), (FIRST_FOLD, Some("turns"), None));
    assert_eq!((summary.at, summary.role.as_str(), summary.covered), (1, "user", 9));
    assert_eq!(forwarded.messages[0], four[0]);
    assert_eq!(forwarded.messages[2..], four[question(2)..]);
    assert_eq!(forwarded.frame(), Forwarded::new(body(&four)).frame());
    assert!(summary.text.contains("bollard-1"), "the decision is not in the summary: {}", summary.text);
    assert!(figure(&reply, "x-tidegate-tokens-after") < figure(&reply, "x-tidegate-tokens-before"));
    assert_fits(&reply);
}

#[tokio::test]
async fn between_folds_each_request_extends_the_previous_one() {
    let upstream = upstream().await;
    let tidegate = start(&summarization(INLINE), &upstream).await;
    let mut before: Option<Forwarded> = None;
    let mut folds = Vec::new();
    for questions in 1..=12 {
        let messages = chat(questions);
        let (reply, forwarded) = send(&tidegate, &upstream, "a", &messages).await;
        assert_eq!(degraded(&reply), None);
        let is_new = forwarded.summary().is_some()
            && forwarded.summary() != before.as_ref().and_then(Forwarded::summary);
        if is_new {
            folds.push((questions, edited(&reply, "folded")));
        } else if let Some(before) = &before {
            assert!(forwarded.body.starts_with(before.prefix()), "{}\n{}", before.body, forwarded.body);
            assert_eq!(trigger(&reply), None);
        }
        before = Some(forwarded);
    }
    // Turns are counted from the last summary, whatever that one kept.
    let expected: Vec<(usize, usize)> = (4..=12).step_by(4).map(|at| (at, question(at - 2) - 1)).collect();
    assert_eq!(folds, expected);
}

#[tokio::test]
async fn a_retry_forwards_the_same_bytes() {
    let upstream = upstream().await;
    let tidegate = start(&summarization(INLINE), &upstream).await;
    let mut sent = Vec::new();
    for questions in 1..=6 {
        let messages = chat(questions);
        let (_, first) = send(&tidegate, &upstream, "a", &messages).await;
        let (_, again) = send(&tidegate, &upstream, "a", &messages).await;
        assert_eq!(first.body, again.body);
        sent.push((messages, first));
    }
    // So does a late retry, when a longer summary exists.
    for (messages, first) in sent {
        let (_, late) = send(&tidegate, &upstream, "a", &messages).await;
        assert_eq!(first.body, late.body);
    }
}

#[tokio::test]
async fn two_processes_forward_the_same_bytes() {
    let upstream = upstream().await;
    let settings = summarization(INLINE);
    let (one, other) = (start(&settings, &upstream).await, start(&settings, &upstream).await);
    for questions in 1..=8 {
        let messages = chat(questions);
        let (_, first) = send(&one, &upstream, "a", &messages).await;
        let (_, second) = send(&other, &upstream, "a", &messages).await;
        assert_eq!(first.body, second.body);
    }
}

#[tokio::test]
async fn another_branch_does_not_get_the_summary() {
    let upstream = upstream().await;
    let tidegate = start(&summarization(INLINE), &upstream).await;
    let (reply, _) = send(&tidegate, &upstream, "a", &chat(4)).await;
    assert_eq!(edits(&reply), FIRST_FOLD);
    // The first question is edited, and the conversation continues from its third.
    let mut branch = chat(3);
    branch[1] = user("Question 0, asked otherwise.");
    let (reply, forwarded) = send(&tidegate, &upstream, "a", &branch).await;
    assert_eq!((edited(&reply, "folded"), forwarded.body), (0, body(&branch)));
}

#[tokio::test]
async fn hybrid_masks_first_and_folds_at_the_trigger() {
    let upstream = upstream().await;
    let settings = summarization(INLINE).replace("\"summarization\"", "\"hybrid\"")
        + "[context.mask]\nkeep = { turns = 1 }\npace = \"every_turn\"\n";
    let tidegate = start(&settings, &upstream).await;
    let (reply, forwarded) = send(&tidegate, &upstream, "a", &chat(3)).await;
    assert_eq!(edits(&reply), "masked=3,folded=0,dropped=0");
    assert_eq!(forwarded.messages.len(), chat(3).len());
    let (reply, forwarded) = send(&tidegate, &upstream, "a", &chat(4)).await;
    assert_eq!(edits(&reply), "masked=1,folded=9,dropped=0");
    assert!(forwarded.messages[4].contains("[OMITTED_OBSERVATION"), "{}", forwarded.body);
    // The summary is made from the client's messages, so masked content is in it as well.
    assert!(forwarded.summary().unwrap().text.contains("bollard-0"));
    assert_only_masked(&forwarded, &chat(4), &upstream);
}

/// Asserts that each message after the summary is the client's, or masked.
fn assert_only_masked(forwarded: &Forwarded, messages: &[String], upstream: &MockUpstream) {
    assert!(upstream.requests().len() >= 2);
    for (sent, message) in forwarded.messages[2..].iter().zip(&messages[question(2)..]) {
        let masked = super::property::masked(message);
        assert!(sent == message || *sent == masked, "{sent} is neither {message} nor {masked}");
    }
}
