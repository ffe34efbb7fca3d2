use std::io::Write;
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;
use tracing_subscriber::fmt::MakeWriter;

/// Lines on their way to the standard error, written in batches by a thread of their own.
///
/// A request must never wait for a terminal or a full pipe, and one system call per line would cost more than
/// everything else that Tidegate does for a small request. When the reader is too slow, whole lines are dropped and the
/// next batch says how many.
#[derive(Clone, Debug)]
pub struct Lines {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    /// Signalled when the writer has to look at once.
    filled: Condvar,
    /// Signalled when a batch was written.
    written: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    bytes: Vec<u8>,
    dropped: u64,
    writing: bool,
    /// The writer waits for a signal. Otherwise it comes by itself, and a signal would only cost the request that sends it:
    /// waking a thread takes longer than all else that a small request needs.
    asleep: bool,
    /// Somebody waits for the batch, so it is written without further delay.
    urgent: bool,
}

const MAX_QUEUED: usize = 4 * 1024 * 1024;

/// How often the writer looks, while there is something to write now and then.
const BATCH: Duration = Duration::from_millis(20);

/// After so many looks at nothing it goes to sleep.
const PATIENCE: u32 = 50;

impl Lines {
    /// Lines that go to the standard error.
    #[must_use]
    pub fn to_stderr() -> Lines {
        Lines::to(std::io::stderr())
    }

    /// Lines that a test can read back.
    #[must_use]
    pub fn to_memory() -> (Lines, Written) {
        let written = Written::default();
        (Lines::to(written.clone()), written)
    }

    fn to(mut out: impl Write + Send + 'static) -> Lines {
        let shared = Arc::new(Shared::default());
        let lines = Lines { shared: shared.clone() };
        let writer = thread::Builder::new().name("log".to_owned());
        // Without the thread there is no log, and nothing else is wrong: the queue fills up and drops.
        let _ = writer.spawn(move || shared.write_batches(&mut out));
        lines
    }

    /// Queues one line, which must end with a line break.
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
            self.shared.filled.notify_one();
        }
    }

    /// Waits until everything queued so far is written. For the end of the process, when nobody would write it any more.
    pub fn flush(&self) {
        let mut queue = self.shared.lock();
        queue.urgent = true;
        self.shared.filled.notify_one();
        while !queue.bytes.is_empty() || queue.writing {
            let waited = self.shared.written.wait_timeout(queue, Duration::from_secs(1));
            let (guard, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            queue = guard;
            if timeout.timed_out() {
                // A reader that is stuck must not keep the process from ending.
                return;
            }
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        // A line is queued whole or not at all, so the queue is sound even if its last user panicked.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_batches(&self, out: &mut impl Write) {
        let mut empty_looks = 0;
        loop {
            let queue = self.lock();
            let waited = self.filled.wait_timeout_while(queue, BATCH, |queue| !queue.urgent);
            let (mut queue, _) = waited.unwrap_or_else(PoisonError::into_inner);
            if queue.bytes.is_empty() && !queue.urgent {
                empty_looks += 1;
                if empty_looks >= PATIENCE {
                    queue.asleep = true;
                    let woken = self.filled.wait_while(queue, |queue| queue.asleep && !queue.urgent);
                    drop(woken.unwrap_or_else(PoisonError::into_inner));
                    empty_looks = 0;
                }
                continue;
            }
            empty_looks = 0;
            let batch = mem::take(&mut queue.bytes);
            let dropped = mem::take(&mut queue.dropped);
            queue.urgent = false;
            queue.writing = true;
            drop(queue);
            // Nobody is left to tell about a log that cannot be written.
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

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Line;

    fn make_writer(&'a self) -> Line {
        Line { lines: self.clone() }
    }
}

/// One event of the `tracing` subscriber, which writes it whole.
#[derive(Debug)]
pub struct Line {
    lines: Lines,
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.lines.push(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What [`Lines::to_memory`] has written.
#[derive(Clone, Debug, Default)]
pub struct Written {
    bytes: Arc<Mutex<Vec<u8>>>,
}

impl Written {
    #[must_use]
    pub fn text(&self) -> String {
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Write for Written {
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
    fn lines_from_many_threads_arrive_whole_and_all() {
        let (lines, written) = Lines::to_memory();
        thread::scope(|scope| {
            for name in ["a", "b", "c", "d"] {
                let lines = lines.clone();
                scope.spawn(move || {
                    (0..100).for_each(|_| lines.push(format!("{}\n", name.repeat(30)).as_bytes()))
                });
            }
        });
        lines.flush();
        let text = written.text();
        for name in ["a", "b", "c", "d"] {
            assert_eq!(text.lines().filter(|line| *line == name.repeat(30)).count(), 100);
        }
    }
}
