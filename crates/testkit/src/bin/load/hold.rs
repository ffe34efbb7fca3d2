//! Opens many streams and keeps them open, to measure the server's memory per idle stream.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use crate::response::{Progress, ResponseReader};
use crate::target::Target;

/// The number of connections opened at a time, small enough not to overflow the listen queue.
const OPENING: usize = 128;

/// The longest wait for the first event of a stream.
const PATIENCE: Duration = Duration::from_secs(60);

/// Prints `holding N` when every stream has its first event, and the outcome `duration` later.
pub(crate) fn run(target: &Target, streams: usize, duration: Duration, json: bool) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let started = Instant::now();
        let target = Arc::new(target.clone());
        let opening = Arc::new(Semaphore::new(OPENING));
        let (ready, mut first_events) = mpsc::channel(streams.max(1));
        let mut tasks = JoinSet::new();
        for _ in 0..streams {
            tasks.spawn(open(target.clone(), opening.clone(), ready.clone()));
        }
        drop(ready);
        let deadline = tokio::time::Instant::now() + PATIENCE;
        let mut held = 0;
        while held < streams {
            tokio::select! {
                event = first_events.recv() => match event {
                    Some(()) => held += 1,
                    None => break,
                },
                Some(ended) = tasks.join_next() => {
                    let outcome = ended.map_err(io::Error::other)?;
                    return Err(io::Error::other(format!("a stream ended while {held} were open: {outcome:?}")));
                }
                () = tokio::time::sleep_until(deadline) => {
                    return Err(io::Error::other(format!("only {held} of {streams} streams have an event")));
                }
            }
        }
        let seconds = started.elapsed().as_secs_f64();
        println!("{}", line(json, "holding", held, seconds));
        // From here on no stream may end: a closed one would be missing from the measured memory.
        let mut lost = 0;
        let over = tokio::time::sleep(duration);
        tokio::pin!(over);
        loop {
            tokio::select! {
                () = &mut over => break,
                Some(_) = tasks.join_next() => lost += 1,
            }
        }
        println!("{}", line(json, "lost", lost, started.elapsed().as_secs_f64()));
        Ok(())
    })
}

fn line(json: bool, what: &str, count: usize, seconds: f64) -> String {
    if json {
        serde_json::json!({what: count, "seconds": seconds}).to_string()
    } else {
        format!("{what} {count} after {seconds:.1} s")
    }
}

/// Ends only if the server ends the stream.
async fn open(target: Arc<Target>, opening: Arc<Semaphore>, ready: mpsc::Sender<()>) -> io::Result<()> {
    let permit = opening.acquire().await.map_err(io::Error::other)?;
    let mut stream = TcpStream::connect(target.address).await?;
    stream.write_all(&target.request).await?;
    let mut reader = ResponseReader::default();
    let mut permit = Some(permit);
    loop {
        reader.buffer.reserve(1024);
        if stream.read_buf(&mut reader.buffer).await? == 0 {
            return Ok(());
        }
        match reader.progress() {
            Progress::Partial { events: 0 } => {}
            Progress::Partial { .. } => {
                if permit.take().is_some() {
                    let _ = ready.send(()).await;
                }
            }
            Progress::Whole { status, .. } => {
                return Err(io::Error::other(format!("the stream ended with status {status}")));
            }
            Progress::Invalid => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
}
