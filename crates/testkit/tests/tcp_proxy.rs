//! The fault-injecting TCP proxy, seen from both ends.

#![allow(clippy::unwrap_used, reason = "a panic in a test is its failure message")]

use std::time::{Duration, Instant};

use tidegate_testkit::TcpProxy;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A client and the server's end of its connection, with the proxy between them.
async fn pair() -> (TcpProxy, TcpListener, TcpStream, TcpStream) {
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = TcpProxy::start(server.local_addr().unwrap()).await;
    let client = TcpStream::connect(proxy.address()).await.unwrap();
    let served = server.accept().await.unwrap().0;
    (proxy, server, client, served)
}

#[tokio::test]
async fn bytes_and_ends_are_forwarded_both_ways() {
    let (proxy, _server, mut client, mut served) = pair().await;
    client.write_all(b"ping").await.unwrap();
    client.shutdown().await.unwrap();
    let mut seen = String::new();
    served.read_to_string(&mut seen).await.unwrap();
    served.write_all(b"pong").await.unwrap();
    drop(served);
    client.read_to_string(&mut seen).await.unwrap();
    assert_eq!((seen.as_str(), proxy.connections()), ("pingpong", 1));
}

#[tokio::test]
async fn a_pause_holds_bytes_back() {
    let (proxy, _server, mut client, mut served) = pair().await;
    proxy.pause();
    client.write_all(b"x").await.unwrap();
    let early = tokio::time::timeout(Duration::from_millis(50), served.read_u8()).await;
    assert!(early.is_err(), "a byte passed a paused proxy");
    proxy.resume();
    assert_eq!(served.read_u8().await.unwrap(), b'x');
}

#[tokio::test]
async fn a_delay_is_applied() {
    let (proxy, _server, mut client, mut served) = pair().await;
    proxy.delay(Duration::from_millis(30));
    let sent = Instant::now();
    client.write_all(b"x").await.unwrap();
    served.read_u8().await.unwrap();
    assert!(sent.elapsed() >= Duration::from_millis(30));
}

#[tokio::test]
async fn a_cut_resets_both_ends_but_not_later_connections() {
    let (proxy, server, mut client, mut served) = pair().await;
    proxy.cut();
    for end in [&mut client, &mut served] {
        assert_eq!(end.read_u8().await.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
    }
    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    client.write_all(b"x").await.unwrap();
    assert_eq!(server.accept().await.unwrap().0.read_u8().await.unwrap(), b'x');
}

#[tokio::test]
async fn a_refusal_rejects_new_connections_but_keeps_open_ones() {
    let (proxy, _server, mut client, mut served) = pair().await;
    proxy.refuse().await;
    let refused = TcpStream::connect(proxy.address()).await.unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    client.write_all(b"x").await.unwrap();
    assert_eq!(served.read_u8().await.unwrap(), b'x');
    proxy.accept();
    TcpStream::connect(proxy.address()).await.unwrap();
}
