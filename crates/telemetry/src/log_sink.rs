use std::io::Write;
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;
use tracing_subscriber::fmt::MakeWriter;

/// Writes log lines to standard error, in batches and from a thread of its own.
///
/// A request must never wait for a terminal or a full pipe, and a system call per line would cost more than everything else that
/// Tidegate does for a small request. If the reader is too slow, whole lines are dropped, and the next batch reports how many.
#[derive(Clone, Debug)]
pub struct LogSink {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    /// Wakes the writer.
    wake: Condvar,
    /// Signalled after each batch.
    written: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    bytes: Vec<u8>,
    dropped: u64,
    writing: bool,
    /// Whether the writer waits to be woken. While it polls, it must not be: waking a thread takes longer than everything else that
    /// Tidegate does for a small request.
    asleep: bool,
    /// Whether `flush` waits, so that the batch is written at once.
    flushing: bool,
}

const MAX_QUEUED: usize = 4 * 1024 * 1024;

/// How often the writer polls the queue.
const INTERVAL: Duration = Duration::from_millis(20);

/// The number of polls in a row that find nothing, after which the writer sleeps until it is woken.
const MAX_IDLE_POLLS: u32 = 50;

impl LogSink {
    /// Writes to standard error.
    #[must_use]
    pub fn to_stderr() -> LogSink {
        LogSink::to(std::io::stderr())
    }

    /// Writes to memory, for tests.
    #[must_use]
    pub fn to_memory() -> (LogSink, LogBuffer) {
        let written = LogBuffer::default();
        (LogSink::to(written.clone()), written)
    }

    fn to(mut out: impl Write + Send + 'static) -> LogSink {
        let shared = Arc::new(Shared::default());
        let sink = LogSink { shared: shared.clone() };
        let writer = thread::Builder::new().name("log".to_owned());
        // Without the thread there is no log, but requests are served all the same: the queue fills up and drops lines.
        let _ = writer.spawn(move || shared.write_batches(&mut out));
        sink
    }

    /// Queues a line, which must end with a line break.
    pub fn push(&self, line: &[u8]) {
        let mut queue = self.shared.lock();
        if queue.bytes.len() + line.len() > MAX_QUEUED {
            queue.dropped += 1;
            return;
        }
        queue.bytes.extend_from_slice(line);
        let was_asleep = mem::take(&mut queue.asleep);
        drop(queue);
        if was_asleep {
            self.shared.wake.notify_one();
        }
    }

    /// Waits until all queued lines are written. Call it before the process exits.
    pub fn flush(&self) {
        let mut queue = self.shared.lock();
        queue.flushing = true;
        self.shared.wake.notify_one();
        while !queue.bytes.is_empty() || queue.writing {
            let waited = self.shared.written.wait_timeout(queue, Duration::from_secs(1));
            let (guard, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            queue = guard;
            if timeout.timed_out() {
                // A reader that is stuck must not keep the process from exiting.
                return;
            }
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        // A line is queued whole or not at all, so the queue is consistent even after a panic.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_batches(&self, out: &mut impl Write) {
        let mut idle_polls = 0;
        loop {
            let queue = self.lock();
            let waited = self.wake.wait_timeout_while(queue, INTERVAL, |queue| !queue.flushing);
            let (mut queue, _) = waited.unwrap_or_else(PoisonError::into_inner);
            if queue.bytes.is_empty() && !queue.flushing {
                idle_polls += 1;
                if idle_polls >= MAX_IDLE_POLLS {
                    queue.asleep = true;
                    let woken = self.wake.wait_while(queue, |queue| queue.asleep && !queue.flushing);
                    drop(woken.unwrap_or_else(PoisonError::into_inner));
                    idle_polls = 0;
                }
                continue;
            }
            idle_polls = 0;
            let batch = mem::take(&mut queue.bytes);
            let dropped = mem::take(&mut queue.dropped);
            queue.flushing = false;
            queue.writing = true;
            drop(queue);
            // If the log cannot be written, there is nowhere to report that.
            let _ = out.write_all(&batch);
            if dropped > 0 {
                let _ = writeln!(out, r#"{{"level":"WARN","message":"{dropped} log lines were dropped"}}"#);
            }
            let _ = out.flush();
            self.lock().writing = false;
            self.written.notify_all();
        }
    }
}

impl<'a> MakeWriter<'a> for LogSink {
    type Writer = Line;

    fn make_writer(&'a self) -> Line {
        Line { sink: self.clone() }
    }
}

/// Writes one event of the `tracing` subscriber, which passes it in one piece.
#[derive(Debug)]
pub struct Line {
    sink: LogSink,
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.sink.push(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The output of [`LogSink::to_memory`].
#[derive(Clone, Debug, Default)]
pub struct LogBuffer {
    bytes: Arc<Mutex<Vec<u8>>>,
}

impl LogBuffer {
    #[must_use]
    pub fn text(&self) -> String {
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Write for LogBuffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_many_threads_are_all_written_in_one_piece() {
        let (sink, written) = LogSink::to_memory();
        thread::scope(|scope| {
            for name in ["a", "b", "c", "d"] {
                let sink = sink.clone();
                scope.spawn(move || {
                    (0..100).for_each(|_| sink.push(format!("{}\n", name.repeat(30)).as_bytes()))
                });
            }
        });
        sink.flush();
        let text = written.text();
        for name in ["a", "b", "c", "d"] {
            assert_eq!(text.lines().filter(|line| *line == name.repeat(30)).count(), 100);
        }
    }
}
