//! A summarizer makes only so many summaries at once, and costs only so much within an hour.

use super::scene::{ask, degraded, send, start, summarization, summarizer, upstream, with_summarizer};
use crate::support::chat::chat;
use crate::support::client::admin;
use crate::support::metrics::value;
use crate::support::tidegate::Tidegate;
use tidegate_testkit::{Answer, MockUpstream};

async fn limited(limits: &str, summarizer: &MockUpstream) -> (MockUpstream, Tidegate) {
    let upstream = upstream().await;
    let settings = with_summarizer(&summarization("mode = \"inline\"\n"), summarizer, "3s");
    let tidegate = start(&format!("{settings}{limits}\n"), &upstream).await;
    (upstream, tidegate)
}

async fn dropped(tidegate: &Tidegate, reason: &str) -> Option<f64> {
    let page = admin(tidegate.admin, "/metrics").await.text();
    value(&page, "tidegate_summarizer_failures_total", &[&format!("reason=\"{reason}\"")])
}

#[tokio::test]
async fn a_summarizer_that_has_cost_its_ceiling_is_not_asked() {
    let summarizer = summarizer().await;
    let (upstream, tidegate) = limited("max_cost_usd_per_hour = 0.0000001", &summarizer).await;
    let (reply, forwarded) = send(&tidegate, &upstream, "a", &chat(4)).await;
    assert_eq!(degraded(&reply), None);
    assert!(forwarded.summary().is_some());
    let asked = summarizer.requests().len();
    for name in ["b", "c"] {
        let (reply, forwarded) = send(&tidegate, &upstream, name, &chat(4)).await;
        assert_eq!(degraded(&reply), Some("summarizer_cost_ceiling"));
        assert!(forwarded.summary().is_some(), "the built-in summarizer stands in");
    }
    assert_eq!(summarizer.requests().len(), asked);
    assert_eq!(dropped(&tidegate, "summarizer_cost_ceiling").await, Some(2.0));
}

#[tokio::test]
async fn a_burst_of_triggers_is_no_burst_of_calls() {
    let summarizer = MockUpstream::start().await;
    summarizer.answer(Answer::new(200).stall());
    let limits = "max_concurrent = 3\nmax_concurrent_per_tenant = 2\nmax_queued = 1";
    let (_upstream, tidegate) = limited(limits, &summarizer).await;
    let names = ["a", "b", "c", "d", "e", "f"];
    let asks = names.map(|name| {
        let address = tidegate.address;
        tokio::spawn(async move { ask(address, name, &chat(4)).await })
    });
    let mut full = 0;
    for reply in asks {
        let reply = reply.await.unwrap();
        assert_eq!(reply.status, 200, "{}", reply.text());
        match degraded(&reply) {
            Some("summarizer_queue_full") => full += 1,
            reason => assert_eq!(reason, Some("summarizer_timeout")),
        }
    }
    // Two are made. One waits for half of its time, in vain. Nobody waits behind it.
    assert_eq!(full, 4);
    assert_eq!(dropped(&tidegate, "summarizer_queue_full").await, Some(4.0));
}
