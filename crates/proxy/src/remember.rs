//! The last step: what stays of a request.
//!
//! What the next request of the conversation needs is written while the upstream works, and the answer does not end before
//! it is safe. What is only counted is written after it. Both are tasks that a shutdown waits for.

use crate::archive;
use crate::draft::calibration_key;
use crate::entry::Entry;
use crate::gate::Gate;
use crate::identify::Identity;
use crate::listener::Listener;
use crate::rewrite::{Later, Rewritten};
use crate::server::Worker;
use crate::turn::{Heard, Remembered, figures, record};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tidegate_config::{History, Route};
use tidegate_engine::{Strategy, Tokens};
use tidegate_store::{Degraded, Entries};
use tidegate_telemetry::Outcome;
use tidegate_telemetry::names::span;
use tidegate_tokens::Fit;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

/// What a rewritten request leaves behind.
#[derive(Debug)]
pub(crate) struct Keepsake {
    gate: Arc<Gate>,
    tasks: TaskTracker,
    journal: Journaling,
    /// The answer, where the history is ours to keep: the next request may not bring it back.
    answer: Answering,
    turn: Option<Box<Remembered>>,
    /// A summary that is made when the answer is over.
    later: Option<Box<Later>>,
    /// What was counted, and under which name to note how far off that was; none where our count is the model's own.
    lesson: Option<(String, Tokens)>,
}

/// Where the write is that the answer waits for.
#[derive(Debug)]
enum Journaling {
    Running(JoinHandle<Result<(), Degraded>>),
    Done(Result<(), Degraded>),
}

/// Where the write of the answer is, which the end of the answer waits for where the history is ours to keep.
#[derive(Debug)]
enum Answering {
    /// The client will send it back.
    NotOurs,
    Unheard,
    Running(JoinHandle<()>),
    Done,
}

impl Keepsake {
    /// Begins to write what the next request needs.
    pub(crate) fn begin(
        worker: &Worker,
        identity: Option<Identity>,
        mut rewritten: Rewritten,
        route: &Route,
        strategy: Strategy,
        entry: &Entry,
    ) -> Keepsake {
        let holds_history = route.context.history == History::Proxy;
        let gate = &worker.gate;
        let plan = &rewritten.plan;
        let is_observed = route.context.observe && plan.before != plan.after;
        let lesson = (rewritten.model.fit == Fit::Nearest && !is_observed)
            .then(|| (calibration_key(identity.as_ref(), &rewritten.model), rewritten.counted));
        // A model that summarizes can do so while the other one answers. What this machine has to do itself waits until the
        // answer is out of its way.
        let later = match rewritten.later.take() {
            Some(later) if !later.folding.is_quick() => {
                drop(worker.tasks.spawn(later.run()));
                None
            }
            later => later.map(Box::new),
        };
        let entries = std::mem::take(&mut rewritten.entries);
        if let (Some(archive), Some(identity)) = (&gate.archive, &identity) {
            archive::messages(archive, identity, &route.name, &entries);
        }
        let journal = match &identity {
            // The request has waited for the store once, which is as long as it may.
            Some(identity) if rewritten.without_store => {
                if let Some(waypoint) = entries.waypoint {
                    gate.conversations.keep_here(identity.key, waypoint);
                }
                gate.conversations.note(identity.key, &entries.messages);
                Journaling::Done(Ok(()))
            }
            Some(identity) if entries != Entries::default() => {
                let (conversations, key) = (gate.conversations.clone(), identity.key);
                let write = async move { conversations.journal(key, entries).await };
                Journaling::Running(worker.tasks.spawn(write))
            }
            Some(_) | None => Journaling::Done(Ok(())),
        };
        if let Some(labels) = &entry.labels {
            gate.metrics.planned(labels, &figures(&rewritten, route));
        }
        let is_recorded = strategy != Strategy::Passthrough || holds_history;
        let turn = identity.filter(|_| is_recorded).map(|identity| {
            let record = record(&rewritten, route, strategy);
            let Rewritten { end, model, counted, unedited, .. } = rewritten;
            let heard = entry.labels.clone().map(|labels| Heard {
                labels,
                unedited,
                journey: entry.journey.clone(),
                call: None,
                with_content: worker.gate.snapshot().settings.telemetry.content,
            });
            Box::new(Remembered { identity, record, end, refused: None, model, counted, heard })
        });
        let answer = if holds_history { Answering::Unheard } else { Answering::NotOurs };
        Keepsake { gate: gate.clone(), tasks: worker.tasks.clone(), journal, answer, turn, later, lesson }
    }

