//! Each connection sends its next request as soon as the last one is answered.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::report::Report;
use crate::requests::Requests;
use crate::response::{Progress, ResponseReader};
use crate::target::Target;

/// A response that is missing this long after the end of the run is an error.
const GRACE: Duration = Duration::from_secs(10);

pub(crate) fn run(
    target: &Target,
    connections: usize,
    threads: usize,
    warmup: Duration,
    duration: Duration,
    count: u64,
) -> io::Result<Report> {
    let threads = threads.clamp(1, connections.max(1));
    let from = Instant::now() + warmup;
    let run =
        Arc::new(Run { target: target.clone(), from, until: from + duration, left: AtomicU64::new(count) });
    let workers: Vec<_> = (0..threads)
        .map(|worker| {
            let share = connections / threads + usize::from(worker < connections % threads);
            let run = run.clone();
            std::thread::spawn(move || work(run, worker, share))
        })
        .collect();
    let mut total = Report::new();
    for worker in workers {
        total.merge(&worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
    }
    Ok(total)
}

/// The state that all connections share. Only responses between `from` and `until` count.
struct Run {
    target: Target,
    from: Instant,
    until: Instant,
    left: AtomicU64,
}

/// Runs one thread's connections on their own runtime, so that no work moves between threads.
fn work(run: Arc<Run>, worker: usize, connections: usize) -> io::Result<Report> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let shared = Arc::new(Mutex::new(Report::new()));
    runtime.block_on(async {
        let mut tasks = JoinSet::new();
        for connection in 0..connections {
            let lane = (worker as u64) << 16 | connection as u64;
            tasks.spawn(drive(run.clone(), shared.clone(), lane));
        }
        let limit = tokio::time::Instant::from_std(run.until + GRACE);
        let all = async { while tasks.join_next().await.is_some() {} };
        if tokio::time::timeout_at(limit, all).await.is_err() {
            lock(&shared).error();
        }
    });
    let mut report = std::mem::replace(&mut *lock(&shared), Report::new());
    report.finished_after(Instant::now().min(run.until).saturating_duration_since(run.from));
    Ok(report)
}

/// Keeps one connection busy, and reconnects when it breaks.
async fn drive(run: Arc<Run>, report: Arc<Mutex<Report>>, lane: u64) {
    let mut requests = Requests::of(&run.target, lane);
    while Instant::now() < run.until {
        if converse(&run, &report, &mut requests).await.is_ok() {
            return;
        }
        lock(&report).error();
        // A server that is down fails at once: do not retry thousands of times a second.
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn converse(run: &Run, report: &Mutex<Report>, requests: &mut Requests<'_>) -> io::Result<()> {
    let mut stream = TcpStream::connect(run.target.address).await?;
    stream.set_nodelay(true)?;
    let mut reader = ResponseReader::default();
    loop {
        let request = requests.next(0);
        let started = Instant::now();
        if started >= run.until {
            return Ok(());
        }
        stream.write_all(request).await?;
        let (status, events) = loop {
            reader.buffer.reserve(16 * 1024);
            if stream.read_buf(&mut reader.buffer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            match reader.progress() {
                Progress::Partial { .. } => {}
                Progress::Whole { status, events } => break (status, events),
                Progress::Invalid => return Err(io::ErrorKind::InvalidData.into()),
            }
        };
        let ended = Instant::now();
        if ended < run.from || ended > run.until {
            continue;
        }
        let taken = run.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if taken.is_err() {
            return Ok(());
        }
        lock(report).answer(status, events, ended - started);
    }
}

fn lock(report: &Mutex<Report>) -> std::sync::MutexGuard<'_, Report> {
    report.lock().unwrap_or_else(PoisonError::into_inner)
}
