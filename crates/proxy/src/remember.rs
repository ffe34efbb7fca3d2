//! The last step: what stays of a request.
//!
//! What the next request of the conversation needs is written while the upstream works, and the answer does not end before
//! it is safe. What is only counted is written after it. Both are tasks that a shutdown waits for.

use crate::entry::Entry;
use crate::gate::Gate;
use crate::identify::Identity;
use crate::listener::Listener;
use crate::request_id::unique;
use crate::rewrite::{Rewritten, calibration_key};
use crate::server::Worker;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tidegate_config::{Route, strategy_name};
use tidegate_engine::{Digest, Strategy, Tokens};
use tidegate_store::{Entries, MessageId, RawMessage, Turn, TurnRecord, encode_turn};
use tidegate_telemetry::Outcome;
use tidegate_tokens::Fit;
use tidegate_wire::{Answer, answer_message, chain, facts, read_message};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

/// What a rewritten request leaves behind.
#[derive(Debug)]
pub(crate) struct Keepsake {
    gate: Arc<Gate>,
    tasks: TaskTracker,
    journal: Journaling,
    turn: Option<Box<Remembered>>,
    /// What was counted, and under which name to note how far off that was; none where our count is the model's own.
    lesson: Option<(String, Tokens)>,
}

/// Where the write is that the answer waits for.
#[derive(Debug)]
enum Journaling {
    Running(JoinHandle<Result<(), &'static str>>),
    Done(Result<(), &'static str>),
}

/// A turn of a conversation, as far as it is known before its answer.
#[derive(Debug)]
struct Remembered {
    identity: Identity,
    record: TurnRecord,
    end: Option<Digest>,
}

impl Keepsake {
    /// Begins to write what the next request needs.
    pub(crate) fn begin(
        worker: &Worker,
        identity: Option<Identity>,
        mut rewritten: Rewritten,
        route: &Route,
        strategy: Strategy,
    ) -> Keepsake {
        let gate = &worker.gate;
        let plan = &rewritten.plan;
        let is_observed = route.context.observe && plan.before != plan.after;
        let lesson = (rewritten.model.fit == Fit::Nearest && !is_observed)
            .then(|| (calibration_key(identity.as_ref(), &rewritten.model), rewritten.counted));
        if let Some(later) = rewritten.later.take() {
            drop(worker.tasks.spawn(later.run()));
        }
        let entries = std::mem::take(&mut rewritten.entries);
        let journal = match &identity {
            // The request has waited for the store once, which is as long as it may.
            Some(identity) if rewritten.without_store => {
                if let Some(waypoint) = entries.waypoint {
                    gate.conversations.keep_here(identity.key, waypoint);
                }
                Journaling::Done(Ok(()))
            }
            Some(identity) if entries != Entries::default() => {
                let (conversations, key) = (gate.conversations.clone(), identity.key);
                let write = async move { conversations.journal(key, entries).await };
                Journaling::Running(worker.tasks.spawn(write))
            }
            Some(_) | None => Journaling::Done(Ok(())),
        };
        let turn = identity.filter(|_| strategy != Strategy::Passthrough).map(|identity| {
            let record = record(&rewritten, route, strategy);
            Box::new(Remembered { identity, record, end: rewritten.end })
        });
        Keepsake { gate: gate.clone(), tasks: worker.tasks.clone(), journal, turn, lesson }
    }

    /// Ready when what had to be written is, or cannot be. It takes no longer than the store's timeout.
    pub(crate) fn poll_journaled(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Journaling::Running(task) = &mut self.journal {
            let written = ready!(Pin::new(task).poll(cx)).unwrap_or(Err("store_failed"));
            self.journal = Journaling::Done(written);
        }
        Poll::Ready(())
    }

    /// Why the write failed, if that is known by now.
    pub(crate) fn failure(&mut self) -> Option<&'static str> {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let _ = self.poll_journaled(&mut cx);
        match self.journal {
            Journaling::Done(Err(reason)) => Some(reason),
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
        let Some(mut turn) = self.turn.take() else { return };
        turn.note(entry);
        // There is none when the process ends with the answer still under way.
        let Ok(runtime) = Handle::try_current() else { return };
        let gate = self.gate.clone();
        let remember = async move {
            let answer = answer.or_else(|| listener.answer());
            turn.remember(&gate, answer.as_ref()).await;
        };
        drop(self.tasks.spawn_on(remember, &runtime));
    }
}

fn record(rewritten: &Rewritten, route: &Route, strategy: Strategy) -> TurnRecord {
    let plan = &rewritten.plan;
    TurnRecord {
        at: Gate::now().0,
        route: route.name.clone(),
        model: rewritten.asked.clone(),
        strategy: strategy_name(strategy).to_owned(),
        messages: rewritten.messages,
        end: rewritten.end.map(|end| end.to_string()).unwrap_or_default(),
        tokens_before: plan.before.0,
        tokens_after: plan.after.0,
        budget: plan.budget.input.0,
        masked: plan.masked.clone(),
        postponed: plan.postponed,
        trigger: plan.cause.map(|cause| cause.name().to_owned()),
        ..TurnRecord::default()
    }
}

impl Remembered {
    fn note(&mut self, entry: &Entry) {
        let millis = |duration: std::time::Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let record = &mut self.record;
        record.request_id = entry.request_id.as_str().to_owned();
        record.status = entry.status.as_u16();
        record.outcome = entry.outcome.name().to_owned();
        record.first_byte_ms = entry.first_byte.map(millis);
        record.duration_ms = millis(entry.started.elapsed());
        record.overhead_us = entry.overhead_us;
        record.degraded = entry.degraded.map(str::to_owned);
    }

    /// Writes the answer into the timeline and the turn into the counts.
    async fn remember(mut self, gate: &Gate, answer: Option<&Answer>) {
        let conversations = &gate.conversations;
        let key = self.identity.key;
        let usage = answer.and_then(|answer| answer.usage);
        self.record.prompt_tokens = usage.map(|usage| usage.prompt_tokens);
        self.record.completion_tokens = usage.map(|usage| usage.completion_tokens);
        self.record.cached_tokens = usage.map(|usage| usage.cached_tokens);
        let is_whole = self.record.outcome == Outcome::Answered.name();
        if let Some(message) = answer
            .filter(|_| is_whole && conversations.records_messages())
            .and_then(|answer| self.message(answer))
        {
            // What fails here is written with the next request, which brings the answer back.
            let _ =
                conversations.journal(key, Entries { messages: vec![message], ..Entries::default() }).await;
        }
        let record = &self.record;
        let reported = |value: Option<u64>| value.unwrap_or(0);
        let turn = Turn {
            id: unique().to_be_bytes(),
            end: self.end.map(|end| MessageId(end.0)),
            at: record.at,
            record: encode_turn(record),
            counts: vec![
                ("tokens_before", record.tokens_before),
                ("tokens_after", record.tokens_after),
                ("prompt_tokens", reported(record.prompt_tokens)),
                ("completion_tokens", reported(record.completion_tokens)),
                ("cached_tokens", reported(record.cached_tokens)),
            ],
            labels: vec![
                ("name", self.identity.name.clone()),
                ("tenant", self.identity.tenant.clone()),
                ("route", record.route.clone()),
                ("model", record.model.clone()),
                ("strategy", record.strategy.clone()),
            ],
        };
        if let Err(reason) = conversations.count(key, turn).await {
            gate.metrics.uncounted(reason);
        }
    }

    /// The answer as the client will send it back.
    fn message(&self, answer: &Answer) -> Option<RawMessage> {
        let (end, json) = (self.end?, answer_message(answer)?);
        let canonical = facts(&read_message(&json).ok()?).canonical;
        Some(RawMessage {
            id: MessageId(chain(end, &canonical).0),
            parent: MessageId(end.0),
            position: u32::try_from(self.record.messages).ok()?,
            at: Gate::now().0,
            json: json.into(),
        })
    }
}
