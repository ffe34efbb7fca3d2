//! Writes the decision and the new messages of a turn, while the upstream works.

use crate::host::fold::Folder;
use crate::observe::request::RequestObserver;
use crate::pipeline::rewrite::Rewritten;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use tidegate_store::{Branch, BranchNote, BranchState, Degraded, StoredFold};
use tokio::task::JoinHandle;

/// What the end of the answer waits for: the decision and the new messages.
#[derive(Debug)]
pub(crate) enum JournalWrite {
    Running(JoinHandle<Result<(), Degraded>>),
    Done(Result<(), Degraded>),
}

impl JournalWrite {
    /// Begins to write the entries of the turn, and takes them.
    pub(crate) fn begin(
        folder: &Folder,
        rewritten: &mut Rewritten,
        observer: &RequestObserver,
    ) -> JournalWrite {
        let mut entries = std::mem::take(&mut rewritten.entries);
        let Rewritten { input, outcome, is_store_unavailable, carried, others, .. } = rewritten;
        let conversations = &folder.worker.gateway.conversations;
        let Some(identity) = &folder.identity else { return JournalWrite::Done(Ok(())) };
        let state = |waypoint, note| {
            let (others, fold) = (others.clone(), carried.clone());
            BranchState { waypoint, others, fold, note }
        };
        if *is_store_unavailable {
            // The request has waited for the store once already, which is as long as it may.
            match (entries.waypoint, &identity.branch) {
                (waypoint @ Some(_), Some(branch)) => {
                    conversations.keep_branch_locally(branch, &state(waypoint, branch.note));
                }
                (Some(waypoint), None) => {
                    conversations.keep_locally(identity.key, entries.generation, waypoint);
                }
                (None, _) => {}
            }
            return JournalWrite::Done(Ok(()));
        }
        if entries.is_empty() {
            return JournalWrite::Done(Ok(()));
        }
        let (conversations, key) = (conversations.clone(), identity.key);
        let branch = identity.branch.as_ref().map(|branch| {
            let note = branch_note(branch, carried.as_ref(), outcome.deferred.is_some());
            // Nobody would look for it where the messages of all branches are.
            (branch.clone(), state(entries.waypoint.take(), note))
        });
        // The messages are slices of the body, which may be released otherwise when the answer begins.
        let kept = if entries.messages.is_empty() { 0 } else { input.body.len() };
        let charge = observer.charge.another(kept as u64);
        let write = async move {
            conversations.journal(key, entries).await?;
            drop(charge);
            match branch {
                // Only now: the messages up to a waypoint must be recorded.
                Some((branch, state)) => conversations.save_branch(&branch, state).await,
                None => Ok(()),
            }
        };
        JournalWrite::Running(folder.worker.shutdown.tasks.spawn(write))
    }

    /// Ready when the journal is written or has failed, at the latest after the store's timeout.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let JournalWrite::Running(task) = self {
            let written = ready!(Pin::new(task).poll(cx)).unwrap_or(Err(Degraded::Failed));
            *self = JournalWrite::Done(written);
        }
        Poll::Ready(())
    }

    /// Why it could not be written, if that is known by now.
    pub(crate) fn failure(&mut self) -> Option<Degraded> {
        let mut cx = Context::from_waker(Waker::noop());
        let _ = self.poll(&mut cx);
        match self {
            JournalWrite::Done(Err(degraded)) => Some(*degraded),
            JournalWrite::Done(Ok(())) | JournalWrite::Running(_) => None,
        }
    }
}

/// What rides on the state of this request.
fn branch_note(branch: &Branch, used: Option<&StoredFold>, is_fold_wanted: bool) -> BranchNote {
    let is_used = used.is_some() && branch.note.folding.is_some();
    let folding = match branch.note.folding.filter(|_| !is_used) {
        None if is_fold_wanted => branch.own.first().copied(),
        folding => folding,
    };
    BranchNote { folding, ..branch.note }
}
