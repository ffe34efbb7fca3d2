//! Clients that do not read what they asked for.

use crate::support::client::{CHAT, Client, QUESTION, chat};
use crate::support::http2::Http2Client;
use crate::support::tidegate::Tidegate;
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
    let tidegate = Tidegate::start(CONFIG, &upstream).await;
    let client = Http2Client::connect(tidegate.address).await;
    let unread = client.send("POST", CHAT, QUESTION).await.unwrap();
    upstream.disconnected().await;
    // The connection and its other streams are not affected.
    upstream.answer(Answer::json(200, "{}"));
    assert_eq!(client.send("POST", CHAT, QUESTION).await.unwrap().status(), 200);
    drop(unread);
}
