//! If the client disconnects, the call to the upstream ends.

use crate::support::client::{CHAT, Client, QUESTION, chat, exchange, get, post, request};
use crate::support::cores::quiet;
use crate::support::http2::{Http2Client, next_text};
use crate::support::tidegate::{Setup, Tidegate};
use std::time::{Duration, Instant};
use tidegate_testkit::{Answer, MockUpstream, Unreachable};

/// Far less than any timeout. A machine that is busy with other tests may take longer now and then, but not always.
const SOON: Duration = Duration::from_millis(100);
const TRIES: usize = 3;
const MOST_TRIES: usize = 40;

/// How long the call went on after its client had left, in each of some tries.
#[derive(Debug, Default)]
struct Delays(Vec<Duration>);

impl Delays {
    /// Whether to try again: a few times at least, and until the call has ended soon once.
    fn wants_more(&self) -> bool {
        let was_soon = self.0.iter().any(|delay| *delay < SOON);
        assert!(was_soon || self.0.len() < MOST_TRIES, "{self:?}");
        !was_soon || self.0.len() < TRIES
    }

    fn push(&mut self, delay: Duration) {
        self.0.push(delay);
    }
}

#[tokio::test]
async fn leaving_before_the_first_byte_ends_the_upstream_call() {
    let _quiet = quiet().await;
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::new(200).stall());
    let tidegate = Tidegate::start("", &upstream).await;
    for request in [chat(), get("/v1/models")] {
        let mut delays = Delays::default();
        while delays.wants_more() {
            let mut client = Client::connect(tidegate.address).await;
            client.send(&request).await;
            upstream.next_request().await;
            let left = Instant::now();
            drop(client);
            delays.push(upstream.disconnected().await.duration_since(left));
        }
    }
    upstream.until_released().await;
}

#[tokio::test]
async fn leaving_mid_stream_ends_the_upstream_call() {
    let _quiet = quiet().await;
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::sse(["{}"]).stall());
    let tidegate = Tidegate::start("", &upstream).await;
    for request in [chat(), get("/v1/threads")] {
        let mut delays = Delays::default();
        while delays.wants_more() {
            let mut client = Client::connect(tidegate.address).await;
            client.send(&request).await;
            let mut reply = client.head().await;
            client.piece(&mut reply).await.unwrap();
            let left = Instant::now();
            drop(client);
            delays.push(upstream.disconnected().await.duration_since(left));
        }
    }
    upstream.until_released().await;
}

#[tokio::test]
async fn an_http2_reset_before_the_first_byte_ends_the_upstream_call() {
    let _quiet = quiet().await;
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::new(200).stall());
    let tidegate = Tidegate::start("", &upstream).await;
    let client = Http2Client::connect(tidegate.address).await;
    let mut delays = Delays::default();
    while delays.wants_more() {
        let asking = client.clone();
        let asking = tokio::spawn(async move { asking.send("POST", CHAT, QUESTION).await });
        upstream.next_request().await;
        let left = Instant::now();
        asking.abort();
        delays.push(upstream.disconnected().await.duration_since(left));
    }
    // The connection itself stays open.
    upstream.answer(Answer::json(200, "{}"));
    assert_eq!(client.send("POST", CHAT, QUESTION).await.unwrap().status(), 200);
}

#[tokio::test]
async fn an_http2_reset_mid_stream_ends_the_upstream_call() {
    let _quiet = quiet().await;
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::sse(["{}"]).stall());
    let tidegate = Tidegate::start("", &upstream).await;
    let client = Http2Client::connect(tidegate.address).await;
    let mut delays = Delays::default();
    while delays.wants_more() {
        let mut body = client.send("POST", CHAT, QUESTION).await.unwrap().into_body();
        next_text(&mut body).await.unwrap();
        let left = Instant::now();
        drop(body);
        delays.push(upstream.disconnected().await.duration_since(left));
    }
}

