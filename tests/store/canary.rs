//! Sends a key and a prompt on every path and through every failure, and checks that they do not leak.

use super::turns::{config, start, upstream};
use crate::support::agent::{Message, body, conversation};
use crate::support::client::{CHAT, Client, admin, exchange, post};
use crate::support::tidegate::Setup;
use crate::support::until;
use serde_json::Value;
use std::net::SocketAddr;
use std::time::Duration;
use tidegate_testkit::{Answer, RedisServer};

const KEY: &str = "sk-canary-7f3a91";
const PROMPT: &str = "the-canary-sings-at-dawn";
const NAME: &str = "named-by-the-client";

fn bodies() -> Vec<String> {
    let mut long = conversation(5);
    long[1] = Message::user(PROMPT);
    long[5].content = serde_json::to_string(&format!("{PROMPT} {}", "a line\n".repeat(200))).unwrap();
    let question = format!(r#"{{"model":"gpt-4o","messages":[{{"role":"user","content":"{PROMPT}"}}]"#);
    vec![
        body("gpt-4o", &long, &[]),
        format!("{question}}}"),
        format!("{question},\"stream\":true}}"),
        format!("{question},\"messages\":[]}}"),
        format!("{question},\"max_tokens\":999999999}}"),
        question.clone(),
        format!(
            r#"{{"model":"{PROMPT}","messages":[{{"role":"user","content":"\ud800 {PROMPT}","n":{PROMPT}}}]}}"#
        ),
        PROMPT.to_owned(),
    ]
}

/// Sends every body under valid and invalid ids, on every path, complete and truncated.
async fn send_canaries(process: SocketAddr) {
    let key = format!("Bearer {KEY}");
    let bad = format!("{PROMPT} with spaces");
    for body in bodies() {
        for name in [NAME, &bad] {
            let headers = [("authorization", key.as_str()), ("x-conversation-id", name)];
            exchange(process, post(CHAT, &headers, &body)).await;
        }
        exchange(process, post("/v1/embeddings", &[("authorization", &key)], &body)).await;
        exchange(process, post("/v1/../x", &[("authorization", &key)], &body)).await;
        let gzip = [("authorization", key.as_str()), ("content-encoding", "gzip")];
        exchange(process, post(CHAT, &gzip, &body)).await;
        let strategy = [("authorization", key.as_str()), ("x-tidegate-strategy", PROMPT)];
        exchange(process, post(CHAT, &strategy, &body)).await;
        // A client that disconnects mid-body.
        let mut client = Client::connect(process).await;
        let whole = post(CHAT, &[("authorization", &key)], &body);
        client.send(&whole[..whole.len() - 3]).await;
    }
    let query = format!(
        "GET /v1/models?key={KEY} HTTP/1.1\r\nhost: x\r\nauthorization: {key}\r\nconnection: close\r\n\r\n"
    );
    exchange(process, query).await;
}

fn assert_clean(what: &str, text: &str) {
    for canary in [KEY, PROMPT] {
        let at = text.find(canary);
        assert!(
            at.is_none(),
            "{canary} in {what}: …{}…",
            &text[at.unwrap().saturating_sub(200)..at.unwrap() + canary.len()]
        );
    }
}

/// Every key of Redis with its name and contents.
async fn redis_contents(redis: &RedisServer) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for key in redis.cli(&["--scan"]).await.lines() {
        let kind = redis.cli(&["TYPE", key]).await;
        let content = match kind.trim() {
            "hash" => redis.cli(&["HGETALL", key]).await,
            "list" => redis.cli(&["LRANGE", key, "0", "-1"]).await,
            "set" => redis.cli(&["SMEMBERS", key]).await,
            "zset" => redis.cli(&["ZRANGE", key, "0", "-1"]).await,
            _ => redis.cli(&["GET", key]).await,
        };
        all.push((key.to_owned(), format!("{key}\n{content}")));
    }
    all
}

async fn assert_clean_everywhere(encrypted: bool) {
    let (redis, upstream) = (RedisServer::start().await, upstream().await);
    let mut setup =
        Setup::new(&format!("[log]\nlevel = \"trace\"\n{}", config(&redis.url()))).upstream(&upstream.url());
    if encrypted {
        setup = setup.env("TIDEGATE_STORE_KEY", &"5a".repeat(32));
    }
    let tidegate = setup.start().await;
    send_canaries(tidegate.address).await;
    // Another tenant has a conversation with the same name.
    let other = [("authorization", "Bearer other"), ("x-conversation-id", NAME)];
    exchange(tidegate.address, post(CHAT, &other, body("gpt-4o", &conversation(3), &[]))).await;
    upstream.answer(Answer::json(500, format!("{{\"error\":{{\"message\":\"{PROMPT} {KEY}\"}}}}").as_str()));
    send_canaries(tidegate.address).await;

    let all = async || -> Value { admin(tidegate.admin, "/api/conversations?limit=500").await.json() };
    let all = until("it is counted", Duration::from_secs(5), all, |all| {
        all["conversations"]
            .as_array()
            .is_some_and(|all| all.iter().filter(|one| one["name"] == NAME).count() == 2)
    })
    .await;
    let all = all["conversations"].as_array().unwrap();
    let stranger =
        all.iter().filter(|one| one["name"] == NAME).max_by_key(|one| one["first"].as_u64()).unwrap();
    let (id, tenant) = (stranger["id"].as_str().unwrap(), stranger["tenant"].as_str().unwrap());
    for path in ["", "/messages", "/export"] {
        let reply = admin(tidegate.admin, &format!("/api/conversations/{id}{path}?tenant={tenant}")).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert_clean(path, &reply.text());
    }
    let listed = admin(tidegate.admin, &format!("/api/conversations?tenant={tenant}")).await.text();
    assert!(listed.contains(id));
    assert_clean("another tenant's list", &listed);
    assert_clean("metrics", &admin(tidegate.admin, "/metrics").await.text());
    assert_clean("readiness", &admin(tidegate.admin, "/readyz").await.text());

    let contents = redis_contents(&redis).await;
    assert!(contents.iter().any(|(key, _)| key.ends_with(":m")));
    let mut recorded = false;
    for (key, content) in &contents {
        if key.ends_with(":m") && !encrypted {
            recorded |= content.contains(PROMPT);
            assert!(!content.contains(KEY), "the API key is in {key}");
        } else {
            assert_clean(key, content);
        }
    }
    assert_eq!(recorded, !encrypted, "the timeline is readable unless it is encrypted");

    // The same while the store is down.
    redis.kill();
    send_canaries(tidegate.address).await;
    assert_clean("the log", &tidegate.stop().await);
}

#[tokio::test]
async fn content_is_only_in_the_timeline() {
    assert_clean_everywhere(false).await;
}

#[tokio::test]
async fn with_an_encryption_key_content_is_nowhere() {
    assert_clean_everywhere(true).await;
}

#[tokio::test]
async fn store_credentials_are_not_exposed() {
    let upstream = upstream().await;
    let redis = RedisServer::with(&[&format!("requirepass {KEY}")]).await;
    let wrong = redis.url().replace("redis://", &format!("redis://:{PROMPT}@"));
    let mut tidegate = start(&wrong, &upstream).await;
    exchange(tidegate.address, post(CHAT, &[], body("gpt-4o", &conversation(1), &[]))).await;
    tidegate.logged_message("serving from local cache").await;
    assert_clean("readiness", &admin(tidegate.admin, "/readyz").await.text());
    assert_clean("the log", &tidegate.stop().await);
}
