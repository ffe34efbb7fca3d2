//! How a hostile request affects the latency of other requests.
//!
//! By default each case is sent once and the figures are only printed, because they are meaningful only in the release profile on
//! an idle machine.
//!
//! ```text
//! TIDEGATE_ASSERT_LATENCY=1 cargo test --release --test tidegate masking::latency -- --nocapture
//! ```
//!
//! sends each case for a second, and fails if the 99th percentile grows by 10 ms or more.

use super::hostile::{WIDE, cases};
use crate::support::agent::{EVERY_TURN, body, conversation};
use crate::support::client::{CHAT, exchange, post};
use crate::support::cores::busy;
use crate::support::tidegate::Setup;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tidegate_testkit::{Answer, Listen, MockUpstream, Recording};

const MAX_GROWTH: Duration = Duration::from_millis(10);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_requests_are_served_meanwhile() {
    let _busy = busy().await;
    // Separate upstreams without recording, so that hostile requests only load Tidegate.
    let local = ([127, 0, 0, 1], 0).into();
    let upstream = MockUpstream::bind(local, Listen::Http1, Recording::Off).await;
    let small = MockUpstream::bind(local, Listen::Http1, Recording::Off).await;
    upstream.answer(Answer::json(200, "{}"));
    small.answer(Answer::json(200, "{}"));
    let config = format!(
        "[upstreams.small]\nurl = \"{}\"\n[[routes]]\nname = \"small\"\nmatch = {{ models = [\"gpt-4o-mini\"] }}\n\
         upstream = \"small\"\n[[routes]]\nname = \"rest\"\n{WIDE}{EVERY_TURN}",
        small.url()
    );
    let tidegate = Setup::new(&config).upstream(&upstream.url()).start().await;
    let request = post(CHAT, &[], body("gpt-4o-mini", &conversation(5), &[]));

    let alone = Others::start(tidegate.address, &request, 3_000).stop();
    println!("{:<38} {:>7} {:>10} {:>10} {:>10}", "", "others", "p50", "p99", "most");
    println!("{}", alone.row("nothing else"));
    let asserts = std::env::var_os("TIDEGATE_ASSERT_LATENCY").is_some();
    let mut worst: Option<(Duration, &str)> = None;
    for case in cases() {
        let hostile = post(CHAT, &[], &case.body);
        let others = Others::start(tidegate.address, &request, 1);
        let end = Instant::now() + Duration::from_secs(u64::from(asserts));
        let mut rounds = 0;
        while rounds == 0 || Instant::now() < end {
            let reply = exchange(tidegate.address, &hostile).await;
            assert!([200, 422].contains(&reply.status), "{}: {}", case.name, reply.status);
            rounds += 1;
        }
        let others = others.stop();
        println!("{} ({rounds} rounds)", others.row(case.name));
        let growth = others.percentile(99).saturating_sub(alone.percentile(99));
        if worst.is_none_or(|(most, _)| growth > most) {
            worst = Some((growth, case.name));
        }
    }
    let (growth, name) = worst.unwrap();
    println!("the 99th percentile grows by {growth:?} at most, by {name}");
    if asserts {
        assert!(growth < MAX_GROWTH, "{name}: {growth:?}");
    }
}

/// Sends at least `least` small requests, one after another, on its own connection and thread.
struct Others {
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<Vec<Duration>>,
}

struct Latencies(Vec<Duration>);

impl Others {
    fn start(address: SocketAddr, request: &[u8], least: usize) -> Others {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, request) = (stop.clone(), request.to_vec());
        let thread = std::thread::spawn(move || {
            let mut connection = TcpStream::connect(address).unwrap();
            connection.set_nodelay(true).unwrap();
            let mut latencies = Vec::new();
            while !stopped.load(Ordering::Relaxed) || latencies.len() < least {
                let start = Instant::now();
                connection.write_all(&request).unwrap();
                read_response(&mut connection);
                latencies.push(start.elapsed());
            }
            latencies
        });
        Others { stop, thread }
    }

    fn stop(self) -> Latencies {
        self.stop.store(true, Ordering::Relaxed);
        let mut latencies = self.thread.join().unwrap();
        latencies.sort();
        Latencies(latencies)
    }
}

/// Reads one response, whose body is the `{}` that the upstream always sends.
fn read_response(connection: &mut TcpStream) {
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    while !answer.ends_with(b"\r\n\r\n{}") {
        let count = connection.read(&mut buffer).unwrap();
        assert!(count > 0, "tidegate closed the connection: {}", String::from_utf8_lossy(&answer));
        answer.extend_from_slice(&buffer[..count]);
    }
    assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
}

impl Latencies {
    fn percentile(&self, percent: usize) -> Duration {
        self.0[(self.0.len() - 1) * percent / 100]
    }

    fn row(&self, name: &str) -> String {
        let most = self.0[self.0.len() - 1];
        let (p50, p99) = (self.percentile(50), self.percentile(99));
        format!("{name:<38} {:>7} {p50:>10.1?} {p99:>10.1?} {most:>10.1?}", self.0.len())
    }
}
