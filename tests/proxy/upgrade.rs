//! WebSocket and other upgrades pass through both ways.

use crate::support::client::{Client, exchange, get, request};
use crate::support::tidegate::{Setup, Tidegate};
use crate::support::within;
use rustix::process::Signal;
use serde_json::Value;
use std::net::SocketAddr;
use tidegate_testkit::{Answer, Listen, MockUpstream, Recording};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

const ACCEPT: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Accept: yes\r\n\r\n";

fn upgrade() -> Vec<u8> {
    let headers = [
        ("connection", "keep-alive, Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-key", "dGVzdA=="),
        ("authorization", "Bearer mine"),
    ];
    request("GET", "/v1/realtime?model=m", &headers, b"")
}

async fn head_of(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(within("the head of the request", stream.read_u8()).await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

/// An upstream that accepts one upgrade and returns whatever it gets. Its result is the head of the request.
async fn echo(accept: Vec<u8>) -> (SocketAddr, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let head = head_of(&mut stream).await;
        stream.write_all(&accept).await.unwrap();
        let (mut from, mut to) = stream.split();
        tokio::io::copy(&mut from, &mut to).await.unwrap();
        to.shutdown().await.unwrap();
        head
    });
    (address, serving)
}

async fn start(upstream: SocketAddr, config: &str) -> Tidegate {
    Setup::new(config).upstream(&format!("http://{upstream}")).start().await
}

fn ended(line: &Value) -> (&str, u64) {
    (line["outcome"].as_str().unwrap(), line["status"].as_u64().unwrap())
}

#[tokio::test]
async fn an_upgraded_connection_passes_both_ways() {
    let (address, upstream) = echo([ACCEPT, b"first"].concat()).await;
    let mut tidegate = start(address, "").await;
    let mut client = Client::connect(tidegate.address).await;
    client.send(upgrade()).await;
    let reply = client.head().await;
    assert_eq!((reply.status, reply.header("upgrade")), (101, Some("websocket")));
    assert_eq!(
        (reply.header("connection"), reply.header("sec-websocket-accept")),
        (Some("upgrade"), Some("yes"))
    );
    assert_eq!(client.exactly(5).await, b"first");
    // Neither valid HTTP/1 nor text.
    let frame = [b"\x81\x85GET / HTTP/1.1\r\n\0\xff".as_slice(), &[7; 100_000]].concat();
    client.send(&frame).await;
    assert_eq!(client.exactly(frame.len()).await, frame);
    drop(client);
    let head = within("the upstream's connection ends", upstream).await.unwrap().to_ascii_lowercase();
    assert!(head.starts_with("get /v1/realtime?model=m http/1.1\r\n"), "{head}");
    for line in [
        "connection: upgrade",
        "upgrade: websocket",
        "sec-websocket-key: dgvzda==",
        "authorization: bearer mine",
    ] {
        assert!(head.contains(&format!("{line}\r\n")), "{head}");
    }
    let line = tidegate.access_log(1).await.remove(0);
    assert_eq!(ended(&line), ("answered", 101), "{line}");
    assert_eq!(line["bytes_out"], 5 + frame.len(), "{line}");
}

#[tokio::test]
async fn an_upgrade_uses_http1_where_other_requests_use_http2() {
    let upstream = MockUpstream::bind(([127, 0, 0, 1], 0).into(), Listen::Tls, Recording::On).await;
    let config = "[upstreams.default]\nca = \"ca.pem\"\n";
    let setup = Setup::new(config).file("ca.pem", upstream.ca_pem()).upstream(&upstream.url());
    let tidegate = setup.start().await;
    assert_eq!(exchange(tidegate.address, get("/v1/models")).await.status, 200);
    upstream.answer(Answer::raw([ACCEPT, b"first"].concat()));
    let mut client = Client::connect(tidegate.address).await;
    client.send(upgrade()).await;
    assert_eq!(client.head().await.status, 101);
    assert_eq!(client.exactly(5).await, b"first");
}

#[tokio::test]
async fn a_refused_upgrade_is_answered_like_any_request() {
    let upstream = MockUpstream::start_http1().await;
    upstream.answer(Answer::json(401, r#"{"error":{"message":"no"}}"#));
    let tidegate = Tidegate::start("", &upstream).await;
    let reply = exchange(tidegate.address, upgrade()).await;
    assert_eq!((reply.status, reply.text().as_str()), (401, r#"{"error":{"message":"no"}}"#));
}

#[tokio::test]
async fn nothing_is_upgraded_that_was_not_asked_for() {
    let upstream = MockUpstream::start_http1().await;
    let tidegate = Tidegate::start("", &upstream).await;
    // Without `Connection: upgrade` the header means nothing, and HTTP/2 is ours to speak.
    for headers in
        [[("upgrade", "websocket"), ("connection", "close")], [("upgrade", "h2c"), ("connection", "upgrade")]]
    {
        let reply = exchange(tidegate.address, request("GET", "/v1/models", &headers, b"")).await;
        assert_eq!(reply.status, 200);
        assert_eq!(upstream.next_request().await.header("upgrade"), None);
    }
    upstream.answer(Answer::raw(ACCEPT));
    let reply = exchange(tidegate.address, get("/v1/models")).await;
    assert_eq!((reply.status, reply.error_code().as_str()), (502, "upstream_unreachable"));
}

#[tokio::test]
async fn a_silent_tunnel_ends_after_the_idle_timeout() {
    let (address, _upstream) = echo(ACCEPT.to_vec()).await;
    let mut tidegate = start(address, "[upstreams.default]\nidle_timeout = \"200ms\"\n").await;
    let mut client = Client::connect(tidegate.address).await;
    client.send(upgrade()).await;
    assert_eq!(client.head().await.status, 101);
    assert_eq!(client.until_closed().await, b"");
    let line = tidegate.access_log(1).await.remove(0);
    assert_ne!(ended(&line).0, "answered", "{line}");
}

#[tokio::test]
async fn a_tunnel_is_cut_when_the_drain_time_is_over() {
    let (address, _upstream) = echo(ACCEPT.to_vec()).await;
    let mut tidegate = start(address, "[server]\ndrain_timeout = \"300ms\"\n").await;
    let mut client = Client::connect(tidegate.address).await;
    client.send(upgrade()).await;
    assert_eq!(client.head().await.status, 101);
    tidegate.signal(Signal::TERM);
    // It is still open while the drain lasts.
    client.send(b"still here").await;
    assert_eq!(client.exactly(10).await, b"still here");
    client.until_closed().await;
    assert!(tidegate.ended().await.success());
    let line = tidegate.access_log(1).await.remove(0);
    assert_eq!(ended(&line), ("refused", 101), "{line}");
}

#[tokio::test]
async fn whoever_breaks_a_tunnel_off_is_named() {
    // Closing a socket with something unread resets the connection.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut tidegate = start(listener.local_addr().unwrap(), "").await;
    let mut client = Client::connect(tidegate.address).await;
    client.send(upgrade()).await;
    let (mut upstream, _) = listener.accept().await.unwrap();
    head_of(&mut upstream).await;
    upstream.write_all(ACCEPT).await.unwrap();
    assert_eq!(client.head().await.status, 101);
    client.send(b"unread").await;
    // It is there, and stays unread.
    assert_eq!(upstream.peek(&mut [0]).await.unwrap(), 1);
    drop(upstream);
    client.until_closed().await;
    let line = tidegate.access_log(1).await.remove(0);
    assert_eq!(ended(&line), ("upstream_broke", 101), "{line}");
}
