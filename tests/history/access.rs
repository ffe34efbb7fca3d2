//! Who may use the proxy, and whose state is whose.

use super::scene::{Scene, completion, said};
use crate::support::client::{CHAT, QUESTION, exchange, post, request};
use crate::support::reply::Reply;
use crate::support::tidegate::{Setup, Tidegate};
use serde_json::json;
use std::net::SocketAddr;
use tidegate_testkit::{Answer, MockUpstream};

const PROXY: &str = "[store]\nurl = \"memory:\"\n[context]\nhistory = \"proxy\"\n";

async fn upstream() -> MockUpstream {
    let upstream = MockUpstream::start().await;
    upstream.answer(completion(&json!({ "role": "assistant", "content": "the canary" })));
    upstream
}

async fn turn(address: SocketAddr, headers: &[(&str, &str)]) -> Reply {
    let body = json!({ "model": "gpt-4o", "messages": [said("secret")] }).to_string();
    exchange(address, post(CHAT, &[&[("x-conversation-id", "c")], headers].concat(), body)).await
}

async fn state(address: SocketAddr, headers: &[(&str, &str)]) -> Reply {
    let headers = [&[("x-conversation-id", "c")], headers].concat();
    exchange(address, request("GET", "/tidegate/v1/conversation", &headers, b"")).await
}

#[tokio::test]
async fn keys_in_any_header_tell_tenants_apart() {
    let upstream = upstream().await;
    let tidegate = Tidegate::start(PROXY, &upstream).await;
    for name in ["authorization", "api-key", "x-api-key", "x-goog-api-key"] {
        assert_eq!(turn(tidegate.address, &[(name, "AAAA")]).await.status, 200);
        assert!(state(tidegate.address, &[(name, "AAAA")]).await.text().contains("canary"));
        let other = state(tidegate.address, &[(name, "BBBB")]).await;
        assert!(!other.text().contains("canary"), "{name}: {}", other.text());
    }
}

#[tokio::test]
async fn without_credentials_there_is_no_state_for_strangers() {
    let upstream = upstream().await;
    // On this machine alone, everybody is the same.
    let local = Tidegate::start(PROXY, &upstream).await;
    assert_eq!(turn(local.address, &[]).await.status, 200);
    assert!(state(local.address, &[]).await.text().contains("canary"));
    let remote = Setup::listening(PROXY, "0.0.0.0:0").upstream(&upstream.url()).start().await;
    for reply in [turn(remote.address, &[]).await, state(remote.address, &[]).await] {
        assert_eq!((reply.status, reply.error_code().as_str()), (401, "credentials_required"));
    }
    assert_eq!(turn(remote.address, &[("api-key", "AAAA")]).await.status, 200);
    let open = format!("[conversation]\nanonymous = \"anywhere\"\n{PROXY}");
    let open = Setup::listening(&open, "0.0.0.0:0").upstream(&upstream.url()).start().await;
    assert_eq!(turn(open.address, &[]).await.status, 200);
    // Where the client holds the history, requests pass without state.
    let client = Setup::listening("", "0.0.0.0:0").upstream(&upstream.url()).start().await;
    let reply = turn(client.address, &[]).await;
    assert_eq!((reply.status, reply.header("x-tidegate-conversation")), (200, None));
}

#[tokio::test]
async fn nothing_below_tidegate_is_forwarded() {
    let scene = Scene::start(1, "").await;
    for (method, path) in [
        ("POST", "/tidegate/v1/conversation"),
        ("PUT", "/tidegate/v1/conversation"),
        ("GET", "/tidegate/v1/other"),
        ("GET", "/tidegate"),
        ("GET", "/Tidegate/v1/conversation/x"),
        ("GET", "/%74idegate/x"),
    ] {
        let reply =
            exchange(scene.address(0), request(method, path, &[("authorization", "Bearer k")], b"")).await;
        assert_eq!((reply.status, reply.error_code().as_str()), (404, "not_found"), "{method} {path}");
    }
    assert_eq!(scene.upstream.requests().len(), 0);
}

