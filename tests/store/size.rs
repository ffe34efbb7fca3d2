//! How much a conversation takes on disk.

use super::turns::upstream;
use crate::support::client::{CHAT, Client, admin, post};
use crate::support::metrics::value;
use crate::support::tidegate::{Setup, Tidegate};
use serde_json::json;
use tempfile::TempDir;
use tidegate_testkit::{MockUpstream, RedisServer, Trajectory};

/// Runs agents of `turns` turns one after another, with a call and a result of 1.2 KB per turn. Returns the length of all messages, each
/// counted once.
async fn agents(tidegate: &Tidegate, turns: usize, is_named: bool) -> usize {
    let mut text = 0;
    for seed in 0..2 {
        let shape = Trajectory { turns, output: 290.0, spread: 0.0, system: 300, ..Trajectory::default() };
        let mut messages = shape.messages(seed);
        // The task is unique, as a conversation's first words are.
        messages[1] = json!({ "role": "user", "content": format!("Task {seed}: mend berth 7.") });
        let name = format!("agent-{seed}");
        let mut headers = vec![("authorization", "Bearer ada")];
        headers.extend(is_named.then_some(("x-conversation-id", &*name)));
        let mut client = Client::connect(tidegate.address).await;
        for end in (2..messages.len()).step_by(2) {
            let body = json!({ "model": "gpt-4.1", "messages": messages[..end] }).to_string();
            client.send(post(CHAT, &headers, body)).await;
            assert_eq!(client.reply().await.status, 200);
        }
        let sent = &messages[..messages.len() - 1];
        text += sent.iter().map(|message| message.to_string().len()).sum::<usize>();
    }
    text
}

/// The bytes on disk for each byte of text.
async fn ratio(turns: usize, is_named: bool) -> f64 {
    let (directory, upstream) = (TempDir::new().unwrap(), upstream().await);
    let tidegate = start(&format!("embedded:{}", directory.path().display()), &upstream).await;
    let text = agents(&tidegate, turns, is_named).await;
    let page = admin(tidegate.admin, "/metrics").await.text();
    value(&page, "tidegate_store_bytes", &[]).unwrap() / text as f64
}

/// Starts a process whose store has time to answer.
async fn start(url: &str, upstream: &MockUpstream) -> Tidegate {
    let store = format!("[store]\nurl = \"{url}\"\ntimeout = \"30s\"\n");
    Setup::new(&store).upstream(&upstream.url()).start().await
}

#[tokio::test]
async fn a_conversation_takes_at_most_twice_its_text() {
    // Without a name, the state of each request is stored apart, because other requests may continue from it.
    for (is_named, most) in [(true, 1.8), (false, 2.0)] {
        let (short, long) = (ratio(40, is_named).await, ratio(100, is_named).await);
        assert!(short <= most, "{short} bytes for each byte of text, named: {is_named}");
        // What is kept of a turn does not grow with the number of turns before it.
        assert!(long <= 1.1 * short, "{long} after {short}, named: {is_named}");
    }
}

/// The memory of Redis for each byte of text.
async fn redis_ratio(is_named: bool) -> f64 {
    let (redis, upstream) = (RedisServer::start().await, upstream().await);
    let tidegate = start(&redis.url(), &upstream).await;
    // Scripts and connections are there before the first conversation is.
    agents(&tidegate, 1, true).await;
    redis.cli(&["FLUSHALL"]).await;
    let before = used(&redis).await;
    let text = agents(&tidegate, 40, is_named).await;
    // The last turn is counted when its answer has ended.
    tidegate.stop().await;
    (used(&redis).await - before) / text as f64
}

async fn used(redis: &RedisServer) -> f64 {
    let info = redis.cli(&["INFO", "memory"]).await;
    let used = info.lines().find_map(|line| line.strip_prefix("used_memory_dataset:")).unwrap();
    used.trim().parse().unwrap()
}

#[tokio::test]
async fn a_conversation_takes_less_memory_of_redis_than_twice_its_text() {
    for (is_named, most) in [(true, 1.3), (false, 2.0)] {
        let ratio = redis_ratio(is_named).await;
        assert!(ratio <= most, "{ratio} bytes for each byte of text, named: {is_named}");
    }
}
