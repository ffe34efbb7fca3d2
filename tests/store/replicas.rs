//! Two processes on one Redis behave like one.

use super::load::timeline;
use super::turns::{REMEMBERED, config, degraded, edits, start, start_patient, turn, upstream};
use crate::support::agent::{Message, body};
use crate::support::client::{CHAT, Client, admin, post};
use crate::support::cores::busy;
use crate::support::tidegate::Setup;
use crate::support::{until, within};
use serde_json::Value;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tidegate_testkit::{Answer, RedisServer};
use tokio::task::JoinSet;

#[tokio::test]
async fn processes_share_decisions() {
    let (redis, upstream) = (RedisServer::start().await, upstream().await);
    let one = start(&redis.url(), &upstream).await;
    let other = start(&redis.url(), &upstream).await;
    turn(one.address, "a", 3).await;
    let reply = turn(other.address, "a", 4).await;
    assert_eq!((degraded(&reply), edits(&reply)), (None, REMEMBERED));
    drop((one, other));
    // So does a third process after both have ended.
    let third = start(&redis.url(), &upstream).await;
    assert_eq!(edits(&turn(third.address, "a", 4).await), REMEMBERED);
}

#[tokio::test]
async fn every_key_has_a_ttl_and_a_conversation_has_one_slot() {
    let (redis, upstream) = (RedisServer::start().await, upstream().await);
    let tidegate = start(&redis.url(), &upstream).await;
    turn(tidegate.address, "a", 3).await;
    let count = async || redis.cli(&["--scan", "--pattern", "tg:1:*:h"]).await;
    until("the turn is counted", Duration::from_secs(5), count, |keys| !keys.trim().is_empty()).await;
    let keys = redis.cli(&["--scan"]).await;
    let week = 7 * 24 * 3600;
    for key in keys.lines() {
        assert!(key.starts_with("tg:1:{"), "{key}");
        let left: i64 = redis.cli(&["TTL", key]).await.trim().parse().unwrap();
        // What a start or a failure has probed the store with is gone within seconds.
        let life = if key.contains(":probe:") { 0..=60 } else { week - 60..=week };
        assert!(life.contains(&left), "{key} lives for {left} s");
    }
    let tag = |key: &str| key[..key.find('}').unwrap()].to_owned();
    let tags: HashSet<String> =
        keys.lines().map(tag).filter(|tag| !tag.ends_with("index") && !tag.contains("probe")).collect();
    assert_eq!(tags.len(), 1, "{keys}");
}

/// The request is forwarded while its turn is being stored, and the response ends only once it is stored.
#[tokio::test]
async fn the_response_ends_after_its_turn_is_stored() {
    let (redis, upstream) = (RedisServer::start().await, upstream().await);
    let patient = config(&redis.url()).replace("250ms", "10s");
    let tidegate = Setup::new(&patient).upstream(&upstream.url()).start().await;
    turn(tidegate.address, "a", 3).await;
    let list = redis.cli(&["--scan", "--pattern", "tg:1:*:w"]).await.trim().to_owned();
    for stream in [false, true] {
        upstream.next_request().await;
        let before: usize = redis.cli(&["LLEN", &list]).await.trim().parse().unwrap();
        redis.cli(&["CLIENT", "PAUSE", "60000", "WRITE"]).await;
        if stream {
            upstream.answer(Answer::chat_stream(["ok"]));
        }
        let number = if stream { 5 } else { 4 };
        let mut answer = Box::pin(turn(tidegate.address, "a", number));
        tokio::select! {
            reply = &mut answer => panic!("it ended before it was stored: {reply:?}"),
            // The request is forwarded although nothing can be written.
            _ = async { upstream.next_request().await; until_write_is_blocked(&redis).await } => {}
        }
        redis.cli(&["CLIENT", "UNPAUSE"]).await;
        assert_eq!(degraded(&within("the response ends", answer).await), None);
        let after: usize = redis.cli(&["LLEN", &list]).await.trim().parse().unwrap();
        assert_eq!(after, before + 1, "the response ended before the turn was written");
        // So that the next round waits for its own request.
        turn(tidegate.address, "a", 3).await;
    }
}

/// Waits until a write is blocked in Redis.
async fn until_write_is_blocked(redis: &RedisServer) {
    let blocked = async || redis.cli(&["INFO", "clients"]).await;
    let is_blocked = |info: &String| info.lines().any(|line| line.trim() == "blocked_clients:1");
    until("a write waits", Duration::from_secs(5), blocked, is_blocked).await;
}

const TASKS: usize = 64;
const TURNS: usize = 10_000;

/// 64 concurrent branches of one conversation, with turns that alternate between two processes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_concurrent_turns_are_each_recorded_once() {
    let _busy = busy().await;
    let (redis, upstream) = (RedisServer::start().await, Arc::new(upstream().await));
    // A write that times out is dropped, so the timeout is long.
    let processes =
        [start_patient(&redis.url(), &upstream).await, start_patient(&redis.url(), &upstream).await];
    let addresses = processes.each_ref().map(|process| process.address);
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let turns = TURNS / TASKS + usize::from(task < TURNS % TASKS);
        tasks.spawn(async move {
            let mut clients = [Client::connect(addresses[0]).await, Client::connect(addresses[1]).await];
            let mut history = vec![Message::user("The task that all share.")];
            for number in 0..turns {
                history.push(Message::user(&format!("task {task}, step {number}")));
                let headers = [("x-conversation-id", "shared"), ("authorization", "Bearer ada")];
                let client = &mut clients[number % 2];
                client.send(post(CHAT, &headers, body("gpt-4o", &history, &[]))).await;
                let reply = client.reply().await;
                assert_eq!(reply.status, 200, "{}", reply.text());
                history.push(Message::assistant("ok"));
            }
            turns
        });
    }
    let sent: usize = tasks.join_all().await.into_iter().sum();
    assert_eq!(sent, TURNS);

    let heads = async || -> Value { admin(processes[0].admin, "/api/conversations?limit=2").await.json() };
    let is_counted = |heads: &Value| heads["conversations"][0]["requests"] == TURNS;
    let heads = until("all are counted", Duration::from_secs(20), heads, is_counted).await;
    assert_eq!(heads["total"], 1);
    let head = &heads["conversations"][0];
    assert_eq!((&head["turns"], &head["prompt_tokens"]), (&TURNS.into(), &(100 * TURNS).into()));

    let timeline = timeline(&processes[1], head["id"].as_str().unwrap()).await;
    // The task, and a question and an answer per turn.
    assert_eq!(timeline.len(), 1 + 2 * TURNS);
    let ids: HashSet<&str> = timeline.iter().map(|message| message["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), timeline.len(), "a message was recorded twice");
    let position = |message: &Value| message["position"].as_u64().unwrap();
    assert!(timeline.windows(2).all(|pair| position(&pair[0]) <= position(&pair[1])), "out of order");
    // The parent of every message was recorded.
    let root = "0".repeat(64);
    for message in &timeline {
        let parent = message["parent"].as_str().unwrap();
        assert!(parent == root || ids.contains(parent), "{message}");
    }
    let contents: HashSet<&str> =
        timeline.iter().filter_map(|message| message["message"]["content"].as_str()).collect();
    for task in 0..TASKS {
        assert!(contents.contains(format!("task {task}, step {}", TURNS / TASKS - 1).as_str()));
    }
}
