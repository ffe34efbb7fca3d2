//! Requests that ask the provider to manage their context are left to it.

use super::{conversation, send, upstream};
use crate::support::agent::EVERY_TURN;
use crate::support::client::{CHAT, exchange, post};
use crate::support::tidegate::Tidegate;

/// A conversation with 6 steps that asks for what the provider offers.
fn managed_by_the_provider() -> [String; 4] {
    let plain = conversation(6, 0);
    let with = |member: &str| plain.replacen('{', &format!("{{ {member},"), 1);
    let summary = r#"[{"type":"compaction","content":"The bug was found."},{"type":"thinking","#;
    [
        with(r#""context_management":{"edits":[{"type":"clear_tool_uses_20250919"}]}"#),
        with(r#""context_management":{"edits":[{"type":"compact_20260112"}]}"#),
        with(r#""compaction":{"type":"summarize"},"context_management":{"edits":[]}"#),
        plain.replacen(r#"[{"type":"thinking","#, summary, 1),
    ]
}

#[tokio::test]
async fn nothing_is_edited_where_the_provider_was_asked_to() {
    let upstream = upstream().await;
    for settings in [
        EVERY_TURN,
        "[context]\nstrategy = \"window\"\n[context.budget]\nmax_input = 3000\nrefuse_at = \"budget\"\n[context.window]\nhead_min = 1\ntail_min = 1\n",
        "[context]\nstrategy = \"summarization\"\n[context.fold]\nmode = \"inline\"\nwhen = { user_turns = 1 }\nkeep = { turns = 1 }\n",
    ] {
        let tidegate = Tidegate::start(settings, &upstream).await;
        for sent in managed_by_the_provider() {
            let (reply, arrived) = send(&tidegate, &upstream, &sent).await;
            assert_eq!(reply.header("x-tidegate-edits"), Some("native"), "{settings}");
            assert_eq!(arrived, sent);
        }
        let (reply, arrived) = send(&tidegate, &upstream, &conversation(6, 0)).await;
        assert_ne!(reply.header("x-tidegate-edits"), Some("native"));
        assert_ne!(arrived, conversation(6, 0), "{settings}");
    }
}

#[tokio::test]
async fn the_file_can_have_them_managed_all_the_same() {
    let upstream = upstream().await;
    let tidegate = Tidegate::start(&format!("[context]\nnative = \"ignore\"\n{EVERY_TURN}"), &upstream).await;
    for sent in managed_by_the_provider() {
        let (reply, arrived) = send(&tidegate, &upstream, &sent).await;
        assert_eq!(reply.header("x-tidegate-edits"), Some("masked=4,folded=0,dropped=0"));
        assert!(arrived.len() < sent.len());
    }
}

/// The provider reads nothing before what it has compacted: a summary there would be lost, and what was compacted with it.
#[tokio::test]
async fn what_the_provider_has_compacted_is_never_folded() {
    let upstream = upstream().await;
    let [.., compacted] = managed_by_the_provider();
    for (strategy, edits) in [
        ("hybrid", "masked=4,folded=0,dropped=0"),
        ("summarization", "masked=0,folded=0,dropped=0"),
        ("window", "masked=0,folded=0,dropped=0"),
    ] {
        let settings = format!(
            "[context]\nnative = \"ignore\"\nstrategy = \"{strategy}\"\n[context.fold]\nmode = \"inline\"\nwhen = {{ user_turns = 1 }}\n\
             keep = {{ turns = 1 }}\n[context.window]\nhead_min = 1\ntail_min = 1\nhead_max = 1\ntail_max = 1\n\
             [context.budget]\nmax_input = 3000\n{EVERY_TURN}"
        );
        let tidegate = Tidegate::start(&settings, &upstream).await;
        let (reply, arrived) = send(&tidegate, &upstream, &compacted).await;
        assert_eq!(reply.header("x-tidegate-edits"), Some(edits), "{strategy}");
        assert!(arrived.contains(r#"{"type":"compaction","content":"The bug was found."}"#), "{strategy}");
    }
}

/// What asks for nothing is like nothing, and what is only said is no request.
#[tokio::test]
async fn only_a_request_to_the_provider_counts() {
    let upstream = upstream().await;
    let tidegate = Tidegate::start(EVERY_TURN, &upstream).await;
    let plain = conversation(6, 0);
    let thinking = r#"{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]}"#;
    for sent in [
        plain.replacen('{', r#"{ "context_management":null,"compaction":null,"#, 1),
        plain.replacen('{', &format!("{{ \"context_management\":{thinking},"), 1),
        plain.replacen("Fix the bug", r#"Fix \"context_management\" and {\"type\":\"compaction\"}"#, 1),
    ] {
        let (reply, _) = send(&tidegate, &upstream, &sent).await;
        assert_eq!(reply.header("x-tidegate-edits"), Some("masked=4,folded=0,dropped=0"), "{sent}");
    }
    let chat = r#"{"model":"gpt-4o","context_management":[{"type":"compaction"}],"messages":[{"role":"user","content":"hi"}]}"#;
    let reply = exchange(tidegate.address, post(CHAT, &[], chat)).await;
    assert_eq!(reply.header("x-tidegate-edits"), Some("native"));
}
