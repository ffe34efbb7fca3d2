//! Conversations with the same name under different API keys are separate.

use super::turns::{NEW, REMEMBERED, edits, start, upstream};
use crate::support::agent::{body, conversation};
use crate::support::client::{CHAT, admin, exchange, post};
use crate::support::reply::Reply;
use crate::support::until;
use serde_json::Value;
use std::net::SocketAddr;
use std::time::Duration;
use tidegate_testkit::RedisServer;

async fn turn(process: SocketAddr, key: &str, number: usize) -> Reply {
    let headers = [("x-conversation-id", "same"), ("authorization", key)];
    exchange(process, post(CHAT, &headers, body("gpt-4o", &conversation(number), &[]))).await
}

#[tokio::test]
async fn one_name_under_two_keys_is_two_conversations() {
    let (redis, upstream) = (RedisServer::start().await, upstream().await);
    let one = start(&redis.url(), &upstream).await;
    let other = start(&redis.url(), &upstream).await;
    assert_eq!(edits(&turn(one.address, "Bearer ada", 3).await), REMEMBERED);
    assert_eq!(edits(&turn(other.address, "Bearer bob", 4).await), NEW);
    assert_eq!(edits(&turn(other.address, "Bearer ada", 4).await), REMEMBERED);

    let list = async || -> Value { admin(one.admin, "/api/conversations").await.json() };
    let list = until("both are listed", Duration::from_secs(5), list, |list| list["total"] == 2).await;
    let conversation = |index: usize| &list["conversations"][index];
    assert_eq!((&conversation(0)["name"], &conversation(1)["name"]), (&"same".into(), &"same".into()));
    assert_ne!(conversation(0)["id"], conversation(1)["id"]);
    assert_ne!(conversation(0)["tenant"], conversation(1)["tenant"]);
    // One tenant cannot read the other's conversation, even by its id.
    let tenant = conversation(0)["tenant"].as_str().unwrap();
    for (index, status) in [(0, 200), (1, 404)] {
        let id = conversation(index)["id"].as_str().unwrap();
        for path in ["", "/messages", "/export"] {
            let reply = admin(one.admin, &format!("/api/conversations/{id}{path}?tenant={tenant}")).await;
            assert_eq!(reply.status, status, "{path}: {}", reply.text());
        }
    }
}
