//! The forwarded request: the client's bytes except for the contents of old observations.

use crate::support::agent::{EVERY_TURN, body, conversation, results, send};
use crate::support::client::{CHAT, exchange, post};
use crate::support::tidegate::Tidegate;
use std::io::Write;
use tidegate_testkit::MockUpstream;

#[tokio::test]
async fn only_results_outside_the_window_are_masked() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start(EVERY_TURN, &upstream).await;
    for turns in 1..7 {
        let messages = conversation(turns);
        let old = results(0..turns.saturating_sub(2));
        let sent = body("gpt-4o", &messages, &[]);
        let (reply, arrived) = send(&tidegate, &upstream, &[], &sent).await;
        assert_eq!(arrived, body("gpt-4o", &messages, &old), "{turns} turns");
        let edits = format!("masked={},folded=0,dropped=0", old.len());
        assert_eq!(reply.header("x-tidegate-edits"), Some(edits.as_str()));
        assert_eq!(reply.header("x-tidegate-trigger"), (turns > 2).then_some("every_turn"), "{turns} turns");
    }
}

#[tokio::test]
async fn the_placeholder_is_configurable() {
    let upstream = MockUpstream::start().await;
    let config = format!("{EVERY_TURN}placeholder = \"\\\"gone\\\"\\n\u{1f30a}\"\n");
    let tidegate = Tidegate::start(&config, &upstream).await;
    let messages = conversation(3);
    let (_, arrived) = send(&tidegate, &upstream, &[], &body("gpt-4o", &messages, &[])).await;
    let mut expected = messages.clone();
    expected[3].content = "\"\\\"gone\\\"\\n\u{1f30a}\"".to_owned();
    assert_eq!(arrived, body("gpt-4o", &expected, &[]));
}

#[tokio::test]
async fn a_retry_forwards_the_same_bytes() {
    let upstream = MockUpstream::start().await;
    let tidegate =
        Tidegate::start("[context.mask]\nkeep = { turns = 1 }\npace = { batch = 2 }\n", &upstream).await;
    for turns in 2..7 {
        let sent = body("gpt-4o", &conversation(turns), &[]);
        let (first, arrived) = send(&tidegate, &upstream, &[], &sent).await;
        for _ in 0..2 {
            let (retry, again) = send(&tidegate, &upstream, &[], &sent).await;
            assert_eq!(again, arrived, "{turns} turns");
            assert_eq!(retry.header("x-tidegate-edits"), first.header("x-tidegate-edits"));
        }
    }
}

/// With cached tokens at a tenth of the price, a rolling window would cost more than it saves. So the default pace only appends to
/// the forwarded request until a move of the frontier pays.
#[tokio::test]
async fn the_default_pace_keeps_the_prefix_until_masking_pays() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("[context.mask]\nkeep = { turns = 2 }\n", &upstream).await;
    let mut moves = 0;
    let mut previous: Option<String> = None;
    for turns in 1..25 {
        let sent = body("gpt-5", &conversation(turns), &[]);
        let (reply, arrived) = send(&tidegate, &upstream, &[], &sent).await;
        let messages = arrived.split_once(" ],\n").unwrap().0.to_owned();
        match reply.header("x-tidegate-trigger") {
            None => assert!(previous.is_none_or(|previous| messages.starts_with(&previous)), "{turns} turns"),
            Some(cause) => {
                assert_eq!(cause, "break_even", "{turns} turns");
                moves += 1;
            }
        }
        previous = Some(messages);
    }
    assert!((2..12).contains(&moves), "{moves} moves in 24 turns");
}

#[tokio::test]
async fn an_edited_compressed_request_is_forwarded_uncompressed() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start(EVERY_TURN, &upstream).await;
    let gzip = |text: &str| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    let headers = [("content-encoding", "gzip")];
    let messages = conversation(4);
    let request = post(CHAT, &headers, gzip(&body("gpt-4o", &messages, &[])));
    assert_eq!(exchange(tidegate.address, request).await.status, 200);
    let arrived = upstream.next_request().await;
    let expected = body("gpt-4o", &messages, &results(0..2));
    assert_eq!(String::from_utf8(arrived.body.clone()).unwrap(), expected);
    assert_eq!(arrived.header("content-encoding"), None);
    assert_eq!(arrived.header("content-length"), Some(expected.len().to_string().as_str()));

    let untouched = gzip(&body("gpt-4o", &conversation(2), &[]));
    exchange(tidegate.address, post(CHAT, &headers, &untouched)).await;
    let arrived = upstream.next_request().await;
    assert_eq!(arrived.header("content-encoding"), Some("gzip"));
    assert_eq!(arrived.body, untouched);
}
