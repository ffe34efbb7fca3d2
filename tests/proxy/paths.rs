//! No spelling of a path bypasses the route table or leads to another host.

use crate::support::client::{CHAT, QUESTION, exchange, get, post};
use crate::support::tidegate::{Setup, Tidegate};
use tidegate_testkit::{Answer, MockUpstream};

#[tokio::test]
async fn every_spelling_of_the_chat_path_is_recognized() {
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::json(200, "{}"));
    let tidegate = Tidegate::start("", &upstream).await;
    for path in [
        "/v1/chat/completions",
        "/v1/chat/completions/",
        "/v1/chat/completions?stream=1",
        "//v1/chat/completions",
        "/v1//chat///completions//",
        "/V1/Chat/COMPLETIONS",
        "/v1/%63hat/completions",
        "/v1/chat%2Fcompletions",
        "/v1%2fchat/completion%73",
        "/%2Fv1/chat/completions%2F",
        "/chat/completions",
        "/openai/v1/chat/completions",
        "/openai/deployments/my-gpt/chat/completions?api-version=2024-10-21",
        "/OpenAI/Deployments/My-GPT/chat/completions?api-version=2024-10-21",
    ] {
        let reply = exchange(tidegate.address, post(path, &[], QUESTION)).await;
        assert_eq!((reply.status, reply.header("x-tidegate-route")), (200, Some("default")), "{path}");
        assert_eq!(upstream.next_request().await.target, path, "the spelling was changed");
    }
}

#[tokio::test]
async fn absolute_form_is_routed_by_its_path_and_its_host_is_ignored() {
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::json(200, "{}"));
    let tidegate = Tidegate::start("", &upstream).await;
    for target in [
        "http://evil.example/v1/chat/completions?x=1",
        "HTTP://evil.example:80/v1/chat/completions?x=1",
        "https://user@evil.example/v1/chat/completions?x=1",
    ] {
        let reply = exchange(tidegate.address, post(target, &[], QUESTION)).await;
        assert_eq!((reply.status, reply.header("x-tidegate-route")), (200, Some("default")), "{target}");
        let arrived = upstream.next_request().await;
        assert_eq!(arrived.target, "/v1/chat/completions?x=1");
        assert_eq!(arrived.authority(), Some(upstream.authority().as_str()));
    }
    assert_eq!(exchange(tidegate.address, get("http://evil.example")).await.status, 200);
    assert_eq!(upstream.next_request().await.target, "/");
}

#[tokio::test]
async fn a_path_cannot_become_a_host() {
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::json(200, "{}"));
    let tidegate = Tidegate::start("", &upstream).await;
    for target in
        ["//evil.example/v1/models", "/@evil.example/v1/models", "/v1/models?u=http://evil.example/"]
    {
        assert_eq!(exchange(tidegate.address, get(target)).await.status, 200, "{target}");
        let arrived = upstream.next_request().await;
        assert_eq!(
            (arrived.target.as_str(), arrived.authority()),
            (target, Some(upstream.authority().as_str()))
        );
    }
}

#[tokio::test]
async fn dot_segments_are_refused() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    for path in [
        "/v1/../v1/chat/completions",
        "/v1/x/../chat/completions",
        "/v1/./chat/completions",
        "/v1/%2e%2e/chat/completions",
        "/v1/%2E./chat/completions",
        "/v1/..%2fchat/completions",
        "/..",
        "/v1/models/..",
        "/v1/models/../../admin",
        "/v1/models\\..\\admin",
        "/v1/models%5c..%5cadmin",
        "/v1/models%00",
    ] {
        let reply = exchange(tidegate.address, post(path, &[], QUESTION)).await;
        assert_eq!((reply.status, reply.error_code().as_str()), (400, "invalid_path"), "{path}");
    }
    assert_eq!(upstream.connections(), 0);
}

#[tokio::test]
async fn redirects_are_passed_on_and_not_followed() {
    let upstream = MockUpstream::start().await;
    let elsewhere = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    for status in [301, 302, 303, 307, 308] {
        let location = format!("{}/v1/chat/completions", elsewhere.url());
        upstream.then(Answer::new(status).header("location", &location).chunk("moved"));
        let reply = exchange(tidegate.address, post(CHAT, &[], QUESTION)).await;
        assert_eq!((reply.status, reply.header("location")), (status, Some(location.as_str())));
        assert_eq!(reply.body, b"moved");
    }
    assert_eq!((upstream.requests().len(), elsewhere.connections()), (5, 0));
}

#[tokio::test]
async fn the_upstreams_base_path_is_prepended() {
    for (base, asked, expected) in [
        ("", "/v1/models", "/v1/models"),
        ("/", "/v1/models", "/v1/models"),
        ("/v1", "/v1/models", "/v1/models"),
        ("/v1/", "/v1/models?x=1", "/v1/models?x=1"),
        ("/v1", "/chat/completions", "/v1/chat/completions"),
        ("/api", "/v1/models", "/api/v1/models"),
        ("/api/v1", "/v1/chat/completions", "/api/v1/chat/completions"),
    ] {
        let upstream = MockUpstream::start_http1().await;
        upstream.answer(Answer::json(200, "{}"));
        let tidegate = Setup::new("").upstream(&format!("{}{base}", upstream.url())).start().await;
        exchange(tidegate.address, post(asked, &[], QUESTION)).await;
        assert_eq!(upstream.next_request().await.target, expected, "{base} and {asked}");
    }
}
