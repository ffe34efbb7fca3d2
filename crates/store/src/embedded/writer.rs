//! The one thread that writes. It takes everything that waits, makes it one commit, and answers: the disk is waited for
//! once for all of them.

use super::change::{Change, Outcome, apply};
use super::file::DatabaseFile;
use super::lifetime::Lifetime;
use super::sweep::{self, Swept, sweep};
use crate::StoreError;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::runtime::{self, Runtime};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

#[derive(Debug)]
pub(super) struct Writer {
    /// Nothing once the store is being dropped, which ends the thread when it has done what is queued.
    queue: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Job {
    change: Change,
    answer: oneshot::Sender<Outcome>,
}

/// Changes that wait, and the most in one commit. Whoever finds the queue full waits for a place.
const QUEUE: usize = 256;

/// How long to wait between two sweeps when there is nothing left to sweep.
const PAUSE: Duration = Duration::from_secs(1);
/// And when there is: requests get the most of the disk.
const SHORT_PAUSE: Duration = Duration::from_millis(100);
/// And when it failed: a write finds out sooner that the disk is well again.
const LONG_PAUSE: Duration = Duration::from_secs(10);

impl Writer {
    pub(super) fn start(file: Arc<DatabaseFile>, lifetime: Lifetime) -> Result<Writer, StoreError> {
        let (queue, jobs) = mpsc::channel(QUEUE);
        let failed = |error: std::io::Error| StoreError::Failed(format!("no thread for writing: {error}"));
        // Only for its timer: waiting for a job or the next sweep, whichever is first.
        let timer = runtime::Builder::new_current_thread().enable_time().build().map_err(failed)?;
        let thread = thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || run(&file, lifetime, jobs, &timer))
            .map_err(failed)?;
        Ok(Writer { queue: Some(queue), thread: Some(thread) })
    }

    /// Done when it is on disk.
    pub(super) async fn write(&self, change: Change) -> Outcome {
        let stopped = || StoreError::Failed("the writer has stopped".to_owned());
        let (answer, answered) = oneshot::channel();
        let queue = self.queue.as_ref().ok_or_else(stopped)?;
        queue.send(Job { change, answer }).await.map_err(|_| stopped())?;
        answered.await.map_err(|_| stopped())?
    }

    /// Ends when everything that is queued is written.
    pub(super) fn stop(&mut self) {
        drop(self.queue.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the writer of the embedded store panicked");
        }
    }
}

fn run(file: &DatabaseFile, lifetime: Lifetime, mut jobs: mpsc::Receiver<Job>, timer: &Runtime) {
    let mut batch = Vec::with_capacity(QUEUE);
    let mut next_sweep = Instant::now();
    loop {
        let received =
            timer.block_on(async { timeout_at(next_sweep, jobs.recv_many(&mut batch, QUEUE)).await });
        match received {
            Ok(0) => return,
            Ok(_) => commit(file, lifetime, &mut batch),
            Err(_) => {}
        }
        if Instant::now() >= next_sweep {
            next_sweep = Instant::now() + sweep_once(file, lifetime);
        }
    }
}

/// Writes a batch and answers it.
fn commit(file: &DatabaseFile, lifetime: Lifetime, batch: &mut Vec<Job>) {
    let written = opened(file).and_then(|()| {
        file.with(|database| {
            let mut transaction = database.begin_write()?;
            transaction.set_quick_repair(true);
            let outcomes = apply(&transaction, batch.iter().map(|job| &job.change), lifetime.moment())?;
            transaction.commit()?;
            Ok(outcomes)
        })
    });
    match written {
        Ok(outcomes) => {
            for (job, outcome) in batch.drain(..).zip(outcomes) {
                // Whoever does not wait any more does not need the answer.
                let _ = job.answer.send(outcome);
            }
        }
        Err(error) => {
            for job in batch.drain(..) {
                let _ = job.answer.send(Err(error.clone()));
            }
            recover(file);
        }
    }
}

/// How long until the next sweep.
fn sweep_once(file: &DatabaseFile, lifetime: Lifetime) -> Duration {
    match file.with(|database| sweep(database, lifetime.moment(), sweep::ROWS)) {
        Ok(Swept::Everything) => PAUSE,
        Ok(Swept::SomeIsLeft) => SHORT_PAUSE,
        Err(error) => {
            // Nobody asked for this, so nobody else can say that it failed.
            tracing::warn!(%error, "expired conversations could not be removed from the embedded store");
            recover(file);
            LONG_PAUSE
        }
    }
}

fn opened(file: &DatabaseFile) -> Result<(), StoreError> {
    if file.is_open() { Ok(()) } else { file.reopen() }
}

/// After a failed write the database takes no other until it is opened anew. If that fails too it stays closed, and the
/// next write tries again and tells its caller why.
fn recover(file: &DatabaseFile) {
    if let Err(error) = file.reopen() {
        tracing::debug!(%error, "the embedded store stays closed");
    }
}
