//! The threads that read. They do nothing else: a read that shares its thread with work on large bodies misses its deadline.

use crate::StoreError;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use tokio::sync::oneshot;

/// Dropping it waits for reads that are under way.
#[derive(Debug)]
pub(super) struct Readers {
    /// `None` once the store is being dropped.
    queue: Option<Sender<Read>>,
    threads: Vec<JoinHandle<()>>,
}

struct Read(Box<dyn FnOnce() + Send>);

/// Reads that wait for the disk at the same time. Most are answered from memory.
const THREADS: usize = 4;

impl Readers {
    pub(super) fn start() -> Result<Readers, StoreError> {
        let (queue, reads) = channel();
        let reads = Arc::new(Mutex::new(reads));
        let failed =
            |error: std::io::Error| StoreError::Failed(format!("cannot start a reader thread: {error}"));
        let start = |number| {
            let reads = reads.clone();
            let thread = thread::Builder::new().name(format!("store-reader-{number}"));
            thread.spawn(move || serve(&reads)).map_err(failed)
        };
        let threads = (0..THREADS).map(start).collect::<Result<_, _>>()?;
        Ok(Readers { queue: Some(queue), threads })
    }

    pub(super) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let interrupted = || StoreError::Failed("a read was interrupted".to_owned());
        let (reply, replied) = oneshot::channel();
        let read = move || {
            // Whoever asked may have run out of time.
            if !reply.is_closed() {
                let _ = reply.send(read());
            }
        };
        let queue = self.queue.as_ref().ok_or_else(interrupted)?;
        queue.send(Read(Box::new(read))).map_err(|_| interrupted())?;
        replied.await.map_err(|_| interrupted())?
    }

    /// Waits for the reads that are queued and ends the threads.
    pub(super) fn stop(&mut self) {
        drop(self.queue.take());
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("embedded store: a reader thread panicked");
            }
        }
    }
}

fn serve(reads: &Mutex<Receiver<Read>>) {
    loop {
        // Nothing panics while the lock is held.
        let next = reads.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match next {
            Ok(Read(read)) => read(),
            Err(_) => return,
        }
    }
}
