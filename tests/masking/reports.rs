//! The response headers that report the edits.

use crate::support::agent::{EVERY_TURN, body, conversation, send};
use crate::support::reply::figure;
use crate::support::tidegate::Tidegate;
use tidegate_testkit::{Answer, MockUpstream};

#[tokio::test]
async fn the_headers_report_the_whole_plan() {
    let upstream = MockUpstream::start().await;
    let config = format!("[[routes]]\nname = \"agents\"\n[[routes]]\nname = \"rest\"\n{EVERY_TURN}");
    let tidegate = Tidegate::start(&config, &upstream).await;
    let sent = body("gpt-4o", &conversation(4), &[]);
    let (reply, _) = send(&tidegate, &upstream, &[("x-conversation-id", "c-1")], &sent).await;
    assert_eq!(reply.header("x-tidegate-conversation"), Some("c-1"));
    assert_eq!(reply.header("x-tidegate-route"), Some("agents"));
    assert_eq!(reply.header("x-tidegate-strategy"), Some("masking"));
    assert_eq!(reply.header("x-tidegate-edits"), Some("masked=2,folded=0,dropped=0"));
    assert_eq!(reply.header("x-tidegate-trigger"), Some("every_turn"));
    // 128,000 minus 2,048 for the answer and a twentieth for overhead.
    assert_eq!(figure(&reply, "x-tidegate-budget"), 128_000 - 2_048 - 6_400);
    let (before, after) =
        (figure(&reply, "x-tidegate-tokens-before"), figure(&reply, "x-tidegate-tokens-after"));
    assert!(before > after + 2 * 150 && after > 2 * 150, "{before} {after}");
    assert!(figure(&reply, "x-tidegate-overhead-us") < 60_000_000);
    assert_eq!(reply.header("x-tidegate-degraded"), None);
    assert!(reply.header("x-request-id").is_some());
    for (name, _) in &reply.headers {
        assert_eq!(reply.headers_named(name).len(), 1, "{name} twice");
    }
}

/// The forwarded body, sent again as a new request, has as many tokens as the plan reported.
#[tokio::test]
async fn tokens_after_is_the_size_of_the_forwarded_request() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start(EVERY_TURN, &upstream).await;
    let sent = body("gpt-4o", &conversation(6), &[]);
    let (reply, arrived) = send(&tidegate, &upstream, &[("x-conversation-id", "a")], &sent).await;
    let (again, _) = send(&tidegate, &upstream, &[("x-conversation-id", "b")], &arrived).await;
    assert_eq!(figure(&again, "x-tidegate-tokens-before"), figure(&reply, "x-tidegate-tokens-after"));
    assert_eq!(again.header("x-tidegate-edits"), Some("masked=0,folded=0,dropped=0"));
}

#[tokio::test]
async fn an_upstream_cannot_set_tidegates_headers() {
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::json(200, "{}").header("x-tidegate-edits", "masked=999,folded=0,dropped=0"));
    let tidegate = Tidegate::start(EVERY_TURN, &upstream).await;
    let (reply, _) = send(&tidegate, &upstream, &[], &body("gpt-4o", &conversation(3), &[])).await;
    assert_eq!(reply.headers_named("x-tidegate-edits"), ["masked=1,folded=0,dropped=0"]);
}
