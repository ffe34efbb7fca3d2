//! Limits of connections.

use super::scene::{assert_served, is_full, metric, small, until_in_use, warm};
use crate::support::client::{Client, admin, exchange};
use crate::support::raw_http2::frame;
use crate::support::tidegate::Tidegate;
use std::time::{Duration, Instant};
use tidegate_testkit::MockUpstream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

#[tokio::test]
async fn connections_beyond_the_limit_are_told_so_and_closed() {
    for (config, limit) in [
        ("[server]\nmax_connections = 3\n", "connections"),
        ("[server]\nmax_connections_per_address = 3\n", "address_connections"),
    ] {
        let upstream = MockUpstream::start().await;
        let mut tidegate = Tidegate::start(config, &upstream).await;
        let mut open = Vec::new();
        for _ in 0..3 {
            let mut client = Client::connect(tidegate.address).await;
            client.send(small("open")).await;
            assert_eq!(client.reply().await.status, 200);
            open.push(client);
        }
        let mut refused = Client::connect(tidegate.address).await;
        let answer = String::from_utf8(refused.until_closed().await).unwrap();
        assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("retry-after: 1"), "{answer}");
        assert!(answer.contains(r#""code":"overloaded""#), "{answer}");
        assert_eq!(tidegate.logged_message("connections refused").await["limit"], limit);
        assert_eq!(metric(&tidegate, "tidegate_overload_total", &[&format!("limit=\"{limit}\"")]).await, 1.0);
        assert_eq!(metric(&tidegate, "tidegate_connections", &[]).await, 3.0);
        assert!(admin(tidegate.admin, "/readyz").await.text().contains("overloaded"));
        // Those that are open are not affected, and the place of one that leaves is free.
        open[0].send(small("open")).await;
        assert_eq!(open[0].reply().await.status, 200);
        drop(open);
        let what = "connections are closed";
        let closed = async || metric(&tidegate, "tidegate_connections", &[]).await;
        crate::support::until(what, Duration::from_secs(10), closed, |open| *open == 0.0).await;
        assert_eq!(exchange(tidegate.address, small("later")).await.status, 200);
    }
}

#[tokio::test]
async fn many_idle_connections_cost_little_and_disturb_nobody() {
    // Both ends are in this test's limit of open files.
    let count: usize = if is_full() { 10_000 } else { 3_000 };
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    let before = warm(&tidegate).await;
    let mut idle = Vec::new();
    for _ in 0..count {
        idle.push(Client::connect(tidegate.address).await);
    }
    let accepted = async || metric(&tidegate, "tidegate_connections", &[]).await;
    let is_all = |open: &f64| *open >= count as f64;
    crate::support::until("all are accepted", Duration::from_secs(30), accepted, is_all).await;
    assert_served(&tidegate, &before, 20, "meanwhile").await;
    let each = tidegate.memory().0.saturating_sub(before.memory) / count as u64;
    assert!(each < 16 * 1024, "{each} bytes for each connection");
}

#[tokio::test]
async fn silent_connections_make_room_when_places_are_short() {
    let upstream = MockUpstream::start().await;
    let config = "[server]\nmax_connections = 8\nheader_timeout = \"300ms\"\n";
    let tidegate = Tidegate::start(config, &upstream).await;
    let mut silent = Vec::new();
    for _ in 0..8 {
        silent.push(Client::connect(tidegate.address).await);
    }
    // They would be allowed to keep their place for more than a minute, were it not for those who need it.
    assert_eq!(silent[7].until_closed().await, b"");
    assert_eq!(exchange(tidegate.address, small("later")).await.status, 200);
}

#[tokio::test]
async fn idle_http2_connections_make_room_when_places_are_short() {
    const SETTINGS: u8 = 4;
    let upstream = MockUpstream::start().await;
    let config = "[server]\nmax_connections = 8\nheader_timeout = \"300ms\"\nwrite_timeout = \"1s\"\n";
    let tidegate = Tidegate::start(config, &upstream).await;
    let mut idle = Vec::new();
    for _ in 0..8 {
        let mut stream = TcpStream::connect(tidegate.address).await.unwrap();
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
        stream.write_all(&frame(SETTINGS, 0, 0, &[])).await.unwrap();
        idle.push(stream);
    }
    // Pings that nobody answers would end it after most of a minute.
    let mut rest = Vec::new();
    let ended = timeout(Duration::from_secs(20), idle[7].read_to_end(&mut rest)).await;
    assert!(ended.is_ok(), "an idle connection is ended");
    let place = async || exchange(tidegate.address, small("later")).await.status;
    crate::support::until("there is a place", Duration::from_secs(20), place, |status| *status == 200).await;
}

#[tokio::test]
async fn heads_that_do_not_end_are_part_of_the_memory_of_requests() {
    let upstream = MockUpstream::start().await;
    let config = "[server]\nmax_memory = \"16MiB\"\nmax_body = \"12MiB\"\nmax_header = \"512KiB\"\n";
    let tidegate = Tidegate::start(config, &upstream).await;
    let head = format!("GET / HTTP/1.1\r\nhost: a\r\nx: {}", "y".repeat(480 << 10));
    let mut begun = Vec::new();
    // But for 4 KiB of each, they take 15.8 MiB.
    for _ in 0..34 {
        let mut client = Client::connect(tidegate.address).await;
        client.send(head.clone().into_bytes()).await;
        begun.push(client);
    }
    until_in_use(&tidegate, |used| used >= 15.5 * f64::from(1 << 20)).await;
    // It is cut before it has sent everything, so that it may not get to read why.
    let mut refused = TcpStream::connect(tidegate.address).await.unwrap();
    let _ = refused.write_all(head.as_bytes()).await;
    let refusals = async || metric(&tidegate, "tidegate_overload_total", &["limit=\"memory\""]).await;
    crate::support::until("it is refused", Duration::from_secs(20), refusals, |count| *count >= 1.0).await;
    drop(begun);
    until_in_use(&tidegate, |used| used == 0.0).await;
    assert_eq!(exchange(tidegate.address, small("later")).await.status, 200);
}

#[tokio::test]
async fn silent_connections_to_the_admin_address_do_not_keep_probes_out() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    let mut silent = Vec::new();
    for _ in 0..600 {
        silent.push(Client::connect(tidegate.admin).await);
    }
    let started = Instant::now();
    assert_eq!(admin(tidegate.admin, "/healthz").await.status, 200);
    // If they kept their places until their heads are overdue, it would come after four times ten seconds.
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    assert_eq!(silent[0].until_closed().await, b"");
}
