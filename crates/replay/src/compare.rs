//! Replays files on all cores.

use crate::comparison::Comparison;
use crate::input::{Defaults, Found, InputError, read_file};
use crate::run::{Setup, Stage};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Mutex, PoisonError};

/// How far a replay is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub conversations: usize,
    /// Of the input.
    pub bytes: u64,
}

/// So many conversations wait for a thread at most: what is read too far ahead only takes memory.
const WAITING: usize = 64;

/// Runs all conversations of all files through every policy. `progress` is called now and then, from any thread.
pub fn compare(
    files: &[PathBuf],
    setup: &Setup,
    defaults: &Defaults,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Comparison, InputError> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (sender, receiver) = sync_channel(WAITING);
    let (receiver, failed) = (Mutex::new(receiver), AtomicBool::new(false));
    let done = Mutex::new(Progress { conversations: 0, bytes: 0 });
    let work = || {
        let mut stage = Stage::new(setup);
        let mut comparison = Comparison::new(setup);
        let mut wrong = None;
        // After a mistake the rest is taken and left alone: whoever reads the files must not wait for a place to put it.
        while let Some((place, found, bytes)) = next(&receiver) {
            if failed.load(Ordering::Relaxed) {
                continue;
            }
            let conversation = match found {
                Found::Conversation(conversation) => Ok(*conversation),
                Found::Line(line) => line.conversation(defaults),
            };
            match conversation {
                Ok(conversation) => comparison.add(place, stage.replay(&conversation)),
                Err(error) => {
                    failed.store(true, Ordering::Relaxed);
                    wrong = Some(error);
                }
            }
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            (done.conversations, done.bytes) = (done.conversations + 1, done.bytes + bytes);
            progress(*done);
        }
        wrong.map_or(Ok(comparison), Err)
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let mut place = 0;
        let mut outcome = Ok(());
        for file in files {
            outcome = read_file(file, defaults, |found, bytes| {
                place += 1;
                sender.send((place, found, bytes)).is_ok() && !failed.load(Ordering::Relaxed)
            });
            if outcome.is_err() || failed.load(Ordering::Relaxed) {
                break;
            }
        }
        drop(sender);
        let mut all = Comparison::new(setup);
        let mut wrong: Option<InputError> = None;
        for worker in workers {
            match worker.join() {
                Ok(Ok(part)) => all.merge(part),
                Ok(Err(error)) => wrong = first(wrong, error),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        match (wrong, outcome) {
            (Some(error), _) | (None, Err(error)) => Err(error),
            (None, Ok(())) => Ok(all),
        }
    })
}

fn next<T>(receiver: &Mutex<Receiver<T>>) -> Option<T> {
    receiver.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

/// Of two mistakes the one that comes first in its file.
fn first(known: Option<InputError>, error: InputError) -> Option<InputError> {
    let line = |error: &InputError| match error {
        InputError::Line { line, .. } => *line,
        InputError::Unreadable { .. } | InputError::Empty { .. } => 0,
    };
    match known {
        Some(known) if line(&known) <= line(&error) => Some(known),
        Some(_) | None => Some(error),
    }
}