    /// Ready when what had to be written is, or cannot be. It takes no longer than the store's timeout.
    pub(crate) fn poll_journaled(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Journaling::Running(task) = &mut self.journal {
            let written = ready!(Pin::new(task).poll(cx)).unwrap_or(Err(Degraded::Failed));
            self.journal = Journaling::Done(written);
        }
        Poll::Ready(())
    }

    /// Ready when the end of the answer may be given out: what the next request needs is written, and so is the answer where the
    /// next request will not bring it.
    pub(crate) fn poll_settled(&mut self, listener: &Listener, cx: &mut Context<'_>) -> Poll<()> {
        ready!(self.poll_journaled(cx));
        if matches!(self.answer, Answering::Unheard) {
            let message = listener.answer().and_then(|answer| self.turn.as_ref()?.message(&answer));
            self.answer = match (message, &self.turn) {
                (Some(message), Some(turn)) => {
                    if let Some(archive) = &self.gate.archive {
                        archive::message(archive, &turn.identity, &turn.record.route, &message);
                    }
                    let (conversations, key) = (self.gate.conversations.clone(), turn.identity.key);
                    let entries = Entries { messages: vec![message], ..Entries::default() };
                    // What fails is noted in this process, and written with the next request.
                    let write = async move {
                        let _ = conversations.journal(key, entries).await;
                    };
                    Answering::Running(self.tasks.spawn(write))
                }
                _ => Answering::Done,
            };
        }
        if let Answering::Running(task) = &mut self.answer {
            // A write that ends early has noted what it could.
            let _ = ready!(Pin::new(task).poll(cx));
            self.answer = Answering::Done;
        }
        Poll::Ready(())
    }

    /// Why the write failed, if that is known by now.
    pub(crate) fn failure(&mut self) -> Option<&'static str> {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let _ = self.poll_journaled(&mut cx);
        match self.journal {
            Journaling::Done(Err(degraded)) => Some(degraded.reason()),
            Journaling::Done(Ok(())) | Journaling::Running(_) => None,
        }
    }

    /// The answer is over: learns from it, and has the turn counted.
    pub(crate) fn finish(mut self, listener: Listener, entry: &mut Entry) {
        let mut answer = None;
        if let Some((key, counted)) = self.lesson.take().filter(|_| entry.outcome == Outcome::Answered) {
            answer = listener.answer();
            if let Some(usage) = answer.as_ref().and_then(|answer| answer.usage) {
                self.gate.calibration.observe(&key, counted, Tokens(usage.prompt_tokens));
            }
        }
        if let Some(reason) = self.failure() {
            entry.degraded = Some(reason);
        }
        // There is none when the process ends with the answer still under way.
        let Ok(runtime) = Handle::try_current() else { return };
        if let Some(later) = self.later.take() {
            drop(self.tasks.spawn_on(later.run(), &runtime));
        }
        let Some(mut turn) = self.turn.take() else { return };
        turn.note(entry);
        if let Some(heard) = &mut turn.heard {
            heard.call = entry.call.take();
        }
        let step = entry.journey.trail().step(span::REMEMBER);
        let is_kept = matches!(self.answer, Answering::Done);
        let gate = self.gate.clone();
        let remember = async move {
            let answer = answer.or_else(|| listener.answer());
            turn.remember(&gate, answer.as_ref(), is_kept).await;
            drop(step);
        };
        drop(self.tasks.spawn_on(remember, &runtime));
    }
}
