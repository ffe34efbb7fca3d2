//! Requests in flight, and bodies that take too long.

use super::scene::{assert_overloaded, metric, small};
use crate::support::client::{CHAT, Client, admin, exchange, post};
use crate::support::http2::Http2Client;
use crate::support::raw_http2::{REFUSED_STREAM, frame, headers};
use crate::support::tidegate::Tidegate;
use crate::support::within;
use std::time::Duration;
use tidegate_testkit::{Answer, MockUpstream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[tokio::test]
async fn requests_in_flight_are_limited() {
    let upstream = MockUpstream::start().await;
    upstream.script(|_| Answer::sse(["{}"]).stall());
    let mut tidegate = Tidegate::start("[server]\nmax_requests = 3\n", &upstream).await;
    let mut held = Vec::new();
    for number in 0..3 {
        let mut client = Client::connect(tidegate.address).await;
        // The path of a request that nothing is managed of, so that only the limit itself counts.
        client.send(post("/v1/embeddings", &[], format!("{{\"input\":\"{number}\"}}"))).await;
        client.head().await;
        held.push(client);
    }
    for path in [CHAT, "/v1/embeddings"] {
        assert_overloaded(&exchange(tidegate.address, post(path, &[], "{}")).await);
    }
    assert_eq!(metric(&tidegate, "tidegate_requests_in_flight", &[]).await, 3.0);
    assert_eq!(admin(tidegate.admin, "/api/overview").await.json()["process"]["in_flight"], 3);
    assert_eq!(metric(&tidegate, "tidegate_overload_total", &["limit=\"requests\""]).await, 2.0);
    assert_eq!(admin(tidegate.admin, "/readyz").await.text(), "ready, overloaded\n");
    let lines = tidegate.access_log(2).await;
    assert!(lines.iter().all(|line| line["reason"] == "overloaded_requests"), "{lines:?}");
    drop(held);
    tidegate.access_log(5).await;
    upstream.script(|_| Answer::chat("hello"));
    assert_eq!(exchange(tidegate.address, small("later")).await.status, 200);
}

#[tokio::test]
async fn the_last_places_are_for_conversations_under_way() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("[server]\nmax_requests = 10\n", &upstream).await;
    assert_eq!(exchange(tidegate.address, small("known")).await.status, 200);
    upstream.script(|asked| {
        let is_held = asked.target.contains("embeddings");
        if is_held { Answer::sse(["{}"]).stall() } else { Answer::chat("hello") }
    });
    let mut held = Vec::new();
    for _ in 0..9 {
        let mut client = Client::connect(tidegate.address).await;
        client.send(post("/v1/embeddings", &[], "{}")).await;
        client.head().await;
        held.push(client);
    }
    let refused = exchange(tidegate.address, small("strange")).await;
    assert_overloaded(&refused);
    assert!(refused.text().contains("under way"), "{}", refused.text());
    assert_eq!(exchange(tidegate.address, small("known")).await.status, 200);
    drop(held);
}

#[tokio::test]
async fn a_body_that_trickles_is_refused() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("[server]\nrequest_timeout = \"500ms\"\n", &upstream).await;
    let mut client = Client::connect(tidegate.address).await;
    client.send(post(CHAT, &[("content-length", "100000")], "{")).await;
    // Each byte would restart a timeout that only measures pauses.
    let mut to = client.take_sender();
    let trickle = tokio::spawn(async move {
        let mut ticks = tokio::time::interval(Duration::from_millis(50));
        while to.write_all(b" ").await.is_ok() {
            ticks.tick().await;
        }
    });
    let reply = client.reply().await;
    assert_eq!((reply.status, reply.error_code().as_str()), (408, "request_timeout"));
    trickle.abort();
    assert_eq!(upstream.connections(), 0);
}

#[tokio::test]
async fn the_streams_of_a_connection_are_limited() {
    let upstream = MockUpstream::start().await;
    upstream.script(|_| Answer::sse(["{}"]).stall());
    let tidegate = Tidegate::start("[server]\nmax_concurrent_streams = 2\n", &upstream).await;
    let client = Http2Client::connect(tidegate.address).await;
    let one = client.send("POST", "/v1/embeddings", "{}").await.unwrap();
    let _two = client.send("POST", "/v1/embeddings", "{}").await.unwrap();
    // A client that knows the limit waits for a free stream.
    let third = tokio::spawn({
        let client = client.clone();
        async move { client.send("POST", "/v1/embeddings", "{}").await.map(|response| response.status()) }
    });
    drop(one);
    assert_eq!(third.await.unwrap().unwrap(), 200);
}

#[tokio::test]
async fn a_client_that_ignores_the_limit_of_streams_is_refused() {
    const SETTINGS: u8 = 4;
    const RST_STREAM: u8 = 3;
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("[server]\nmax_concurrent_streams = 2\n", &upstream).await;
    let mut stream = TcpStream::connect(tidegate.address).await.unwrap();
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
    let head = [(":method", "POST"), (":scheme", "http"), (":authority", "localhost"), (":path", CHAT)];
    // None of the bodies ends.
    let opened = [1, 3, 5].map(|id| headers(id, false, &head)).concat();
    stream.write_all(&[frame(SETTINGS, 0, 0, &[]), opened].concat()).await.unwrap();
    let refusal = async {
        loop {
            let mut head = [0; 9];
            stream.read_exact(&mut head).await.expect("the connection goes on");
            let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
            stream.read_exact(&mut payload).await.expect("the connection goes on");
            if head[3] == RST_STREAM {
                return (head[8], payload);
            }
        }
    };
    let (id, code) = within("a stream is refused", refusal).await;
    assert_eq!((id, code), (5, REFUSED_STREAM.to_be_bytes().to_vec()));
}
