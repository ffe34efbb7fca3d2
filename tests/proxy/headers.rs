//! Which headers are forwarded, and which are hop-by-hop.

use crate::support::client::{CHAT, QUESTION, chat, exchange, get, post, request};
use crate::support::http2::Http2Client;
use crate::support::tidegate::{Setup, Tidegate};
use tidegate_testkit::{Answer, MockUpstream};

#[tokio::test]
async fn the_clients_hop_by_hop_headers_are_not_forwarded() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    let headers = [
        ("Connection", "keep-alive, X-Mine"),
        ("connection", "x-also ,te"),
        ("X-Mine", "1"),
        ("X-Also", "2"),
        ("Keep-Alive", "timeout=5"),
        ("Proxy-Connection", "keep-alive"),
        ("Proxy-Authorization", "Basic c2VjcmV0"),
        ("TE", "trailers"),
        ("Trailer", "x-later"),
        ("Upgrade", "websocket"),
        ("X-Stays", "yes"),
    ];
    for path in [CHAT, "/v1/embeddings"] {
        exchange(tidegate.address, post(path, &headers, QUESTION)).await;
        let arrived = upstream.next_request().await;
        for (name, _) in &headers[..headers.len() - 1] {
            assert_eq!(arrived.header(name), None, "{path}: {name}");
        }
        assert_eq!(arrived.header("x-stays"), Some("yes"));
    }
}

#[tokio::test]
async fn the_upstreams_hop_by_hop_headers_are_not_forwarded() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    let answer = Answer::json(200, "{}")
        .header("Connection", "X-Gone, keep-alive")
        .header("X-Gone", "1")
        .header("Keep-Alive", "timeout=1")
        .header("Proxy-Connection", "keep-alive")
        .header("Upgrade", "h2c")
        .header("X-Stays", "yes");
    upstream.answer(answer);
    for request in [chat(), get("/v1/models")] {
        let reply = exchange(tidegate.address, request).await;
        for name in ["connection", "x-gone", "keep-alive", "proxy-connection", "upgrade"] {
            assert_eq!(reply.header(name), None, "{name}");
        }
        assert_eq!(reply.header("x-stays"), Some("yes"));
    }
}

#[tokio::test]
async fn connection_cannot_remove_credentials_or_the_content_type() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    let headers = [
        ("connection", "Authorization, API-Key, x-api-key, content-type, content-length, host, cookie"),
        ("authorization", "Bearer sk-1"),
        ("api-key", "azure-1"),
        ("x-api-key", "other-1"),
        ("content-type", "application/json; charset=utf-8"),
        ("cookie", "a=1"),
    ];
    for path in [CHAT, "/v1/embeddings"] {
        let reply = exchange(tidegate.address, post(path, &headers, QUESTION)).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        let arrived = upstream.next_request().await;
        for (name, value) in &headers[1..] {
            assert_eq!(arrived.headers_named(name), [*value], "{path}: {name}");
        }
        assert_eq!(arrived.body, QUESTION.as_bytes());
    }
}

#[tokio::test]
async fn the_host_header_names_the_upstream() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    for request in [chat(), get("/v1/models")] {
        exchange(tidegate.address, request).await;
        let arrived = upstream.next_request().await;
        assert_eq!(arrived.authority(), Some(upstream.authority().as_str()));
    }
}

#[tokio::test]
async fn only_tidegates_own_headers_are_removed() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    let own = [("x-tidegate-bypass", "true"), ("X-Tidegate-Anything", "1")];
    let others = [
        ("openai-organization", "org-1"),
        ("x-stainless-lang", "python"),
        ("accept", "text/event-stream"),
        ("accept-encoding", "gzip, br"),
        ("user-agent", "test/1"),
        ("x-forwarded-for", "10.0.0.1"),
        ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
        ("x-twice", "first"),
        ("x-twice", "second"),
        ("x-empty", ""),
    ];
    for path in [CHAT, "/v1/embeddings"] {
        exchange(tidegate.address, post(path, &[own.as_slice(), &others].concat(), QUESTION)).await;
        let arrived = upstream.next_request().await;
        assert!(
            !arrived.headers.iter().any(|(name, _)| name.to_lowercase().starts_with("x-tidegate")),
            "{arrived:?}"
        );
        for (name, value) in others {
            assert!(arrived.headers_named(name).contains(&value), "{path}: {name}");
        }
        assert_eq!(arrived.headers_named("x-twice"), ["first", "second"]);
    }
}

#[tokio::test]
async fn a_configured_key_replaces_the_clients() {
    let upstream = MockUpstream::start().await;
    let config = "[upstreams.default]\napi_key_env = \"THE_KEY\"\n";
    let setup = Setup::new(config).before(&upstream).env("THE_KEY", "sk-configured");
    let tidegate = setup.start().await;
    for path in [CHAT, "/v1/embeddings"] {
        exchange(tidegate.address, post(path, &[("authorization", "Bearer sk-client")], QUESTION)).await;
        let arrived = upstream.next_request().await;
        assert_eq!(arrived.headers_named("authorization"), ["Bearer sk-configured"]);
    }
    // Anthropic's API has a header of its own. None of the client's goes beside it.
    let theirs =
        [("x-api-key", "sk-client"), ("authorization", "Bearer sk-client"), ("api-key", "sk-client")];
    for (path, header, value) in
        [("/v1/messages", "x-api-key", "sk-configured"), (CHAT, "authorization", "Bearer sk-configured")]
    {
        exchange(tidegate.address, post(path, &theirs, QUESTION)).await;
        let arrived = upstream.next_request().await;
        for name in ["authorization", "x-api-key", "api-key"] {
            let sent = if name == header { vec![value] } else { Vec::new() };
            assert_eq!(arrived.headers_named(name), sent, "{path}: {name}");
        }
    }
}

#[tokio::test]
async fn every_answer_has_a_request_id() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    upstream.answer(Answer::json(200, "{}"));
    let reply = exchange(tidegate.address, get("/v1/models")).await;
    assert!(reply.header("x-request-id").is_some_and(|id| id.len() > 10));
    let named = [("x-request-id", "mine-1")];
    let reply = exchange(tidegate.address, post(CHAT, &named, QUESTION)).await;
    assert_eq!(reply.headers_named("x-request-id"), ["mine-1"]);
    // Refusals have it as well, for users to quote.
    let reply = exchange(tidegate.address, request("GET", "/v1/../x", &named, b"")).await;
    assert_eq!((reply.status, reply.headers_named("x-request-id")), (400, vec!["mine-1"]));
}

#[tokio::test]
async fn http2_cookie_crumbs_are_joined() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    let client = Http2Client::connect(tidegate.address).await;
    let headers = [("cookie", "a=1"), ("cookie", "b=2"), ("x-other", "3")];
    client.send_with("POST", CHAT, &headers, QUESTION).await.unwrap();
    let arrived = upstream.next_request().await;
    assert_eq!(arrived.headers_named("cookie"), ["a=1; b=2"]);
    assert_eq!(arrived.authority(), Some(upstream.authority().as_str()));
    assert_eq!(arrived.header("x-other"), Some("3"));
}
