//! What a process has learnt about a tokenizer counts in every process on the same store, and after a restart: the same request is
//! measured and edited the same.

use crate::support::agent::{body, conversation};
use crate::support::client::{CHAT, exchange, post};
use crate::support::reply::{Reply, figure};
use crate::support::tidegate::{Setup, Tidegate};
use rustix::process::Signal;
use serde_json::json;
use tempfile::TempDir;
use tidegate_testkit::{Answer, MockUpstream, RedisServer};

/// A model without a public tokenizer whose budget lets through what was counted but not what is reported.
fn settings(store: &str) -> String {
    format!(
        "[store]\nurl = \"{store}\"\ntimeout = \"10s\"\n[models.\"mystery-1\"]\nwindow = 8000\ninput = 1\n\
         [context]\nstrategy = \"hybrid\"\n[context.fold]\nwhen = {{ budget_ratio = 0.6 }}\nmode = \"inline\"\n\
         [context.mask]\nkeep = {{ turns = 2 }}\npace = {{ batch = 3 }}\n"
    )
}

async fn start(store: &str, upstream: &MockUpstream) -> Tidegate {
    Setup::new(&settings(store)).before(upstream).start().await
}

/// Sends a conversation under this name. Returns the answer and what was forwarded.
async fn send(tidegate: &Tidegate, upstream: &MockUpstream, name: &str, turns: usize) -> (Reply, String) {
    let headers = [("authorization", "Bearer ada"), ("x-conversation-id", name)];
    let sent = body("mystery-1", &conversation(turns), &[]);
    let reply = exchange(tidegate.address, post(CHAT, &headers, sent)).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    (reply, String::from_utf8(upstream.next_request().await.body).unwrap())
}

/// Has a process learn that the upstream counts 1.6 times as much. Returns its first count of the conversation.
async fn teach(tidegate: &Tidegate, upstream: &MockUpstream) -> u64 {
    upstream.answer(Answer::json(200, "{}"));
    let (reply, _) = send(tidegate, upstream, "lesson", 4).await;
    let counted = figure(&reply, "x-tidegate-tokens-after");
    let reported = counted * 8 / 5;
    let usage = json!({"prompt_tokens": reported, "completion_tokens": 1, "total_tokens": reported + 1});
    upstream.answer(Answer::json(
        200,
        json!({"object": "chat.completion", "choices": [], "usage": usage}).to_string(),
    ));
    send(tidegate, upstream, "lesson", 4).await;
    upstream.answer(Answer::json(200, "{}"));
    counted
}

/// What both decide about conversations that neither has seen.
async fn assert_same(one: &Tidegate, other: &Tidegate, upstream: &MockUpstream) {
    for turns in [3, 12, 30, 60] {
        let name = format!("new-{turns}");
        let (first, forwarded) = send(one, upstream, &name, turns).await;
        let (second, again) = send(other, upstream, &format!("{name}-again"), turns).await;
        assert_eq!(forwarded, again, "{turns} turns");
        for header in ["x-tidegate-tokens-before", "x-tidegate-tokens-after", "x-tidegate-edits"] {
            assert_eq!(first.header(header), second.header(header), "{header}, {turns} turns");
        }
    }
}

async fn count(tidegate: &Tidegate, upstream: &MockUpstream) -> u64 {
    figure(&send(tidegate, upstream, "count", 4).await.0, "x-tidegate-tokens-before")
}

#[tokio::test]
async fn processes_on_one_redis_decide_the_same() {
    let (redis, upstream) = (RedisServer::start().await, MockUpstream::start().await);
    let one = start(&redis.url(), &upstream).await;
    let other = start(&redis.url(), &upstream).await;
    // Both have been asked before, so that neither starts with what the store holds.
    upstream.answer(Answer::json(200, "{}"));
    assert_eq!(count(&one, &upstream).await, count(&other, &upstream).await);
    let counted = teach(&one, &upstream).await;
    let learnt = count(&other, &upstream).await;
    assert!((1.55..1.65).contains(&(learnt as f64 / counted as f64)), "{counted} {learnt}");
    assert_same(&one, &other, &upstream).await;
    // What the other one learns counts, too.
    teach(&other, &upstream).await;
    assert_same(&one, &other, &upstream).await;
    let keys = redis.cli(&["--scan", "--pattern", "*calibration*"]).await;
    assert_eq!(keys.lines().count(), 1, "{keys}");
    assert!(redis.cli(&["TTL", keys.trim()]).await.trim().parse::<i64>().unwrap() > 0);
}

#[tokio::test]
async fn a_restarted_process_decides_the_same() {
    for signal in [Signal::TERM, Signal::KILL] {
        let (directory, upstream) = (TempDir::new().unwrap(), MockUpstream::start().await);
        let store = |name: &str| format!("embedded:{}", directory.path().join(name).display());
        // The control runs without an interruption.
        let (mut first, control) =
            (start(&store("data"), &upstream).await, start(&store("control"), &upstream).await);
        let counted = teach(&first, &upstream).await;
        teach(&control, &upstream).await;
        first.signal(signal);
        first.ended().await;
        let second = start(&store("data"), &upstream).await;
        assert_same(&control, &second, &upstream).await;
        let learnt = count(&second, &upstream).await;
        assert!((1.55..1.65).contains(&(learnt as f64 / counted as f64)), "{counted} {learnt}");
    }
}

#[tokio::test]
async fn another_tenant_on_the_same_store_is_not_affected() {
    let (redis, upstream) = (RedisServer::start().await, MockUpstream::start().await);
    let one = start(&redis.url(), &upstream).await;
    let counted = teach(&one, &upstream).await;
    let other = start(&redis.url(), &upstream).await;
    let sent = body("mystery-1", &conversation(4), &[]);
    let reply = exchange(other.address, post(CHAT, &[("authorization", "Bearer eve")], sent)).await;
    assert_eq!(figure(&reply, "x-tidegate-tokens-before"), counted);
}
