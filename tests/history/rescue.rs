//! A history that only the proxy holds, and an upstream that refuses it as too long.

use super::scene::{OWNER, completion, said, texts};
use crate::support::client::{CHAT, exchange, post, request};
use crate::support::reply::{Reply, edited};
use crate::support::tidegate::{Setup, Tidegate};
use serde_json::{Value, json};
use tidegate_testkit::{Answer, MockUpstream, Recorded, RedisServer};

const WINDOW: usize = 6_000;

fn answer(request: &Recorded) -> Answer {
    let used = request.body.len() / 4;
    if used > WINDOW {
        let message = format!(
            "This model's maximum context length is {WINDOW} tokens. However, your messages resulted in {used} tokens."
        );
        return Answer::error(400, "context_length_exceeded", &message);
    }
    let last = texts(&request.json()).pop().unwrap_or_default();
    completion(
        &json!({ "role": "assistant", "content": format!("answer to {}", &last[..last.len().min(8)]) }),
    )
}

async fn start(redis: &RedisServer, upstream: &MockUpstream, more: &str) -> Tidegate {
    let config = format!(
        "[store]\nurl = \"{}\"\ntimeout = \"10s\"\n[context]\nhistory = \"proxy\"\nstrategy = \"hybrid\"\n[context.fold]\nwhen = {{ turns = 1000 }}\n{more}",
        redis.url()
    );
    Setup::new(&config).upstream(&upstream.url()).start().await
}

async fn say(tidegate: &Tidegate, text: &str, headers: &[(&str, &str)]) -> Reply {
    let body = json!({ "model": "fresh-model", "messages": [said(text)] }).to_string();
    exchange(tidegate.address, post(CHAT, &[&OWNER[..], headers].concat(), body)).await
}

/// The texts of the whole log.
async fn log(tidegate: &Tidegate) -> Vec<String> {
    let read = request("GET", "/tidegate/v1/conversation", &OWNER, b"");
    let state: Value = exchange(tidegate.address, read).await.json();
    texts(&json!({ "messages": state["recent_messages"] }))
}

fn question(number: usize) -> String {
    format!("u{number:06} {}", "about the harbour and its tides, ".repeat(60))
}

#[tokio::test]
async fn a_history_that_is_too_long_is_rescued_and_its_turn_is_there_once() {
    let (redis, upstream) = (RedisServer::start().await, MockUpstream::start().await);
    upstream.script(answer);
    let processes = [start(&redis, &upstream, "").await, start(&redis, &upstream, "").await];
    let mut rescued = 0;
    for number in 0..20 {
        let key = format!("turn {number}");
        let key = [("idempotency-key", key.as_str())];
        let reply = say(&processes[number % 2], &question(number), &key).await;
        assert_eq!(reply.status, 200, "turn {number}: {}", reply.text());
        assert_eq!(reply.json()["choices"][0]["message"]["content"], format!("answer to u{number:06} "));
        if reply.header("x-tidegate-rescued").is_some() {
            assert!(edited(&reply, "folded") > 0, "{:?}", reply.headers);
            rescued += 1;
            let retried = say(&processes[number % 2], &question(number), &key).await;
            assert_eq!((retried.status, retried.header("x-tidegate-rescued")), (200, None));
        }
    }
    assert_eq!(rescued, 1, "the window is known then, in both processes");
    // All of it went upstream within the window, and every turn is in the history once.
    let accepted: Vec<Recorded> =
        upstream.requests().into_iter().filter(|request| request.body.len() / 4 <= WINDOW).collect();
    assert_eq!(accepted.len(), 21);
    let last = log(&processes[0]).await;
    assert_eq!(last[last.len() - 2..], [question(19), "answer to u000019 ".to_owned()]);
    let key = redis.cli(&["--scan", "--pattern", "tg:1:*:l"]).await;
    assert_eq!(redis.cli(&["LLEN", key.trim()]).await.trim(), "20");
}

#[tokio::test]
async fn a_turn_that_cannot_be_rescued_is_not_in_the_history() {
    let (redis, upstream) = (RedisServer::start().await, MockUpstream::start().await);
    upstream.script(answer);
    let tidegate = start(&redis, &upstream, "").await;
    assert_eq!(say(&tidegate, "u1", &[]).await.status, 200);
    let reply = say(&tidegate, &"x ".repeat(20_000), &[]).await;
    assert_eq!((reply.status, reply.error_code().as_str()), (400, "context_length_exceeded"));
    assert_eq!(log(&tidegate).await, ["u1", "answer to u1"]);
    assert_eq!(say(&tidegate, "u2", &[]).await.status, 200);
    assert_eq!(log(&tidegate).await, ["u1", "answer to u1", "u2", "answer to u2"]);
}
