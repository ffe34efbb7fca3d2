//! What a client can override in the policy if the route allows it, and observe mode.

use crate::support::agent::{EVERY_TURN, body, conversation, results, send};
use crate::support::client::{CHAT, exchange, post};
use crate::support::reply::figure;
use crate::support::tidegate::Tidegate;
use tidegate_testkit::MockUpstream;

#[tokio::test]
async fn a_client_can_bypass_the_policy() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start(EVERY_TURN, &upstream).await;
    let sent = body("gpt-4o", &conversation(4), &[]);
    for header in
        [("x-tidegate-bypass", "1"), ("x-tidegate-bypass", "true"), ("x-tidegate-strategy", "passthrough")]
    {
        let (reply, arrived) = send(&tidegate, &upstream, &[header], &sent).await;
        assert_eq!(arrived, sent, "{header:?}");
        assert_eq!(reply.header("x-tidegate-strategy"), Some("passthrough"));
    }
    let masked = body("gpt-4o", &conversation(4), &results(0..2));
    for header in
        [("x-tidegate-bypass", "0"), ("x-tidegate-bypass", "false"), ("x-tidegate-strategy", "masking")]
    {
        let (reply, arrived) = send(&tidegate, &upstream, &[header], &sent).await;
        assert_eq!(arrived, masked, "{header:?}");
        assert_eq!(reply.header("x-tidegate-strategy"), Some("masking"));
    }
}

#[tokio::test]
async fn a_client_can_ask_for_masking() {
    let upstream = MockUpstream::start().await;
    let config = format!("[context]\nstrategy = \"passthrough\"\n{EVERY_TURN}");
    let tidegate = Tidegate::start(&config, &upstream).await;
    let sent = body("gpt-4o", &conversation(4), &[]);
    assert_eq!(send(&tidegate, &upstream, &[], &sent).await.1, sent);
    let (_, arrived) = send(&tidegate, &upstream, &[("x-tidegate-strategy", "masking")], &sent).await;
    assert_eq!(arrived, body("gpt-4o", &conversation(4), &results(0..2)));
}

#[tokio::test]
async fn an_unknown_strategy_is_refused() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    for name in ["rolling", "Masking", ""] {
        let request = post(CHAT, &[("x-tidegate-strategy", name)], body("gpt-4o", &conversation(1), &[]));
        let reply = exchange(tidegate.address, request).await;
        assert_eq!((reply.status, reply.error_code().as_str()), (400, "invalid_strategy"), "{name}");
    }
    assert_eq!(upstream.connections(), 0);
}

#[tokio::test]
async fn headers_that_the_route_does_not_allow_are_ignored() {
    let upstream = MockUpstream::start().await;
    let config = format!("[context]\nallow_headers = []\n{EVERY_TURN}");
    let tidegate = Tidegate::start(&config, &upstream).await;
    let masked = body("gpt-4o", &conversation(4), &results(0..2));
    for header in [
        ("x-tidegate-bypass", "1"),
        ("x-tidegate-strategy", "passthrough"),
        ("x-tidegate-strategy", "nonsense"),
    ] {
        let (_, arrived) =
            send(&tidegate, &upstream, &[header], &body("gpt-4o", &conversation(4), &[])).await;
        assert_eq!(arrived, masked, "{header:?}");
    }
}

#[tokio::test]
async fn observe_mode_reports_edits_without_making_them() {
    let upstream = MockUpstream::start().await;
    let config = format!("[context]\nobserve = true\n{EVERY_TURN}");
    let tidegate = Tidegate::start(&config, &upstream).await;
    let sent = body("gpt-4o", &conversation(5), &[]);
    let (reply, arrived) = send(&tidegate, &upstream, &[], &sent).await;
    assert_eq!(arrived, sent);
    assert_eq!(reply.header("x-tidegate-observe"), Some("1"));
    assert_eq!(reply.header("x-tidegate-would-refuse"), None);
    assert_eq!(reply.header("x-tidegate-edits"), Some("masked=3,folded=0,dropped=0"));
    assert!(figure(&reply, "x-tidegate-tokens-after") < figure(&reply, "x-tidegate-tokens-before"));
}

#[tokio::test]
async fn observe_mode_refuses_nothing() {
    let upstream = MockUpstream::start().await;
    let config = "[context]\nobserve = true\n[context.budget]\nmax_input = 10\n";
    let tidegate = Tidegate::start(config, &upstream).await;
    let sent = body("gpt-4o", &conversation(2), &[]);
    let (reply, arrived) = send(&tidegate, &upstream, &[], &sent).await;
    assert_eq!(arrived, sent);
    assert_eq!(reply.header("x-tidegate-would-refuse"), Some("context_budget_exceeded"));
    assert!(figure(&reply, "x-tidegate-tokens-after") > figure(&reply, "x-tidegate-budget"));
}
