//! `server.max_memory`.

use super::scene::{assert_overloaded, begun, in_use, large, metric, small, until_in_use, warm};
use crate::support::client::{CHAT, Client, admin, exchange, post, request};
use crate::support::tidegate::Tidegate;
use serde_json::json;
use std::io::Write;
use tidegate_testkit::MockUpstream;

/// Large requests get 12 MiB of it.
const CONFIG: &str = "[server]\nmax_memory = \"16MiB\"\nmax_body = \"12MiB\"\n";
const MIB: usize = 1024 * 1024;

#[tokio::test]
async fn a_large_request_is_refused_while_others_fill_the_memory_and_a_small_one_is_not() {
    let upstream = MockUpstream::start().await;
    let mut tidegate = Tidegate::start(CONFIG, &upstream).await;
    let holder = begun(&tidegate, 12 * MIB, 11 * MIB).await;
    until_in_use(&tidegate, |used| used >= (11 * MIB) as f64).await;

    let reply = exchange(tidegate.address, post(CHAT, &[], large(4 * MIB, "refused"))).await;
    assert_overloaded(&reply);
    assert_eq!(reply.header("connection"), Some("close"));
    let reply = exchange(tidegate.address, post("/v1/messages", &[], large(4 * MIB, "refused"))).await;
    assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")));
    assert!(reply.text().starts_with(r#"{"type":"error""#), "the dialect's own shape: {}", reply.text());
    let chunked = [&b"400000\r\n"[..], &vec![b'x'; 4 * MIB], b"\r\n0\r\n\r\n"].concat();
    let reply =
        exchange(tidegate.address, request("POST", CHAT, &[("transfer-encoding", "chunked")], &chunked));
    assert_overloaded(&reply.await);
    assert_eq!(exchange(tidegate.address, small("passes")).await.status, 200);

    assert!(metric(&tidegate, "tidegate_overload_total", &["limit=\"memory\""]).await >= 3.0);
    assert!(admin(tidegate.admin, "/readyz").await.text().contains("overloaded"));
    let lines = tidegate.access_log(4).await;
    let refused = lines.iter().filter(|line| line["reason"] == "overloaded_memory");
    assert_eq!(refused.filter(|line| line["outcome"] == "refused").count(), 3);
    assert_eq!(upstream.requests().len(), 1, "nothing that was refused has reached the upstream");

    drop(holder);
    until_in_use(&tidegate, |used| used == 0.0).await;
    let reply = exchange(tidegate.address, post(CHAT, &[], large(4 * MIB, "passes"))).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
}

#[tokio::test]
async fn a_large_request_waits_a_moment_for_memory() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start(CONFIG, &upstream).await;
    let holder = begun(&tidegate, 12 * MIB, 11 * MIB).await;
    until_in_use(&tidegate, |used| used >= (11 * MIB) as f64).await;
    let mut client = Client::connect(tidegate.address).await;
    let body = large(4 * MIB, "waits");
    // The head is enough to be asked whether it would fit.
    client.send(post(CHAT, &[("content-length", &body.len().to_string())], "")).await;
    drop(holder);
    client.send(body).await;
    let reply = client.reply().await;
    assert_eq!(reply.status, 200, "{}", reply.text());
}

#[tokio::test]
async fn a_declared_length_takes_no_memory() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start(CONFIG, &upstream).await;
    let mut idle = Vec::new();
    for _ in 0..16 {
        idle.push(begun(&tidegate, 11 * MIB, 10).await);
    }
    let reply = exchange(tidegate.address, post(CHAT, &[], large(4 * MIB, "real"))).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
}

#[tokio::test]
async fn a_zip_bomb_is_paid_for_as_it_grows() {
    let upstream = MockUpstream::start().await;
    let tidegate =
        Tidegate::start("[server]\nmax_memory = \"16MiB\"\nmax_body = \"64MiB\"\n", &upstream).await;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    for _ in 0..60 {
        gzip.write_all(&vec![b' '; MIB]).unwrap();
    }
    let gzip = gzip.finish().unwrap();
    let brotli = {
        let mut out = Vec::new();
        let mut encoder = brotli::CompressorWriter::new(&mut out, 4096, 5, 22);
        for _ in 0..60 {
            encoder.write_all(&vec![b' '; MIB]).unwrap();
        }
        drop(encoder);
        out
    };
    let zstd = zstd::encode_all(&*vec![b' '; 60 * MIB], 3).unwrap();
    for (coding, bomb) in [("gzip", &gzip), ("br", &brotli), ("zstd", &zstd)] {
        assert!(bomb.len() < 100_000, "{coding}: {}", bomb.len());
        assert_overloaded(
            &exchange(tidegate.address, post(CHAT, &[("content-encoding", coding)], bomb)).await,
        );
    }
    until_in_use(&tidegate, |used| used == 0.0).await;
    assert_eq!(upstream.requests().len(), 0);
}

