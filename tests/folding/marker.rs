//! Messages dropped after a failed summary are folded as soon as a summarizer works.

use super::forwarded::Forwarded;
use super::scene::{
    ask, assert_fits, degraded, send, start, summarization, summarizer, upstream, with_budget, with_store,
    with_summarizer,
};
use crate::support::chat::{chat, user};
use crate::support::reply::{Reply, edited};
use tempfile::TempDir;
use tidegate_testkit::{Answer, MockUpstream, RedisServer};

fn settings(store: &str, summarizer: &MockUpstream) -> String {
    let settings = with_budget(&with_store(&summarization(""), store), 1500);
    with_summarizer(&settings, summarizer, "1s")
}

/// The same with too little room for any summary, so that the built-in summarizer fails, too.
fn without_room(settings: &str) -> String {
    settings.replace("[context.fold]\n", "[context.fold]\nmax_tokens = 20\n")
}

async fn broken() -> MockUpstream {
    let summarizer = MockUpstream::start().await;
    summarizer.answer(Answer::new(500));
    summarizer
}

/// Asserts that a summary covers the dropped messages and the marker is gone.
fn assert_folded(reply: &Reply, forwarded: &Forwarded, missing: usize) {
    assert_fits(reply);
    assert_eq!((degraded(reply), edited(reply, "dropped"), forwarded.marker()), (None, 0, None));
    let summary = forwarded.summary().expect("a summary");
    assert!(
        summary.covered >= missing,
        "{missing} messages were dropped, and {} are covered",
        summary.covered
    );
}

#[tokio::test]
async fn another_process_on_the_same_redis_folds_dropped_messages() {
    let (redis, upstream) = (RedisServer::start().await, upstream().await);
    let (broken, good) = (broken().await, summarizer().await);
    let one = start(&without_room(&settings(&redis.url(), &broken)), &upstream).await;
    let (reply, forwarded) = send(&one, &upstream, "a", &chat(6)).await;
    let missing = edited(&reply, "dropped");
    assert!(missing > 0 && forwarded.marker().is_some());
    let other = start(&settings(&redis.url(), &good), &upstream).await;
    let (reply, forwarded) = send(&other, &upstream, "a", &chat(7)).await;
    assert_folded(&reply, &forwarded, missing);
    // The first process uses that summary, although its own summarizer still fails.
    let (reply, forwarded) = send(&one, &upstream, "a", &chat(7)).await;
    assert!(forwarded.summary().is_some(), "{:?}", reply.headers);
}

#[tokio::test]
async fn the_next_process_on_the_same_directory_folds_dropped_messages() {
    let (directory, upstream) = (TempDir::new().unwrap(), upstream().await);
    let (broken, good) = (broken().await, summarizer().await);
    let url = format!("embedded:{}", directory.path().join("data").display());
    let one = start(&without_room(&settings(&url, &broken)), &upstream).await;
    let (reply, _) = send(&one, &upstream, "a", &chat(6)).await;
    let missing = edited(&reply, "dropped");
    assert!(missing > 0);
    one.stop().await;
    let next = start(&settings(&url, &good), &upstream).await;
    let (reply, forwarded) = send(&next, &upstream, "a", &chat(7)).await;
    assert_folded(&reply, &forwarded, missing);
}

/// The messages that must stay are over budget on their own.
#[tokio::test]
async fn a_request_with_nothing_to_cut_is_refused() {
    let (upstream, broken) = (upstream().await, broken().await);
    let tidegate = start(&settings("memory:", &broken).replace("1500", "150"), &upstream).await;
    let mut messages = chat(4);
    // More than the whole window, however the model counts.
    messages.push(user(&"a long question ".repeat(3_000)));
    let reply = ask(tidegate.address, "a", &messages).await;
    assert_eq!((reply.status, reply.error_code().as_str()), (422, "context_budget_exceeded"));
}
