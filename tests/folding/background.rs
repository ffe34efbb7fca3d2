//! Background summaries: only a request that would not fit without the summary waits for it.

use super::scene::{
    assert_fits, degraded, edits, send, start, summarization, summarizer, trigger, upstream, with_budget,
    with_summarizer,
};
use crate::support::chat::{body, chat};
use crate::support::reply::edited;
use crate::support::{until, within};
use std::cell::Cell;
use std::time::Duration;
use tidegate_testkit::{Answer, Gate};

#[tokio::test]
async fn the_request_after_the_trigger_has_the_summary() {
    let upstream = upstream().await;
    let tidegate = start(&summarization(""), &upstream).await;
    let (reply, forwarded) = send(&tidegate, &upstream, "a", &chat(4)).await;
    assert_eq!(forwarded.body, body(&chat(4)));
    assert_eq!((edits(&reply), trigger(&reply)), ("masked=0,folded=0,dropped=0", Some("turns")));
    assert_eq!(degraded(&reply), None);
    // A repeated request would be forwarded with the same bytes, so each try sends the next turn.
    let asked = Cell::new(4);
    let ask = async || {
        asked.set(asked.get() + 1);
        let messages = chat(asked.get());
        let (reply, forwarded) = send(&tidegate, &upstream, "a", &messages).await;
        (reply, forwarded, messages)
    };
    let (reply, forwarded, messages) =
        until("a summary", Duration::from_secs(10), ask, |(reply, ..)| edited(reply, "folded") > 0).await;
    let folded = edited(&reply, "folded");
    assert_eq!(forwarded.summary().unwrap().covered, folded);
    assert_eq!(forwarded.messages[0], messages[0]);
    assert_eq!(forwarded.messages[2..], messages[1 + folded..]);
}

/// The summarizer does not answer until the client has its response, so the request cannot have waited for it.
#[tokio::test]
async fn no_request_within_budget_waits_for_the_summary() {
    let (upstream, summarizer) = (upstream().await, summarizer().await);
    let gate = Gate::new();
    summarizer.then(Answer::json(200, "").wait(&gate));
    let tidegate = start(&with_summarizer(&summarization(""), &summarizer, "50s"), &upstream).await;
    let (_, forwarded) = within("the answer", send(&tidegate, &upstream, "a", &chat(4))).await;
    assert_eq!(forwarded.summary(), None);
    within("the summarizer is asked", summarizer.next_request()).await;
    // Requests that arrive meanwhile do not wait either, and the summarizer is called only once.
    let (_, forwarded) = within("the next answer", send(&tidegate, &upstream, "a", &chat(5))).await;
    assert_eq!(forwarded.summary(), None);
    assert_eq!(summarizer.requests().len(), 1);
    gate.open();
}

#[tokio::test]
async fn a_request_over_budget_waits_for_the_summary() {
    let (upstream, summarizer) = (upstream().await, summarizer().await);
    let settings = with_budget(&summarization(""), 1200);
    let tidegate = start(&with_summarizer(&settings, &summarizer, "20s"), &upstream).await;
    let (reply, forwarded) = send(&tidegate, &upstream, "a", &chat(6)).await;
    assert_eq!((trigger(&reply), degraded(&reply)), (Some("budget"), None));
    assert!(forwarded.summary().unwrap().text.contains(super::scene::FACT));
    assert_eq!(edited(&reply, "dropped"), 0);
    assert_fits(&reply);
    assert_eq!(summarizer.requests().len(), 1);
}
