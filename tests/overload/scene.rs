//! What the tests of this suite share.

use crate::support::client::{CHAT, Client, admin, exchange, post};
use crate::support::metrics::value;
use crate::support::reply::Reply;
use crate::support::tidegate::Tidegate;
use std::time::{Duration, Instant};

/// A chat completion of about this many bytes whose text repeats in no other, for a model whose window nobody knows.
pub(super) fn large(bytes: usize, name: &str) -> String {
    let mut text = String::with_capacity(bytes);
    for number in 0.. {
        if text.len() >= bytes {
            break;
        }
        text.push_str(&format!("{name} {number} bollard pier {} ", number * 7919 % 104_729));
    }
    format!(r#"{{"model":"large","messages":[{{"role":"user","content":"{text}"}}]}}"#)
}

pub(super) fn small(name: &str) -> Vec<u8> {
    let body = format!(r#"{{"model":"gpt-4o","messages":[{{"role":"user","content":"hi from {name}"}}]}}"#);
    post(CHAT, &[("x-conversation-id", name)], body)
}

/// Begins a request with a body of this length and sends this many bytes of it.
pub(super) async fn begun(tidegate: &Tidegate, length: usize, sent: usize) -> Client {
    let mut client = Client::connect(tidegate.address).await;
    client.send(post(CHAT, &[("content-length", &length.to_string())], "x".repeat(sent))).await;
    client
}

pub(super) fn assert_overloaded(reply: &Reply) {
    assert_eq!((reply.status, reply.error_code().as_str()), (503, "overloaded"), "{}", reply.text());
    assert_eq!(reply.header("retry-after"), Some("1"));
    assert!(reply.text().contains("server_error"), "{}", reply.text());
}

/// A figure of `/metrics`; 0 if there is none.
pub(super) async fn metric(tidegate: &Tidegate, name: &str, labels: &[&str]) -> f64 {
    value(&admin(tidegate.admin, "/metrics").await.text(), name, labels).unwrap_or(0.0)
}

/// The memory that requests take, by Tidegate's own account.
pub(super) async fn in_use(tidegate: &Tidegate) -> f64 {
    metric(tidegate, "tidegate_memory_bytes", &["kind=\"requests\""]).await
}

/// Waits until requests take as much memory as `is_enough` says.
pub(super) async fn until_in_use(tidegate: &Tidegate, is_enough: impl Fn(f64) -> bool) {
    let what = "requests take or release memory";
    crate::support::until(
        what,
        Duration::from_secs(30),
        async || in_use(tidegate).await,
        |used| is_enough(*used),
    )
    .await;
}

/// A process before an attack.
pub(super) struct Calm {
    /// Its resident memory.
    pub(super) memory: u64,
    /// Nearly all small requests are answered within this time.
    p99: Duration,
}

/// Whether attacks have the size that operators fear (`TIDEGATE_ATTACKS=full`), on a machine with nothing else to do. They are a tenth of
/// that otherwise, beside other tests.
pub(super) fn is_full() -> bool {
    std::env::var("TIDEGATE_ATTACKS").is_ok_and(|size| size == "full")
}

/// How long a well-behaved request may take at most while an attack runs: this finds those that are not served, on however busy a machine.
const SLOWEST: Duration = Duration::from_secs(10);

/// By how much an attack may delay nearly all well-behaved requests.
const DELAY: Duration = Duration::from_millis(20);

/// Waits until the process has what it needs for any request, above all the tokenizer's tables, which it loads beside its first requests.
pub(super) async fn warm(tidegate: &Tidegate) -> Calm {
    for number in 0..20 {
        let reply = exchange(tidegate.address, small(&format!("warms-{number}"))).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        // Counting waits for the tables, so that they are in memory when a counted request is answered.
        let counted: u64 = reply.header("x-tidegate-tokens-before").expect("it is counted").parse().unwrap();
        assert!(counted > 0);
    }
    let p99 = p99(&times_of(tidegate, if is_full() { 500 } else { 10 }, "calm").await);
    Calm { memory: tidegate.memory().0, p99 }
}

/// Checks that well-behaved requests are served while an attack runs.
pub(super) async fn assert_served(tidegate: &Tidegate, calm: &Calm, count: usize, name: &str) {
    let times = times_of(tidegate, if is_full() { 10 * count } else { count }, name).await;
    assert!(times.last().is_some_and(|slowest| *slowest < SLOWEST), "{times:?}");
    if is_full() {
        let now = p99(&times);
        assert!(now < calm.p99 + DELAY, "{now:?} meanwhile, {:?} before", calm.p99);
    }
}

/// Sends small requests one after another and returns how long each took, the shortest time first.
async fn times_of(tidegate: &Tidegate, count: usize, name: &str) -> Vec<Duration> {
    let mut times = Vec::new();
    for number in 0..count {
        let started = Instant::now();
        let reply = exchange(tidegate.address, small(&format!("{name}-{number}"))).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        times.push(started.elapsed());
    }
    times.sort();
    times
}

fn p99(times: &[Duration]) -> Duration {
    times[times.len() * 99 / 100]
}
