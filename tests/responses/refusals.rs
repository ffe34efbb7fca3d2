//! Refusals have OpenAI's error shape.

use super::{HEADERS, RESPONSES, conversation, upstream};
use crate::support::client::{exchange, post};
use crate::support::tidegate::Tidegate;

#[tokio::test]
async fn a_request_over_its_budget_is_refused() {
    let upstream = upstream().await;
    let config = "[context.budget]\nmax_input = 200\nrefuse_at = \"budget\"\n";
    let tidegate = Tidegate::start(config, &upstream).await;
    let reply = exchange(tidegate.address, post(RESPONSES, &HEADERS, conversation(3, 0))).await;
    assert_eq!((reply.status, reply.error_code().as_str()), (422, "context_budget_exceeded"));
}

#[tokio::test]
async fn two_inputs_are_ambiguous() {
    let upstream = upstream().await;
    let tidegate = Tidegate::start("", &upstream).await;
    for twice in [r#"{"model":"m","input":[],"input":[]}"#, r#"{"model":"m","input":"a","input":[]}"#] {
        let reply = exchange(tidegate.address, post(RESPONSES, &HEADERS, twice)).await;
        assert_eq!((reply.status, reply.error_code().as_str()), (400, "ambiguous_request"), "{twice}");
    }
}

/// What cannot be read is the upstream's to refuse.
#[tokio::test]
async fn unreadable_requests_pass_untouched() {
    let upstream = upstream().await;
    let tidegate = Tidegate::start("", &upstream).await;
    for sent in [
        r#"{"model":"m"}"#,
        r#"{"model":"m","input":null}"#,
        r#"{"model":"m","input":[5]}"#,
        r#"{"model":"m","input":[{"type":"function_call","type":"message"}]}"#,
        r#"{"model":"m","input":[{"role":"user","content":"\q"}]}"#,
        r#"{"model":"m","input":"\q"}"#,
    ] {
        let reply = exchange(tidegate.address, post(RESPONSES, &HEADERS, sent)).await;
        assert_eq!((reply.status, reply.header("x-tidegate-degraded")), (200, Some("unreadable")), "{sent}");
        assert_eq!(String::from_utf8(upstream.next_request().await.body).unwrap(), sent);
    }
}
