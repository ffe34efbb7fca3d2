//! What is masked follows the kind of cache that the model's provider has.

use crate::support::agent::{body, conversation, send};
use crate::support::tidegate::Tidegate;
use tidegate_testkit::MockUpstream;

const MARKER: &str = r#","cache_control":{"type":"ephemeral"}"#;

/// How often the frontier moves in twenty turns. The newest result has a breakpoint if `is_marked`.
async fn moves(config: &str, model: &str, is_marked: bool) -> usize {
    let upstream = MockUpstream::start().await;
    let tidegate =
        Tidegate::start(&format!("{config}[context.mask]\nkeep = {{ turns = 2 }}\n"), &upstream).await;
    let mut moves = 0;
    for turns in 1..=20 {
        let mut messages = conversation(turns);
        if let Some(newest) = messages.last_mut().filter(|_| is_marked) {
            newest.content = format!(r#"[{{"type":"text","text":{}{MARKER}}}]"#, newest.content);
        }
        let (reply, arrived) = send(&tidegate, &upstream, &[], &body(model, &messages, &[])).await;
        assert_eq!(arrived.matches(MARKER).count(), usize::from(is_marked), "{turns} turns");
        moves += usize::from(reply.header("x-tidegate-trigger").is_some());
    }
    moves
}

#[tokio::test]
async fn a_claude_without_breakpoints_has_no_cache_to_lose() {
    let claude = "anthropic/claude-sonnet-4.5";
    // The third turn is the first with a result outside the window.
    assert_eq!(moves("", claude, false).await, 18);
    let marked = moves("", claude, true).await;
    assert!((1..8).contains(&marked), "{marked} moves");
    // Caches that need no breakpoints.
    let plain = moves("", "gpt-5", false).await;
    assert!((1..10).contains(&plain), "{plain} moves");
}

#[tokio::test]
async fn the_kind_of_cache_is_configurable() {
    let config = |kind: &str| format!("[models.\"claude-*\"]\ncache = \"{kind}\"\n");
    assert_eq!(moves(&config("none"), "claude-sonnet-4-5", true).await, 18);
    let automatic = moves(&config("automatic"), "claude-sonnet-4-5", false).await;
    assert!((1..8).contains(&automatic), "{automatic} moves");
}
