//! Refusals have Anthropic's error shape, with the same statuses.

use super::{HEADERS, MESSAGES, conversation, upstream};
use crate::support::client::{exchange, post};
use crate::support::reply::Reply;
use crate::support::tidegate::Tidegate;
use serde_json::Value;

fn error(reply: &Reply) -> (u16, String, String) {
    let body: Value = serde_json::from_str(&reply.text()).unwrap();
    assert_eq!(body["type"], "error");
    assert!(body["error"]["message"].as_str().is_some_and(|message| !message.is_empty()));
    let text = |name: &str| body["error"][name].as_str().unwrap().to_owned();
    (reply.status, text("type"), text("code"))
}

fn expected(status: u16, kind: &str, code: &str) -> (u16, String, String) {
    (status, kind.to_owned(), code.to_owned())
}

#[tokio::test]
async fn a_request_over_its_budget_is_refused_in_anthropics_shape() {
    let upstream = upstream().await;
    let config = "[context.budget]\nmax_input = 200\nrefuse_at = \"budget\"\n";
    let tidegate = Tidegate::start(config, &upstream).await;
    let reply = exchange(tidegate.address, post(MESSAGES, &HEADERS, conversation(3, 0))).await;
    assert_eq!(error(&reply), expected(422, "invalid_request_error", "context_budget_exceeded"));
}

#[tokio::test]
async fn other_refusals_have_the_same_shape() {
    let upstream = upstream().await;
    let tidegate = Tidegate::start("[server]\nmax_body = \"64KiB\"\n", &upstream).await;
    let named = [("x-conversation-id", "no spaces"), ("x-api-key", "k")];
    let reply = exchange(tidegate.address, post(MESSAGES, &named, conversation(1, 0))).await;
    assert_eq!(error(&reply), expected(400, "invalid_request_error", "invalid_conversation_id"));
    let twice = r#"{"model":"claude","messages":[],"messages":[]}"#;
    let reply = exchange(tidegate.address, post(MESSAGES, &HEADERS, twice)).await;
    assert_eq!(error(&reply), expected(400, "invalid_request_error", "ambiguous_request"));
    let reply = exchange(tidegate.address, post(MESSAGES, &HEADERS, conversation(60, 0))).await;
    assert_eq!(error(&reply), expected(413, "request_too_large", "request_too_large"));
}
