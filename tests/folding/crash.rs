//! A process that dies while it makes a summary does not keep others from making one.

use super::scene::{
    ask, assert_fits, degraded, good_summary, send, start, summarization, upstream, with_budget, with_store,
    with_summarizer,
};
use crate::support::chat::{body, chat};
use crate::support::client::{CHAT, Client, post};
use crate::support::reply::edited;
use crate::support::until;
use rustix::process::Signal;
use std::cell::Cell;
use std::time::Duration;
use tidegate_testkit::{Answer, MockUpstream, RedisServer};

/// The summarizer's timeout, the margin of the lease and some tolerance.
const LEASE: Duration = Duration::from_secs(1 + 5 + 4);

#[tokio::test]
async fn a_killed_holder_blocks_folding_only_until_its_lease_expires() {
    let (redis, upstream, summarizer) =
        (RedisServer::start().await, upstream().await, MockUpstream::start().await);
    summarizer.answer(good_summary());
    summarizer.then(Answer::json(200, "").stall());
    let settings = with_store(&with_budget(&summarization(""), 1500), &redis.url());
    let settings = with_summarizer(&settings, &summarizer, "1s");
    let mut holder = start(&settings, &upstream).await;
    let other = start(&settings, &upstream).await;
    let address = holder.address;
    let hanging = tokio::spawn(async move {
        let mut client = Client::connect(address).await;
        let headers = [("x-conversation-id", "a"), ("authorization", "Bearer ada")];
        client.send(post(CHAT, &headers, body(&chat(6)))).await;
        client.until_closed().await
    });
    summarizer.next_request().await;
    holder.signal(Signal::KILL);
    holder.ended().await;
    assert!(hanging.await.unwrap().is_empty(), "it was answered before it died");

    // Meanwhile no request is refused.
    let (reply, forwarded) = send(&other, &upstream, "a", &chat(6)).await;
    assert_fits(&reply);
    assert_eq!(degraded(&reply), Some("summarizer_busy"));
    assert!(forwarded.marker().is_some());
    let asked = Cell::new(6);
    let again = async || {
        asked.set(asked.get() + 1);
        ask(other.address, "a", &chat(asked.get())).await
    };
    let reply = until("it folds", LEASE, again, |reply| edited(reply, "folded") > 0).await;
    assert_fits(&reply);
    assert_eq!((degraded(&reply), edited(&reply, "dropped")), (None, 0));
    assert_eq!(summarizer.requests().len(), 2);
}
