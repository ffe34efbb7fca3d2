//! Attacks, bounded in count and time. Memory stays within the budget, nothing panics, and whoever behaves is served meanwhile and at
//! once afterwards.

use super::scene::{Calm, assert_served, begun, is_full, large, metric, small, until_in_use, warm};
use crate::support::client::{CHAT, Client, exchange, post};
use crate::support::cores::busy;
use crate::support::raw_http2::{data, frame, headers, reset};
use crate::support::tidegate::Tidegate;
use std::time::{Duration, Instant};
use tidegate_testkit::{Answer, MockUpstream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

const MIB: usize = 1024 * 1024;

/// What the process may take beyond the budget: its caches, buffers of sockets, and the code itself, which unoptimized is large.
const BASE: u64 = 48 << 20;

/// Checks what must hold after every attack.
async fn assert_sound(tidegate: Tidegate, before: Calm, budget: u64) {
    let over = Instant::now();
    until_in_use(&tidegate, |used| used == 0.0).await;
    assert!(
        !is_full() || over.elapsed() < Duration::from_secs(1),
        "it has recovered after {:?}",
        over.elapsed()
    );
    assert_served(&tidegate, &before, 10, "after").await;
    let most = tidegate.memory().1;
    let allowed = before.memory + budget + budget / 10 + BASE;
    assert!(most <= allowed, "{} MiB at most, {} allowed", most >> 20, allowed >> 20);
    let output = tidegate.stop().await;
    assert!(!output.contains("panicked"), "{output}");
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const SETTINGS: u8 = 4;

/// A connection that speaks HTTP/2 byte by byte.
async fn http2(tidegate: &Tidegate) -> TcpStream {
    let mut stream = TcpStream::connect(tidegate.address).await.unwrap();
    stream.write_all(PREFACE).await.unwrap();
    stream.write_all(&frame(SETTINGS, 0, 0, &[])).await.unwrap();
    stream
}

fn question(stream: u32, ends: bool) -> Vec<u8> {
    let pairs = [(":method", "POST"), (":scheme", "http"), (":authority", "tidegate.test"), (":path", CHAT)];
    headers(stream, ends, &pairs)
}

#[tokio::test]
async fn many_large_uploads_at_once() {
    let _busy = busy().await;
    let upstream = MockUpstream::start().await;
    let budget = 64 << 20;
    let tidegate = Tidegate::start("[server]\nmax_memory = \"64MiB\"\n", &upstream).await;
    let before = warm(&tidegate).await;
    let address = tidegate.address;
    let uploads: Vec<_> = (0..if is_full() { 1_000 } else { 100 })
        .map(|_| {
            tokio::spawn(async move {
                let mut stream = TcpStream::connect(address).await.unwrap();
                let length = (31 * MIB).to_string();
                let head = post(CHAT, &[("content-length", &length)], "");
                let piece = vec![b'x'; 64 * 1024];
                let _ = stream.write_all(&head).await;
                // Refused uploads fail in the middle. None of them ends.
                for _ in 0..400 {
                    if stream.write_all(&piece).await.is_err() {
                        return;
                    }
                }
            })
        })
        .collect();
    assert_served(&tidegate, &before, 50, "meanwhile").await;
    for upload in uploads {
        timeout(Duration::from_secs(60), upload).await.expect("uploads are cut").unwrap();
    }
    assert_sound(tidegate, before, budget).await;
}

#[tokio::test]
async fn bodies_that_arrive_byte_by_byte() {
    let _busy = busy().await;
    let upstream = MockUpstream::start().await;
    let config = "[server]\nheader_timeout = \"1s\"\nbody_timeout = \"1s\"\nrequest_timeout = \"2s\"\n";
    let tidegate = Tidegate::start(config, &upstream).await;
    let before = warm(&tidegate).await;
    let mut slow = Vec::new();
    for number in 0..200 {
        let mut client = Client::connect(tidegate.address).await;
        // Half of them are slow in the head, half in the body.
        let start = match number % 2 {
            0 => b"POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\nx-slow: ".to_vec(),
            _ => post(CHAT, &[("content-length", "100000")], "{"),
        };
        client.send(start).await;
        let mut to = client.take_sender();
        slow.push(tokio::spawn(async move {
            let mut ticks = tokio::time::interval(Duration::from_millis(200));
            let trickle = async {
                while to.write_all(b" ").await.is_ok() {
                    ticks.tick().await;
                }
            };
            tokio::select! {
                reply = client.reply() => reply.status,
                () = trickle => 0,
            }
        }));
    }
    assert_served(&tidegate, &before, 50, "meanwhile").await;
    for one in slow {
        assert_eq!(timeout(Duration::from_secs(30), one).await.expect("slow requests are cut").unwrap(), 408);
    }
    assert_sound(tidegate, before, 0).await;
}

#[tokio::test]
async fn streams_that_are_reset_as_soon_as_they_are_opened() {
    let _busy = busy().await;
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    let before = warm(&tidegate).await;
    for _ in 0..4 {
        let mut stream = http2(&tidegate).await;
        let mut sent = 0;
        for number in 0..5_000u32 {
            let id = 2 * number + 1;
            if stream.write_all(&[question(id, true), reset(id, 8)].concat()).await.is_err() {
                break;
            }
            sent += 1;
        }
        // Tidegate ends the connection when it has seen enough. It may do so after everything is sent.
        let mut rest = Vec::new();
        let ended = timeout(Duration::from_secs(10), stream.read_to_end(&mut rest)).await;
        assert!(ended.is_ok(), "the connection is ended after {sent} resets");
    }
    assert!(upstream.requests().len() < 2_000, "{} have reached the upstream", upstream.requests().len());
    assert_sound(tidegate, before, 0).await;
}

#[tokio::test]
async fn header_blocks_that_never_end() {
    let _busy = busy().await;
    const HEADERS: u8 = 1;
    const CONTINUATION: u8 = 9;
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    let before = warm(&tidegate).await;
    let served = upstream.requests().len();
    for _ in 0..4 {
        let mut stream = http2(&tidegate).await;
        let whole = question(1, false);
        // Without the flag that ends the block.
        stream.write_all(&frame(HEADERS, 0, 1, &whole[9..])).await.unwrap();
        let literal = [&[0u8, 1, b'x', 100][..], &[b'y'; 100]].concat();
        let block = literal.repeat(100);
        for _ in 0..2_000 {
            if stream.write_all(&frame(CONTINUATION, 0, 1, &block)).await.is_err() {
                break;
            }
        }
        let mut rest = Vec::new();
        let ended = timeout(Duration::from_secs(10), stream.read_to_end(&mut rest)).await;
        assert!(ended.is_ok(), "the connection is ended");
    }
    assert_eq!(upstream.requests().len(), served);
    assert_sound(tidegate, before, 0).await;
}

#[tokio::test]
async fn windows_that_never_open() {
    let _busy = busy().await;
    const INITIAL_WINDOW_SIZE: u16 = 4;
    let upstream = MockUpstream::start().await;
    upstream.script(|asked| match asked.body.len() {
        // The question of `question`, without a body.
        0 => Answer::new(200).fill(64 << 20),
        _ => Answer::chat("hello"),
    });
    let tidegate = Tidegate::start("[server]\nwrite_timeout = \"1s\"\n", &upstream).await;
    let before = warm(&tidegate).await;
    let mut stalled = Vec::new();
    for _ in 0..4 {
        let mut stream = TcpStream::connect(tidegate.address).await.unwrap();
        stream.write_all(PREFACE).await.unwrap();
        let zero = [&INITIAL_WINDOW_SIZE.to_be_bytes()[..], &[0; 4]].concat();
        stream.write_all(&frame(SETTINGS, 0, 0, &zero)).await.unwrap();
        for number in 0..25u32 {
            stream.write_all(&question(2 * number + 1, true)).await.unwrap();
        }
        stalled.push(stream);
    }
    assert_served(&tidegate, &before, 30, "meanwhile").await;
    let in_flight = async || metric(&tidegate, "tidegate_requests_in_flight", &[]).await;
    crate::support::until("stalled answers end", Duration::from_secs(30), in_flight, |count| *count == 0.0)
        .await;
    assert_sound(tidegate, before, 0).await;
    drop(stalled);
}

#[tokio::test]
async fn uploads_of_one_connection_on_all_of_its_streams() {
    let _busy = busy().await;
    let upstream = MockUpstream::start().await;
    let budget = 32 << 20;
    let tidegate =
        Tidegate::start("[server]\nmax_memory = \"32MiB\"\nbody_timeout = \"1s\"\n", &upstream).await;
    let before = warm(&tidegate).await;
    let mut stream = http2(&tidegate).await;
    let piece = "x".repeat(16_000);
    for number in 0..100u32 {
        let id = 2 * number + 1;
        if stream.write_all(&question(id, false)).await.is_err() {
            break;
        }
        // More than the window of the connection allows, which is an error of its own.
        for _ in 0..10 {
            if stream.write_all(&data(id, false, &piece)).await.is_err() {
                break;
            }
        }
    }
    assert_served(&tidegate, &before, 20, "meanwhile").await;
    assert_sound(tidegate, before, budget).await;
}

#[tokio::test]
async fn bodies_of_a_hundred_thousand_messages() {
    let _busy = busy().await;
    let upstream = MockUpstream::start().await;
    let budget = 256 << 20;
    let config = "[server]\nmax_memory = \"256MiB\"\n[models.\"gpt-4o\"]\nwindow = 100000\n";
    let tidegate = Tidegate::start(config, &upstream).await;
    let before = warm(&tidegate).await;
    let bodies: Vec<_> = (0..4)
        .map(|which| {
            let messages: Vec<String> = (0..100_000)
                .map(|number| {
                    format!(
                        r#"{{"role":"{}","content":"{which} {number}"}}"#,
                        ["user", "assistant"][number % 2]
                    )
                })
                .collect();
            let body = format!(r#"{{"model":"gpt-4o","messages":[{}]}}"#, messages.join(","));
            tokio::spawn(exchange(tidegate.address, post(CHAT, &[], body)))
        })
        .collect();
    assert_served(&tidegate, &before, 20, "meanwhile").await;
    for body in bodies {
        let reply = timeout(Duration::from_secs(100), body).await.unwrap().unwrap();
        assert!([200, 422, 503].contains(&reply.status), "{} {}", reply.status, reply.text());
    }
    assert_sound(tidegate, before, budget).await;
}

#[tokio::test]
async fn texts_that_are_hard_to_tokenize() {
    let _busy = busy().await;
    let upstream = MockUpstream::start().await;
    let budget = 128 << 20;
    let tidegate = Tidegate::start("[server]\nmax_memory = \"128MiB\"\n", &upstream).await;
    let before = warm(&tidegate).await;
    let bombs = [
        "a".repeat(4 * MIB),
        " ".repeat(4 * MIB),
        "\u{1f468}\u{200d}".repeat(MIB / 2),
        "0".repeat(4 * MIB),
        "é́".repeat(MIB),
    ];
    let bombs: Vec<_> = bombs
        .into_iter()
        .map(|bomb| {
            let body = format!(r#"{{"model":"gpt-4o","messages":[{{"role":"user","content":"{bomb}"}}]}}"#);
            tokio::spawn(exchange(tidegate.address, post(CHAT, &[], body)))
        })
        .collect();
    assert_served(&tidegate, &before, 20, "meanwhile").await;
    for bomb in bombs {
        let reply = timeout(Duration::from_secs(100), bomb).await.unwrap().unwrap();
        assert!([200, 422, 503].contains(&reply.status), "{} {}", reply.status, reply.text());
    }
    assert_sound(tidegate, before, budget).await;
}

#[tokio::test]
async fn clients_that_leave_while_their_bodies_are_counted() {
    let _busy = busy().await;
    let upstream = MockUpstream::start().await;
    let budget = 64 << 20;
    let tidegate = Tidegate::start("[server]\nmax_memory = \"64MiB\"\n", &upstream).await;
    let before = warm(&tidegate).await;
    for number in 0..40 {
        let mut client = Client::connect(tidegate.address).await;
        client.send(post(CHAT, &[], large(2 * MIB, &format!("left-{number}")))).await;
        drop(client);
        if number % 10 == 0 {
            assert_eq!(exchange(tidegate.address, small("meanwhile")).await.status, 200);
        }
    }
    // One that sends only half of its body, and stays.
    let half = begun(&tidegate, 20 * MIB, 10 * MIB).await;
    drop(half);
    assert_sound(tidegate, before, budget).await;
}
