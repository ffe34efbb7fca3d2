//! Replays files on all cores.

use crate::comparison::Comparison;
use crate::input::{Defaults, InputError, InputItem, read_file};
use crate::run::{Setup, Stage};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Mutex, PoisonError};

/// The progress of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub conversations: usize,
    /// Bytes of the input.
    pub bytes: u64,
}

/// The maximum number of conversations read ahead of the workers, to bound memory.
const QUEUE_LENGTH: usize = 64;

/// Replays all conversations of all files under every policy. `progress` is called from time to time, from
/// any thread.
pub fn compare(
    files: &[PathBuf],
    setup: &Setup,
    defaults: &Defaults,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Comparison, InputError> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (sender, receiver) = sync_channel(QUEUE_LENGTH);
    let (receiver, failed) = (Mutex::new(receiver), AtomicBool::new(false));
    let done = Mutex::new(Progress { conversations: 0, bytes: 0 });
    let work = || {
        let mut stage = Stage::new(setup);
        let mut comparison = Comparison::new(setup);
        let mut failure = None;
        // After an error, the queue is drained without processing, so that the reader is not blocked.
        while let Some((index, item, bytes)) = next(&receiver) {
            if failed.load(Ordering::Relaxed) {
                continue;
            }
            let conversation = match item {
                InputItem::Conversation(conversation) => Ok(*conversation),
                InputItem::Line(line) => line.conversation(defaults),
            };
            match conversation {
                Ok(conversation) => comparison.add(index, stage.replay(&conversation)),
                Err(error) => {
                    failed.store(true, Ordering::Relaxed);
                    failure = Some(error);
                }
            }
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            (done.conversations, done.bytes) = (done.conversations + 1, done.bytes + bytes);
            progress(*done);
        }
        failure.map_or(Ok(comparison), Err)
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let mut index = 0;
        let mut result = Ok(());
        for file in files {
            result = read_file(file, defaults, |item, bytes| {
                index += 1;
                sender.send((index, item, bytes)).is_ok() && !failed.load(Ordering::Relaxed)
            });
            if result.is_err() || failed.load(Ordering::Relaxed) {
                break;
            }
        }
        drop(sender);
        let mut all = Comparison::new(setup);
        let mut failure: Option<InputError> = None;
        for worker in workers {
            match worker.join() {
                Ok(Ok(part)) => all.merge(part),
                Ok(Err(error)) => failure = earlier(failure, error),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        match (failure, result) {
            (Some(error), _) | (None, Err(error)) => Err(error),
            (None, Ok(())) => Ok(all),
        }
    })
}

fn next<T>(receiver: &Mutex<Receiver<T>>) -> Option<T> {
    receiver.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

/// Returns the error that occurs earlier in its file.
fn earlier(known: Option<InputError>, error: InputError) -> Option<InputError> {
    let line = |error: &InputError| match error {
        InputError::Line { line, .. } => *line,
        InputError::Unreadable { .. } | InputError::Empty { .. } => 0,
    };
    match known {
        Some(known) if line(&known) <= line(&error) => Some(known),
        Some(_) | None => Some(error),
    }
}
