//! Requests with an ambiguous conversation or body are refused.

use crate::support::client::{CHAT, QUESTION, exchange, post, request};
use crate::support::tidegate::Tidegate;
use tidegate_testkit::MockUpstream;

#[tokio::test]
async fn an_invalid_conversation_id_is_refused() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    let too_long = "a".repeat(129);
    for id in ["", "a b", "caf\u{e9}", "{x}", "a,b", "a\tb", &too_long] {
        let reply = exchange(tidegate.address, post(CHAT, &[("x-conversation-id", id)], QUESTION)).await;
        assert_eq!((reply.status, reply.error_code().as_str()), (400, "invalid_conversation_id"), "{id:?}");
    }
    let twice = [("x-conversation-id", "a"), ("x-conversation-id", "a")];
    let reply = exchange(tidegate.address, post(CHAT, &twice, QUESTION)).await;
    assert_eq!((reply.status, reply.error_code().as_str()), (400, "invalid_conversation_id"));
    assert_eq!(upstream.connections(), 0, "nothing reached the upstream");
}

#[tokio::test]
async fn a_valid_conversation_id_is_echoed() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    let longest = "a".repeat(128);
    for id in ["1", "team/a:1_b.C-2", &longest] {
        let reply = exchange(tidegate.address, post(CHAT, &[("x-conversation-id", id)], QUESTION)).await;
        assert_eq!((reply.status, reply.header("x-tidegate-conversation")), (200, Some(id)));
    }
}

#[tokio::test]
async fn the_conversation_header_is_configurable() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("[conversation]\nheader = \"x-session\"\n", &upstream).await;
    let reply = exchange(tidegate.address, post(CHAT, &[("x-session", "s-1")], QUESTION)).await;
    assert_eq!(reply.header("x-tidegate-conversation"), Some("s-1"));
    let reply = exchange(tidegate.address, post(CHAT, &[("x-session", "s 1")], QUESTION)).await;
    assert_eq!(reply.error_code(), "invalid_conversation_id");
}

#[tokio::test]
async fn duplicate_messages_members_are_refused() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    for body in [
        r#"{"messages":[{"role":"user","content":"a"}],"model":"m","messages":[{"role":"user","content":"b"}]}"#,
        r#"{"messages":[],"messages":[]}"#,
        r#"{"m\u0065ssages":[{"role":"user","content":"a"}],"messages":[{"role":"user","content":"b"}]}"#,
    ] {
        let reply = exchange(tidegate.address, post(CHAT, &[], body)).await;
        assert_eq!((reply.status, reply.error_code().as_str()), (400, "ambiguous_request"), "{body}");
    }
    assert_eq!(upstream.connections(), 0);
}

#[tokio::test]
async fn connect_is_refused() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    let reply = exchange(tidegate.address, request("CONNECT", "example.org:443", &[], b"")).await;
    assert_eq!((reply.status, reply.error_code().as_str()), (405, "method_not_allowed"));
    assert_eq!(upstream.connections(), 0);
}
