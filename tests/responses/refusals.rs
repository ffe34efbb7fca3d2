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
    // Nothing can be masked, so a shorter answer is the advice, in the API's own words.
    let long = format!(r#"{{"model":"m","input":"{}"}}"#, "the tide ".repeat(400));
    let reply = exchange(tidegate.address, post(RESPONSES, &HEADERS, long)).await;
    assert_eq!(reply.status, 422);
    assert!(reply.text().contains("(`max_output_tokens`)"), "{}", reply.text());
}

#[tokio::test]
async fn an_unreadable_request_is_refused_in_the_words_of_its_api() {
    let upstream = upstream().await;
    let tidegate = Tidegate::start("[context.limits]\nmax_turns = 5\n", &upstream).await;
    let reply = exchange(tidegate.address, post(RESPONSES, &HEADERS, r#"{"model":"m","input":[5]}"#)).await;
    assert_eq!((reply.status, reply.error_code().as_str()), (400, "unreadable_request"));
    let text = reply.text();
    assert!(text.contains("read as a response") && text.contains("Send `input`"), "{text}");
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
