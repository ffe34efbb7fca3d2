//! The forwarded request: the client's bytes except for the contents of old results.

use super::{HEADERS, MESSAGES, conversation, send, upstream};
use crate::support::agent::EVERY_TURN;
use crate::support::client::{exchange, post};
use crate::support::tidegate::Tidegate;

#[tokio::test]
async fn a_request_that_needs_no_edit_arrives_byte_for_byte() {
    let upstream = upstream().await;
    let tidegate = Tidegate::start("", &upstream).await;
    for path in [MESSAGES, "/proxy/v1/messages", "/anthropic/messages"] {
        let sent = conversation(4, 0);
        let reply = exchange(tidegate.address, post(path, &HEADERS, &sent)).await;
        assert_eq!((reply.status, reply.header("x-tidegate-route")), (200, Some("default")), "{path}");
        assert_eq!(reply.header("x-tidegate-edits"), Some("masked=0,folded=0,dropped=0"));
        let arrived = upstream.next_request().await;
        assert_eq!(String::from_utf8(arrived.body.clone()).unwrap(), sent);
        for (name, value) in HEADERS {
            assert_eq!(arrived.header(name), Some(value));
        }
    }
}

#[tokio::test]
async fn only_the_contents_of_old_results_are_masked() {
    let upstream = upstream().await;
    let tidegate = Tidegate::start(EVERY_TURN, &upstream).await;
    for steps in 1..7usize {
        let old = steps.saturating_sub(2);
        let (reply, arrived) = send(&tidegate, &upstream, &conversation(steps, 0)).await;
        assert_eq!(arrived, conversation(steps, old), "{steps} steps");
        let edits = format!("masked={old},folded=0,dropped=0");
        assert_eq!(reply.header("x-tidegate-edits"), Some(edits.as_str()));
    }
}

/// Clients move their cache markers at every turn, and turn a text into a block for it.
#[tokio::test]
async fn a_marker_that_moves_does_not_change_the_conversation() {
    let upstream = upstream().await;
    let tidegate =
        Tidegate::start("[context.mask]\nkeep = { turns = 1 }\npace = { batch = 3 }\n", &upstream).await;
    let mut masked = Vec::new();
    for steps in 1..9 {
        let sent = conversation(steps, 0);
        let marker = "\"cache_control\":{\"type\":\"ephemeral\"},";
        let last = sent.rfind(marker).unwrap();
        let sent = sent[..last].replace(marker, "") + &sent[last..];
        let (reply, _) = send(&tidegate, &upstream, &sent).await;
        let edits = reply.header("x-tidegate-edits").unwrap().to_owned();
        masked.push(edits.trim_start_matches("masked=").split(',').next().unwrap().parse::<usize>().unwrap());
    }
    assert!(masked.is_sorted() && masked.last() > Some(&0), "{masked:?}");
}

#[tokio::test]
async fn a_request_can_ask_for_the_longer_window() {
    let upstream = upstream().await;
    let tidegate = Tidegate::start("[upstreams.default]\nidle_timeout = \"20s\"\n", &upstream).await;
    let window = async |beta: &str| {
        let headers = [("x-api-key", "sk-ant-1"), ("anthropic-beta", beta)];
        let reply = exchange(tidegate.address, post(MESSAGES, &headers, conversation(1, 0))).await;
        let budget: u64 = reply.header("x-tidegate-budget").unwrap().parse().unwrap();
        // Less the answer and the reserve.
        (budget + 1_000) * 20 / 19
    };
    assert_eq!(window("fine-grained-tool-streaming-2025-05-14").await, 200_000);
    assert_eq!(window("fine-grained-tool-streaming-2025-05-14, context-1m-2025-08-07").await, 1_000_000);
    assert_eq!(window("prompt-caching-2024-07-31").await, 200_000);
}

/// Claude Code puts a block in front of its instructions that is another one in every request.
#[tokio::test]
async fn a_changing_attribution_does_not_look_like_a_new_prompt() {
    let upstream = upstream().await;
    let tidegate = Tidegate::start("[context.mask]\nkeep = { turns = 2 }\n", &upstream).await;
    let moves = async |attributed: bool| {
        let mut moves = 0;
        for steps in 1..=20 {
            let mut sent =
                conversation(steps, 0).replace("Fix the bug", &format!("Fix the bug ({attributed})"));
            if attributed {
                let block = format!(
                    r#""system":[{{"type":"text","text":"x-anthropic-billing-header: cc_version=2.1.201.a3f; cch={steps:05x};"}}, "#
                );
                sent = sent.replace("\"system\":[", &block);
            }
            let (reply, _) = send(&tidegate, &upstream, &sent).await;
            moves += usize::from(reply.header("x-tidegate-trigger").is_some());
        }
        moves
    };
    let plain = moves(false).await;
    assert!((1..8).contains(&plain), "{plain} moves");
    assert_eq!(moves(true).await, plain);
}

#[tokio::test]
async fn other_endpoints_pass_untouched() {
    let upstream = upstream().await;
    let tidegate = Tidegate::start(EVERY_TURN, &upstream).await;
    for path in ["/v1/messages/count_tokens", "/v1/messages/batches", "/v1/threads/t/messages"] {
        let sent = conversation(6, 0);
        let reply = exchange(tidegate.address, post(path, &HEADERS, &sent)).await;
        assert_eq!((reply.status, reply.header("x-tidegate-edits")), (200, None), "{path}");
        assert_eq!(String::from_utf8(upstream.next_request().await.body).unwrap(), sent);
    }
}
