//! Two processes on one Redis under mixed traffic: what they take levels off, and nothing fails that has no reason to.
//!
//! `TIDEGATE_SOAK_SECONDS=1800 cargo test --release --test tidegate overload::soak -- --nocapture` runs for half an hour.

use super::scene::metric;
use crate::support::agent::{body, conversation};
use crate::support::client::{CHAT, Client, exchange, post};
use crate::support::cores::busy;
use crate::support::tidegate::{Setup, Tidegate};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tidegate_testkit::{Answer, MockUpstream, RedisServer};

const CONFIG: &str = "[log]\naccess = false\n[models.\"gpt-4.1\"]\nwindow = 3000\n[context]\nstrategy = \"hybrid\"\n[context.mask]\nkeep = { turns = 1 }\n";

fn seconds() -> u64 {
    std::env::var("TIDEGATE_SOAK_SECONDS").ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(20)
}

/// What one process takes.
#[derive(Clone, Copy, Debug)]
struct Taken {
    memory: u64,
    files: usize,
}

impl Taken {
    fn by(tidegate: &Tidegate) -> Taken {
        Taken { memory: tidegate.memory().0, files: tidegate.open_files() }
    }
}

#[tokio::test]
async fn what_two_processes_take_levels_off() {
    let _busy = busy().await;
    let redis = RedisServer::start().await;
    let upstream = Arc::new(MockUpstream::start().await);
    upstream.script(|asked| {
        if asked.target.contains("fails") {
            return Answer::error(500, "server_error", "on purpose");
        }
        let is_stream = asked.body.windows(13).any(|window| window == b"\"stream\":true");
        if is_stream { Answer::chat_stream(["one", " two", " three"]) } else { Answer::chat("done") }
    });
    let start = || Setup::new(CONFIG).upstream(&upstream.url()).env("TIDEGATE_STORE", &redis.url());
    let processes = [start().start().await, start().start().await];
    let addresses = [processes[0].address, processes[1].address];
    let begun = Instant::now();
    let total = Duration::from_secs(seconds());
    let (sent, strange) = (Arc::new(AtomicU64::new(0)), Arc::new(std::sync::Mutex::new(Vec::new())));
    let clients: Vec<_> = (0..6u64)
        .map(|client| {
            let (sent, strange) = (sent.clone(), strange.clone());
            tokio::spawn(async move {
                for round in 0.. {
                    if begun.elapsed() >= total {
                        return;
                    }
                    let process = addresses[usize::try_from(round % 2).unwrap()];
                    if let Some(problem) = step(process, client, round).await {
                        strange.lock().unwrap().push(problem);
                    }
                    sent.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    // Caches fill up first.
    tokio::time::sleep(total / 2).await;
    let warm = processes.each_ref().map(Taken::by);
    for client in clients {
        client.await.unwrap();
    }
    let after = processes.each_ref().map(Taken::by);
    let requests = sent.load(Ordering::Relaxed);
    println!("{requests} requests in {total:?}: {warm:?}, then {after:?}");
    let strange = std::mem::take(&mut *strange.lock().unwrap());
    assert!(strange.is_empty(), "{} of {requests}: {:?}", strange.len(), &strange[..strange.len().min(5)]);
    for (warm, after) in warm.iter().zip(after) {
        assert!(after.memory <= warm.memory + warm.memory / 4 + (16 << 20), "{warm:?}, then {after:?}");
        assert!(after.files <= warm.files + 32, "{warm:?}, then {after:?}");
    }
    for process in &processes {
        let idle = async || metric(process, "tidegate_requests_in_flight", &[]).await;
        crate::support::until("nothing is left behind", Duration::from_secs(20), idle, |count| *count == 0.0)
            .await;
        assert_eq!(super::scene::in_use(process).await, 0.0);
    }
    for process in processes {
        assert!(!process.stop().await.contains("panicked"));
    }
}

/// One request of the mix. Returns what went wrong without a reason.
async fn step(process: std::net::SocketAddr, client: u64, round: u64) -> Option<String> {
    let (name, turn) = (format!("soak-{client}-{}", round / 12), usize::try_from(round % 12).unwrap());
    let text = body("gpt-4o", &conversation(turn + 1), &[]);
    let headers = [("x-conversation-id", name.as_str()), ("authorization", "Bearer soak")];
    let (request, wanted) = match round % 8 {
        0 => (post(CHAT, &headers, text.replacen('{', "{\"stream\":true,", 1)), 200),
        // It does not fit its window.
        1 => {
            let long = "many words that do not fit ".repeat(1_000);
            (
                post(
                    CHAT,
                    &headers[1..],
                    format!(r#"{{"model":"gpt-4.1","messages":[{{"role":"user","content":"{long}"}}]}}"#),
                ),
                422,
            )
        }
        2 => (post("/v1/fails", &headers, "{}"), 500),
        3 => {
            let mut left = Client::connect(process).await;
            left.send(post(CHAT, &headers, text)).await;
            return None;
        }
        _ => (post(CHAT, &headers, text), 200),
    };
    let reply = exchange(process, request).await;
    let is_degraded =
        reply.header("x-tidegate-degraded").is_some_and(|reason| !reason.starts_with("store_timeout"));
    (reply.status != wanted || is_degraded).then(|| {
        format!(
            "{} instead of {wanted}: {:?} {}",
            reply.status,
            reply.header("x-tidegate-degraded"),
            reply.text()
        )
    })
}
