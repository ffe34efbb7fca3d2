//! The writer thread. It applies all waiting changes in one commit, so that they share one wait for the disk.

use super::change::{Applied, Change, Outcome, apply};
use super::file::DatabaseFile;
use super::lifetime::Lifetime;
use super::space::Space;
use super::sweep::{self, Swept, sweep};
use crate::StoreError;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::runtime::{self, Runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

#[derive(Debug)]
pub(super) struct Writer {
    /// `None` once the store is being dropped. The thread ends when the queue is empty.
    queue: Option<mpsc::Sender<Job>>,
    /// What may wait in the queue, in units of [`UNIT`] bytes. A disk that stalls must not fill the memory.
    room: Arc<Semaphore>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Job {
    change: Change,
    reply: oneshot::Sender<Outcome>,
    _room: Option<OwnedSemaphorePermit>,
}

/// The maximum number of waiting changes, and of changes in one commit. Callers wait if the queue is full.
const QUEUE: usize = 256;

/// The most that waiting changes hold, and its unit. A change that is larger waits until it is alone.
const ROOM: usize = 64 << 20;
const UNIT: usize = 4096;

/// The pause after a sweep that removed everything.
const SWEEP_PAUSE: Duration = Duration::from_secs(1);
/// The pause if more is left. Requests get most of the disk.
const SHORT_SWEEP_PAUSE: Duration = Duration::from_millis(100);
/// The pause after a failed sweep. A write notices earlier that the disk works again.
const FAILED_SWEEP_PAUSE: Duration = Duration::from_secs(10);

impl Writer {
    pub(super) fn start(
        file: Arc<DatabaseFile>,
        space: Arc<Space>,
        lifetime: Lifetime,
    ) -> Result<Writer, StoreError> {
        let (queue, jobs) = mpsc::channel(QUEUE);
        let failed =
            |error: std::io::Error| StoreError::Failed(format!("cannot start the writer thread: {error}"));
        // Only for its timer, to wait for a job or the next sweep.
        let timer = runtime::Builder::new_current_thread().enable_time().build().map_err(failed)?;
        let thread = thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || run(&file, &space, lifetime, jobs, &timer))
            .map_err(failed)?;
        Ok(Writer { queue: Some(queue), room: Arc::new(Semaphore::new(ROOM / UNIT)), thread: Some(thread) })
    }

    /// Completes when the change is on disk.
    pub(super) async fn write(&self, change: Change) -> Outcome {
        let stopped = || StoreError::Failed("the writer thread has stopped".to_owned());
        let (reply, replied) = oneshot::channel();
        let queue = self.queue.as_ref().ok_or_else(stopped)?;
        let units = u32::try_from((change.bytes() / UNIT).min(ROOM / UNIT)).unwrap_or(0);
        let room = match units {
            0 => None,
            units => Some(self.room.clone().acquire_many_owned(units).await.map_err(|_| stopped())?),
        };
        queue.send(Job { change, reply, _room: room }).await.map_err(|_| stopped())?;
        replied.await.map_err(|_| stopped())?
    }

    /// Writes what is queued and ends the thread.
    pub(super) fn stop(&mut self) {
        drop(self.queue.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("embedded store: writer thread panicked");
        }
    }
}

fn run(
    file: &DatabaseFile,
    space: &Space,
    lifetime: Lifetime,
    mut jobs: mpsc::Receiver<Job>,
    timer: &Runtime,
) {
    let mut batch = Vec::with_capacity(QUEUE);
    let mut next_sweep = Instant::now();
    let mut evictions = EvictionLog::default();
    loop {
        let received =
            timer.block_on(async { timeout_at(next_sweep, jobs.recv_many(&mut batch, QUEUE)).await });
        match received {
            Ok(0) => return,
            Ok(_) => commit(file, space, lifetime, &mut batch),
            Err(_) => {}
        }
        if Instant::now() >= next_sweep {
            next_sweep = Instant::now() + sweep_once(file, space, lifetime);
        }
        evictions.write(space);
    }
}

/// Writes a batch and replies to its callers.
fn commit(file: &DatabaseFile, space: &Space, lifetime: Lifetime, batch: &mut Vec<Job>) {
    let written = ensure_open(file).and_then(|()| {
        file.with(|database| {
            let mut transaction = database.begin_write()?;
            transaction.set_quick_repair(true);
            let changes = batch.iter().map(|job| &job.change);
            let applied = apply(&transaction, changes, lifetime.moment(), space)?;
            transaction.commit()?;
            Ok(applied)
        })
    });
    match written {
        Ok(Applied { outcomes, used, evicted }) => {
            space.committed(used);
            space.evictions.add(&evicted);
            for (job, outcome) in batch.drain(..).zip(outcomes) {
                // The caller may have stopped waiting.
                let _ = job.reply.send(outcome);
            }
        }
        Err(error) => {
            for job in batch.drain(..) {
                let _ = job.reply.send(Err(error.clone()));
            }
            recover(file);
        }
    }
}

/// Sweeps once. Returns the pause until the next sweep.
fn sweep_once(file: &DatabaseFile, space: &Space, lifetime: Lifetime) -> Duration {
    match file.with(|database| sweep(database, lifetime.moment(), sweep::MAX_ROWS, space)) {
        Ok(Swept::Everything) => SWEEP_PAUSE,
        Ok(Swept::MoreLeft) => SHORT_SWEEP_PAUSE,
        Err(error) => {
            // No caller waits for a sweep, so the error is logged here.
            tracing::warn!(%error, "embedded store: cannot remove expired conversations");
            recover(file);
            FAILED_SWEEP_PAUSE
        }
    }
}

/// Says in the log that conversations were evicted, at most once a minute: a full store evicts with nearly every write.
#[derive(Debug, Default)]
struct EvictionLog {
    logged: u64,
    next: Option<Instant>,
}

impl EvictionLog {
    const INTERVAL: Duration = Duration::from_secs(60);

    fn write(&mut self, space: &Space) {
        let count = space.evictions.count();
        let now = Instant::now();
        if count == self.logged || self.next.is_some_and(|next| now < next) {
            return;
        }
        let conversations = count - self.logged;
        tracing::warn!(
            conversations,
            max_size = space.limit(),
            "store.max_size is reached: the oldest conversations were removed"
        );
        *self = EvictionLog { logged: count, next: Some(now + EvictionLog::INTERVAL) };
    }
}

fn ensure_open(file: &DatabaseFile) -> Result<(), StoreError> {
    if file.is_open() { Ok(()) } else { file.reopen() }
}

/// Reopens the database, which refuses writes after a failed one. If that fails, it stays closed; the next write tries again and
/// reports the error to its caller.
fn recover(file: &DatabaseFile) {
    if let Err(error) = file.reopen() {
        tracing::debug!(%error, "embedded store: cannot reopen the database");
    }
}
