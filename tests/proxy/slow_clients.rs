//! Clients that do not read what they asked for.

use crate::support::client::{CHAT, Client, QUESTION, admin, chat};
use crate::support::http2::{Http2Client, whole_text};
use crate::support::metrics::value;
use crate::support::tidegate::Tidegate;
use crate::support::{PATIENCE, until, within};
use http_body_util::BodyExt;
use serde_json::json;
use tidegate_testkit::{Answer, MockUpstream};

const CONFIG: &str = "[server]\nwrite_timeout = \"300ms\"\n[upstreams.default]\nidle_timeout = \"1h\"\n";

/// More than all buffers on the way hold.
fn large() -> Answer {
    Answer::new(200).fill(1 << 30)
}

#[tokio::test]
async fn a_client_that_does_not_read_loses_its_upstream() {
    let upstream = MockUpstream::start().await;
    upstream.answer(large());
    let mut tidegate = Tidegate::start(CONFIG, &upstream).await;
    let mut client = Client::connect(tidegate.address).await;
    client.send(chat()).await;
    upstream.disconnected().await;
    let line = tidegate.access_log(1).await.remove(0);
    assert_eq!(line["status"], 200, "{line}");
    assert_ne!(line["outcome"], "answered", "{line}");
    drop(client);
}

#[tokio::test]
async fn an_http2_client_that_closes_its_window_loses_its_upstream() {
    let upstream = MockUpstream::start().await;
    upstream.answer(large());
    let mut tidegate = Tidegate::start(CONFIG, &upstream).await;
    let client = Http2Client::connect(tidegate.address).await;
    let unread = client.send("POST", CHAT, QUESTION).await.unwrap();
    upstream.disconnected().await;
    let line = tidegate.access_log(1).await.remove(0);
    assert_eq!((&line["status"], &line["outcome"]), (&json!(200), &json!("client_closed")), "{line}");
    none_in_flight(&tidegate).await;
    // The connection and its other streams are not affected.
    upstream.answer(Answer::json(200, "{}"));
    assert_eq!(client.send("POST", CHAT, QUESTION).await.unwrap().status(), 200);
    // What was not read in time is not taken for whole.
    assert!(within("the stream ends", unread.into_body().collect()).await.is_err());
}

/// An upstream is not waited for longer because its client reads nothing of what it has sent.
#[tokio::test]
async fn an_idle_upstream_is_given_up_behind_a_closed_window() {
    let config = "[server]\nwrite_timeout = \"1h\"\n[upstreams.default]\nidle_timeout = \"300ms\"\n";
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::sse([&"x".repeat(100)]).stall());
    let tidegate = Tidegate::start(config, &upstream).await;
    let client = Http2Client::with_window(tidegate.address, 10).await;
    let unread = client.send("POST", CHAT, QUESTION).await.unwrap();
    upstream.disconnected().await;
    // The error event takes its turn behind what was not read.
    let text = whole_text(unread).await;
    assert!(text.contains("upstream_timeout"), "{text}");
    none_in_flight(&tidegate).await;
}

#[tokio::test]
async fn a_whole_answer_behind_a_closed_window_holds_no_place() {
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::sse(["{}"; 3]));
    let mut tidegate = Tidegate::start("[server]\nwrite_timeout = \"1s\"\n", &upstream).await;
    let client = Http2Client::with_window(tidegate.address, 1).await;
    let unread = client.send("POST", CHAT, QUESTION).await.unwrap();
    tidegate.access_log(1).await;
    none_in_flight(&tidegate).await;
    drop(unread);
}

async fn none_in_flight(tidegate: &Tidegate) {
    let in_flight = async || {
        let page = admin(tidegate.admin, "/metrics").await.text();
        value(&page, "tidegate_requests_in_flight", &[])
    };
    until("no request is in flight", PATIENCE, in_flight, |in_flight| *in_flight == Some(0.0)).await;
}
