//! Chat completions below any path are managed; other LLM endpoints pass, and say so.

use crate::support::client::{chat, exchange, post};
use crate::support::tidegate::Setup;
use tidegate_testkit::{Answer, MockUpstream};

const BODY: &str = r#"{"model":"gpt-4o","messages":[{"role":"user","content":"hi"}]}"#;

#[tokio::test]
async fn a_chat_completion_below_any_path_is_managed() {
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::chat("ok"));
    let tidegate = Setup::new("").before(&upstream).start().await;
    for path in [
        "/api/v1/chat/completions",
        "/v1beta/openai/chat/completions",
        "/chat/completions",
        "/v1/acme/team/chat/completions",
    ] {
        let reply = exchange(tidegate.address, post(path, &[], BODY)).await;
        assert_eq!((reply.status, reply.header("x-tidegate-route")), (200, Some("default")), "{path}");
        assert!(reply.header("x-tidegate-tokens-before").is_some(), "{path}");
        assert_eq!(upstream.next_request().await.target, path);
    }
}

#[tokio::test]
async fn an_endpoint_that_a_route_matches_is_not_warned_of() {
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::json(200, "{}"));
    let config =
        "[[routes]]\nname = \"old\"\nmatch = { path = \"/v1/completions\" }\n[[routes]]\nname = \"chat\"\n";
    let tidegate = Setup::new(config).before(&upstream).start().await;
    let reply = exchange(tidegate.address, post("/v1/completions", &[], "{}")).await;
    assert_eq!((reply.status, reply.header("x-tidegate-route")), (200, Some("old")));
    assert_eq!(exchange(tidegate.address, chat()).await.status, 200);
    assert!(!tidegate.stop().await.contains("pass unedited"));
}

#[tokio::test]
async fn an_unmanaged_llm_endpoint_says_so_and_is_warned_of_once() {
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::json(200, "{}"));
    let tidegate = Setup::new("").before(&upstream).start().await;
    for path in ["/v1/completions", "/v1/completions", "/v1beta/models/gemini-2.5-pro:generateContent"] {
        let reply = exchange(tidegate.address, post(path, &[], "{}")).await;
        assert_eq!((reply.status, reply.header("x-tidegate-route")), (200, Some("none")), "{path}");
    }
    let reply = exchange(tidegate.address, post("/v1/embeddings", &[], "{}")).await;
    assert_eq!((reply.status, reply.header("x-tidegate-route")), (200, None));
    // A managed request comes last, so that all warnings are in the log.
    assert_eq!(exchange(tidegate.address, chat()).await.status, 200);
    let log = tidegate.stop().await;
    assert_eq!(log.matches("pass unedited").count(), 2, "{log}");
}