#[tokio::test]
async fn a_large_body_of_a_conversation_under_way_gets_what_new_ones_must_leave() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start(CONFIG, &upstream).await;
    assert_eq!(exchange(tidegate.address, small("known")).await.status, 200);
    // 11 of 16 MiB: new conversations get up to 12, those under way up to 14.
    let holder = begun(&tidegate, 12 * MIB, 11 * MIB).await;
    until_in_use(&tidegate, |used| used >= (11 * MIB) as f64).await;
    let body = large(MIB + MIB / 4, "growing");
    let refused = exchange(tidegate.address, post(CHAT, &[("x-conversation-id", "strange")], &body)).await;
    assert_overloaded(&refused);
    assert_eq!(exchange(tidegate.address, small("small-and-strange")).await.status, 200);
    let served = exchange(tidegate.address, post(CHAT, &[("x-conversation-id", "known")], &body)).await;
    assert_eq!(served.status, 200, "{}", served.text());
    drop(holder);
}

#[tokio::test]
async fn what_requests_took_is_given_back_however_they_end() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("", &upstream).await;
    for number in 0..4 {
        let mut client = Client::connect(tidegate.address).await;
        client.send(post(CHAT, &[], large(MIB, &format!("left-{number}")))).await;
        // The client leaves in the middle of reading, counting, forwarding or relaying.
        drop(client);
    }
    assert_eq!(exchange(tidegate.address, post(CHAT, &[], large(MIB, "read"))).await.status, 200);
    assert_ne!(exchange(tidegate.address, post(CHAT, &[], "not json")).await.status, 503);
    until_in_use(&tidegate, |used| used == 0.0).await;
    assert_eq!(in_use(&tidegate).await, 0.0);
    assert!(metric(&tidegate, "tidegate_memory_limit_bytes", &[]).await >= 128e6);
}

#[tokio::test]
async fn what_was_recorded_is_paid_for_before_it_is_decompressed() {
    let upstream = MockUpstream::start().await;
    let budget = 64 << 20;
    let tidegate = Tidegate::start("[server]\nmax_memory = \"64MiB\"\n", &upstream).await;
    let named = |name| [("x-conversation-id", name), ("authorization", "Bearer tenant")];
    assert_eq!(
        exchange(tidegate.address, post(CHAT, &named("short"), large(1_000, "short"))).await.status,
        200
    );
    // Branches of one conversation, each a few hundred bytes in the store.
    for number in 0..12 {
        let text = format!("{number}{}", " ".repeat(6 * MIB));
        let body = format!(r#"{{"model":"large","messages":[{{"role":"user","content":"{text}"}}]}}"#);
        let reply = exchange(tidegate.address, post(CHAT, &named("bomb"), body)).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    until_in_use(&tidegate, |used| used == 0.0).await;
    let before = warm(&tidegate).await.memory;
    let search = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "search_history", "arguments": { "query": "bollard" } },
    });
    let ask = async |name| {
        let state = request("GET", "/tidegate/v1/conversation", &named(name), b"");
        let accept = ("accept", "application/json, text/event-stream");
        let headers = [&named(name)[..], &[("content-type", "application/json"), accept]].concat();
        let found = post("/tidegate/mcp", &headers, search.to_string());
        (exchange(tidegate.address, state).await, exchange(tidegate.address, found).await)
    };
    let (state, found) = ask("bomb").await;
    assert_overloaded(&state);
    assert_overloaded(&found);
    let (state, found) = ask("short").await;
    assert_eq!((state.status, found.status), (200, 200), "{} {}", state.text(), found.text());
    assert!(state.text().contains("short 0 bollard") && found.text().contains("bollard"), "{}", found.text());
    until_in_use(&tidegate, |used| used == 0.0).await;
    let most = tidegate.memory().1.saturating_sub(before);
    assert!(most <= budget + budget / 10 + (48 << 20), "{} MiB", most >> 20);
}