#[tokio::test]
async fn a_web_page_cannot_use_a_loopback_listener() {
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::json(200, "{}"));
    let tidegate = Tidegate::start("", &upstream).await;
    let ask = async |host: &str, headers: &[(&str, &str)]| {
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let length = QUESTION.len();
        let head = format!(
            "POST {CHAT} HTTP/1.1\r\nhost: {host}\r\ncontent-length: {length}\r\n{headers}\r\n{QUESTION}"
        );
        exchange(tidegate.address, head).await
    };
    for host in ["evil.example", "evil.example:8080"] {
        let reply = ask(host, &[]).await;
        assert_eq!((reply.status, reply.error_code().as_str()), (403, "host_not_allowed"));
    }
    for headers in
        [[("origin", "https://evil.example")], [("origin", "null")], [("sec-fetch-site", "cross-site")]]
    {
        let reply = ask("localhost:8080", &headers).await;
        assert_eq!((reply.status, reply.error_code().as_str()), (403, "origin_not_allowed"), "{headers:?}");
    }
    assert_eq!(upstream.requests().len(), 0);
    for host in ["localhost", "127.0.0.1:8080", "[::1]:8080"] {
        assert_eq!(ask(host, &[]).await.status, 200, "{host}");
    }
    assert_eq!(ask("localhost:1", &[("origin", "http://localhost:3000")]).await.status, 200);
    let settings = "[server]\nallowed_hosts = [\"llm.example.com\"]\n";
    let tidegate = Tidegate::start(settings, &upstream).await;
    let allowed = "GET /v1/models HTTP/1.1\r\nhost: llm.example.com\r\nconnection: close\r\n\r\n";
    assert_eq!(exchange(tidegate.address, allowed).await.status, 200);
}

#[tokio::test]
async fn a_session_id_names_the_conversation() {
    let upstream = upstream().await;
    let tidegate = Tidegate::start("", &upstream).await;
    let named = async |headers: &[(&str, &str)], body: &str| {
        let headers = [&[("authorization", "Bearer ada")], headers].concat();
        let reply = exchange(tidegate.address, post(CHAT, &headers, body)).await;
        reply.header("x-tidegate-conversation").unwrap_or_default().to_owned()
    };
    for header in [
        "x-claude-code-session-id",
        "session-id",
        "session_id",
        "conversation_id",
        "x-session-id",
        "x-opencode-session",
        "x-session-affinity",
    ] {
        assert_eq!(named(&[(header, "s-1")], QUESTION).await, "s-1", "{header}");
    }
    let noting = |members: &str| QUESTION.replace("{\"model\"", &format!("{{{members},\"model\""));
    let keyed = noting("\"prompt_cache_key\":\"k-1\"");
    assert_eq!(named(&[], &keyed).await, "k-1");
    assert_eq!(named(&[("session-id", "s-1")], &keyed).await, "s-1");
    assert_eq!(named(&[("x-conversation-id", "c-1"), ("session-id", "s-1")], &keyed).await, "c-1");
    // What Claude Code writes, and what a client of LiteLLM or OpenRouter may.
    for noted in [
        r#""metadata":{"user_id":"user_9f_account_1_session_m-1"}"#,
        r#""metadata":{"user_id":"{\"device_id\":\"9f\",\"session_id\":\"m-1\"}"}"#,
        r#""prompt_cache_key":"everybody","metadata":{"session_id":"m-1"}"#,
        r#""metadata":{"session_id":"trace"},"litellm_session_id":"m-1""#,
        r#""session_id":"m-1""#,
    ] {
        assert_eq!(named(&[], &noting(noted)).await, "m-1", "{noted}");
    }
    assert!(named(&[], &noting(r#""metadata":{"user_id":"ada"}"#)).await.starts_with("auto-"));
    assert!(named(&[], QUESTION).await.starts_with("auto-"));
}

/// One key for the provider's cache may stand for everybody who uses an application.
#[tokio::test]
async fn a_body_names_no_session_where_the_file_says_so() {
    let upstream = upstream().await;
    let tidegate = Tidegate::start("[conversation]\nsession_fields = [\"metadata\"]\n", &upstream).await;
    let named = async |members: &str| {
        let body = QUESTION.replace("{\"model\"", &format!("{{{members},\"model\""));
        let reply = exchange(tidegate.address, post(CHAT, &[("authorization", "Bearer ada")], &body)).await;
        reply.header("x-tidegate-conversation").unwrap_or_default().to_owned()
    };
    assert!(named(r#""prompt_cache_key":"everybody""#).await.starts_with("auto-"));
    let both = r#""session_id":"s-1","metadata":{"thread_id":"t-1"}"#;
    assert_eq!(named(both).await, "t-1");
}