#[tokio::test]
async fn leaving_resets_the_stream_to_an_http2_upstream() {
    let _quiet = quiet().await;
    let upstream = MockUpstream::start_h2c().await;
    let config = "[upstreams.default]\nprotocol = \"http2\"\n[server]\nworkers = 1\n";
    let tidegate = Tidegate::start(config, &upstream).await;
    for answer in [Answer::new(200).stall(), Answer::sse(["{}"]).stall()] {
        upstream.answer(answer.clone());
        let mut delays = Delays::default();
        while delays.wants_more() {
            let mut client = Client::connect(tidegate.address).await;
            client.send(chat()).await;
            upstream.next_request().await;
            if answer.steps.len() > 1 {
                client.head().await;
            }
            let left = Instant::now();
            drop(client);
            delays.push(upstream.disconnected().await.duration_since(left));
        }
    }
    assert_eq!(upstream.connections(), 1, "the connection stays open for other requests");
}

#[tokio::test]
async fn leaving_mid_upload_ends_the_upstream_call() {
    let _quiet = quiet().await;
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    let mut delays = Delays::default();
    while delays.wants_more() {
        let mut client = Client::connect(tidegate.address).await;
        let before = upstream.received_bytes();
        client.send(post("/v1/files", &[("content-length", "1000000")], "the beginning")).await;
        upstream.until_received_bytes(before + 1).await;
        let left = Instant::now();
        drop(client);
        upstream.until_released().await;
        delays.push(left.elapsed());
    }
}

#[tokio::test]
async fn leaving_mid_upload_is_logged_as_client_closed() {
    let upstream = MockUpstream::start().await;
    let mut tidegate = Tidegate::start("", &upstream).await;
    let mut client = Client::connect(tidegate.address).await;
    client.send(post("/v1/files", &[("content-length", "1000000")], "the beginning")).await;
    upstream.until_received_bytes(1).await;
    drop(client);
    let line = tidegate.access_log(1).await.remove(0);
    assert_eq!((&line["outcome"], &line["status"]), (&"client_closed".into(), &499.into()), "{line}");
    assert!(!tidegate.output().contains("WARN"), "the upstream is not at fault: {}", tidegate.output());
}

#[tokio::test]
async fn leaving_during_a_large_body_ends_the_upstream_call() {
    let _quiet = quiet().await;
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::new(200).fill(1 << 30));
    let tidegate = Tidegate::start("", &upstream).await;
    let mut delays = Delays::default();
    while delays.wants_more() {
        let mut client = Client::connect(tidegate.address).await;
        client.send(chat()).await;
        client.head().await;
        let left = Instant::now();
        drop(client);
        delays.push(upstream.disconnected().await.duration_since(left));
    }
}

#[tokio::test]
async fn leaving_while_tidegate_connects_ends_the_attempt() {
    let _quiet = quiet().await;
    let nowhere = Unreachable::start();
    let config = "[server]\nworkers = 1\n";
    let mut tidegate = Setup::new(config).upstream(&nowhere.url()).start().await;
    let mut delays = Delays::default();
    while delays.wants_more() {
        let number = delays.0.len() + 1;
        let mut client = Client::connect(tidegate.address).await;
        client.send(chat()).await;
        // The only worker answers this request after it has started to connect for the other one.
        assert_eq!(exchange(tidegate.address, get("/v1/../x")).await.status, 400);
        let left = Instant::now();
        drop(client);
        // The log waits 20 ms for more lines, which is part of the measured time.
        let log = tidegate.access_log(2 * number).await;
        delays.push(left.elapsed());
        let last = &log[2 * number - 1];
        assert_eq!((&last["outcome"], &last["status"]), (&"client_closed".into(), &499.into()));
    }
}

#[tokio::test]
async fn an_incomplete_body_never_reaches_the_upstream() {
    let upstream = MockUpstream::start().await;
    let mut tidegate = Tidegate::start("", &upstream).await;
    let mut client = Client::connect(tidegate.address).await;
    client.send(request("POST", CHAT, &[("content-length", "1000")], b"{\"model\":")).await;
    drop(client);
    let line = tidegate.access_log(1).await.remove(0);
    assert_eq!((&line["outcome"], &line["status"]), (&"client_closed".into(), &499.into()), "{line}");
    assert_eq!(upstream.connections(), 0);
}
