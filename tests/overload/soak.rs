//! Two processes on one Redis under mixed traffic (streams, folds, masks, histories that are kept here, refusals, clients that leave, upstreams
//! that fail and break off): what they take levels off, and nothing fails that has no reason to.
//!
//! `TIDEGATE_SOAK_SECONDS=1800 cargo test --release --test tidegate overload::soak -- --nocapture` runs for half an hour.

use super::scene::metric;
use crate::support::agent::{body, conversation};
use crate::support::client::{CHAT, Client, exchange, post};
use crate::support::cores::busy;
use crate::support::tidegate::{Setup, Tidegate};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tidegate_testkit::{Answer, Ending, MockUpstream, RedisServer};

/// Masks and folds in every conversation of a dozen turns. Conversations expire, so that the store levels off, too.
const CONFIG: &str = r#"
[log]
access = false
[store]
ttl = "10s"
[models."gpt-4.1"]
window = 3000
[context]
strategy = "hybrid"
[context.recall]
auto = false
[context.mask]
keep = { turns = 1 }
pace = "every_turn"
[context.fold]
when = { turns = 6 }
mode = "inline"
[[routes]]
name = "held"
match = { headers = { x-soak = "held" } }
[routes.context]
history = "proxy"
[[routes]]
name = "resent"
"#;

fn seconds() -> u64 {
    std::env::var("TIDEGATE_SOAK_SECONDS").ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(20)
}

/// What one process takes.
#[derive(Clone, Copy, Debug)]
struct Taken {
    memory: u64,
    files: usize,
    threads: usize,
}

impl Taken {
    fn by(tidegate: &Tidegate) -> Taken {
        Taken { memory: tidegate.memory().0, files: tidegate.open_files(), threads: tidegate.threads() }
    }
}

/// What Redis takes for its keys.
async fn stored(redis: &RedisServer) -> u64 {
    let info = redis.cli(&["info", "memory"]).await;
    let bytes = info.lines().find_map(|line| line.trim().strip_prefix("used_memory_dataset:"));
    bytes.expect("Redis says how much it holds").parse().unwrap()
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
        if asked.target.contains("breaks") {
            return Answer::new(200).declared_length(100).chunk("half").break_off(Ending::Reset);
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
    let (warm, warm_store) = (processes.each_ref().map(Taken::by), stored(&redis).await);
    for client in clients {
        client.await.unwrap();
    }
    let (after, after_store) = (processes.each_ref().map(Taken::by), stored(&redis).await);
    let requests = sent.load(Ordering::Relaxed);
    println!("{requests} requests in {total:?}: {warm:?}, {warm_store}, then {after:?}, {after_store}");
    let strange = std::mem::take(&mut *strange.lock().unwrap());
    assert!(strange.is_empty(), "{} of {requests}: {:?}", strange.len(), &strange[..strange.len().min(5)]);
    for (warm, after) in warm.iter().zip(after) {
        assert!(after.memory <= warm.memory + warm.memory / 4 + (16 << 20), "{warm:?}, then {after:?}");
        assert!(after.files <= warm.files + 32, "{warm:?}, then {after:?}");
        assert!(after.threads <= warm.threads + 8, "{warm:?}, then {after:?}");
    }
    assert!(after_store <= warm_store + warm_store / 2 + (8 << 20), "{warm_store}, then {after_store}");
    for (name, labels) in [
        ("tidegate_edited_messages_total", ["edit=\"masked\"", "route=\"resent\""]),
        ("tidegate_edited_messages_total", ["edit=\"folded\"", "route=\"resent\""]),
        ("tidegate_refusals_total", ["", "route=\"resent\""]),
        ("tidegate_requests_total", ["outcome=\"answered\"", "route=\"held\""]),
        ("tidegate_requests_total", ["outcome=\"client_closed\"", ""]),
        ("tidegate_requests_total", ["outcome=\"upstream_error\"", ""]),
        ("tidegate_requests_total", ["outcome=\"upstream_broke\"", ""]),
    ] {
        for process in &processes {
            assert!(metric(process, name, &labels).await > 0.0, "no {name} {labels:?}");
        }
    }
    for process in &processes {
        let idle = async || metric(process, "tidegate_requests_in_flight", &[]).await;
        crate::support::until("nothing is left behind", Duration::from_secs(20), idle, |count| *count == 0.0)
            .await;
        assert_eq!(super::scene::in_use(process).await, 0.0);
        let open = async || metric(process, "tidegate_connections", &[]).await;
        crate::support::until("connections are closed", Duration::from_secs(20), open, |count| *count == 0.0)
            .await;
    }
    for process in processes {
        assert!(!process.stop().await.contains("panicked"));
    }
}

/// What a request of the mix asks for.
const KINDS: usize = 10;

/// One request of the mix. Returns what went wrong without a reason.
async fn step(process: SocketAddr, client: u64, round: u64) -> Option<String> {
    let (name, turn) = (format!("soak-{client}-{}", round / 12), usize::try_from(round % 12).unwrap());
    let text = body("gpt-4o", &conversation(turn + 1), &[]);
    let headers = [("x-conversation-id", name.as_str()), ("authorization", "Bearer soak")];
    let small =
        |text: &str| format!(r#"{{"model":"gpt-4.1","messages":[{{"role":"user","content":"{text}"}}]}}"#);
    // Twelve turns of a conversation begin with another kind each time.
    let kind = usize::try_from(round + round / 12).unwrap() % KINDS;
    let (request, wanted) = match kind {
        0 | 1 => (post(CHAT, &headers, text.replacen('{', "{\"stream\":true,", 1)), 200),
        // It does not fit its window.
        2 => (post(CHAT, &headers[1..], small(&"many words that do not fit ".repeat(1_000))), 422),
        3 => (post("/v1/fails", &headers, "{}"), 500),
        4 => {
            let mut left = Client::connect(process).await;
            left.send(post(CHAT, &headers, text)).await;
            return None;
        }
        5 => {
            let mut cut = Client::connect(process).await;
            cut.send(post("/v1/breaks", &headers, "{}")).await;
            // Half an answer, as its end says.
            cut.until_closed().await;
            return None;
        }
        6 => {
            let held = [&headers[..], &[("x-soak", "held")]].concat();
            (post(CHAT, &held, small(&format!("turn {round}"))), 200)
        }
        _ => (post(CHAT, &headers, text), 200),
    };
    let reply = exchange(process, request).await;
    // The other process may still be summarizing for a client that has left.
    let has_reason = |reason: &str| reason.starts_with("store_timeout") || reason == "summarizer_busy";
    let is_degraded = reply.header("x-tidegate-degraded").is_some_and(|reason| !has_reason(reason));
    (reply.status != wanted || is_degraded).then(|| {
        format!(
            "{} instead of {wanted}: {:?} {}",
            reply.status,
            reply.header("x-tidegate-degraded"),
            reply.text()
        )
    })
}
