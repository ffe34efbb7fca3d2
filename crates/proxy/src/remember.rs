//! The last step: what stays of a request.
//!
//! What the next request of the conversation needs is written while the upstream works, and the answer does not end before
//! it is safe. What is only counted is written after it. Both are tasks that a shutdown waits for.

use crate::archive;
use crate::entry::Entry;
use crate::gate::Gate;
use crate::identify::Identity;
use crate::limit::{COST, nanousd};
use crate::listener::Listener;
use crate::reply::Refusal;
use crate::request_id::unique;
use crate::rewrite::{Rewritten, calibration_key};
use crate::server::Worker;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tidegate_config::{History, Route, strategy_name};
use tidegate_engine::{Digest, Plan, Strategy, Tokens};
use tidegate_store::{Entries, MessageId, RawMessage, Turn, TurnRecord, encode_turn};
use tidegate_telemetry::{Outcome, Planned};
use tidegate_tokens::{Fit, Model, count};
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
    /// The answer, where the history is ours to keep: the next request may not bring it back.
    answer: Answering,
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

/// Where the write of the answer is, which the end of the answer waits for where the history is ours to keep.
#[derive(Debug)]
enum Answering {
    /// The client will send it back.
    NotOurs,
    Unheard,
    Running(JoinHandle<()>),
    Done,
}

/// A turn of a conversation, as far as it is known before its answer.
#[derive(Debug)]
struct Remembered {
    identity: Identity,
    record: TurnRecord,
    end: Option<Digest>,
    /// The same of a request that was refused: it has no turn in the conversation, and is audited all the same.
    refused: Option<Digest>,
    model: Arc<Model>,
    /// What the forwarded request costs by our own count.
    counted: Tokens,
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
        let holds_history = route.context.history == History::Proxy;
        let gate = &worker.gate;
        let plan = &rewritten.plan;
        let is_observed = route.context.observe && plan.before != plan.after;
        let lesson = (rewritten.model.fit == Fit::Nearest && !is_observed)
            .then(|| (calibration_key(identity.as_ref(), &rewritten.model), rewritten.counted));
        if let Some(later) = rewritten.later.take() {
            drop(worker.tasks.spawn(later.run()));
        }
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
        gate.metrics.planned(&figures(&rewritten));
        let is_recorded = strategy != Strategy::Passthrough || holds_history;
        let turn = identity.filter(|_| is_recorded).map(|identity| {
            let record = record(&rewritten, route, strategy);
            let Rewritten { end, model, counted, .. } = rewritten;
            Box::new(Remembered { identity, record, end, refused: None, model, counted })
        });
        let answer = if holds_history { Answering::Unheard } else { Answering::NotOurs };
        Keepsake { gate: gate.clone(), tasks: worker.tasks.clone(), journal, answer, turn, lesson }
    }

    /// Ready when what had to be written is, or cannot be. It takes no longer than the store's timeout.
    pub(crate) fn poll_journaled(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Journaling::Running(task) = &mut self.journal {
            let written = ready!(Pin::new(task).poll(cx)).unwrap_or(Err("store_failed"));
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
        let is_kept = matches!(self.answer, Answering::Done);
        // There is none when the process ends with the answer still under way.
        let Ok(runtime) = Handle::try_current() else { return };
        let gate = self.gate.clone();
        let remember = async move {
            let answer = answer.or_else(|| listener.answer());
            turn.remember(&gate, answer.as_ref(), is_kept).await;
        };
        drop(self.tasks.spawn_on(remember, &runtime));
    }
}

fn record(rewritten: &Rewritten, route: &Route, strategy: Strategy) -> TurnRecord {
    let made = rewritten.made;
    let after = rewritten.plan.after;
    TurnRecord {
        model: rewritten.asked.clone(),
        messages: rewritten.messages,
        end: rewritten.end.map(|end| end.to_string()).unwrap_or_default(),
        tokens_after_summary: made.and_then(|made| made.unpruned).unwrap_or(after).0,
        summary_triggered: made.is_some(),
        prune_triggered: made.is_some_and(|made| made.has_pruned),
        masked_tokens: rewritten.masked_tokens.0,
        blocks: rewritten.blocks,
        stop_hint: rewritten.stop_hint,
        ..planned(&rewritten.plan, route, strategy)
    }
}

/// What is recorded of any plan, carried out or not.
fn planned(plan: &Plan, route: &Route, strategy: Strategy) -> TurnRecord {
    TurnRecord {
        at: Gate::now().0,
        route: route.name.clone(),
        strategy: strategy_name(strategy).to_owned(),
        tokens_before: plan.before.0,
        tokens_after: plan.after.0,
        tokens_after_summary: plan.after.0,
        tokens_after_prune: plan.after.0,
        budget: plan.budget.input.0,
        window: plan.budget.window.0,
        masked: plan.masked.clone(),
        folded: plan.folded.as_ref().map_or(0, |folded| folded.removed.len()),
        dropped: plan.dropped.len(),
        summary_tokens: plan.folded.as_ref().map_or(0, |folded| folded.tokens.0),
        postponed: plan.postponed,
        trigger: plan.cause.map(|cause| cause.name().to_owned()),
        ..TurnRecord::default()
    }
}

fn figures(rewritten: &Rewritten) -> Planned {
    let plan = &rewritten.plan;
    Planned {
        before: plan.before.0,
        after: plan.after.0,
        masked: rewritten.masked_tokens.0,
        summary: plan.folded.as_ref().map_or(0, |folded| folded.tokens.0),
        has_stop_hint: rewritten.stop_hint.is_some(),
    }
}

/// A request that was refused for what it is has had a turn too.
pub(crate) fn remember_refusal(
    worker: &Worker,
    identity: Option<&Identity>,
    route: &Route,
    strategy: Strategy,
    refusal: &Refusal,
    entry: &Entry,
) {
    let (Refusal::OverBudget(over), Some(identity)) = (refusal, identity) else { return };
    let record = TurnRecord {
        model: over.asked.clone(),
        overflow_rejected: true,
        summary_triggered: over.made.is_some(),
        prune_triggered: over.made.is_some_and(|made| made.has_pruned),
        request_id: entry.request_id.as_str().to_owned(),
        status: http::StatusCode::UNPROCESSABLE_ENTITY.as_u16(),
        outcome: Outcome::Refused.name().to_owned(),
        ..planned(&over.plan, route, strategy)
    };
    let record = match over.made.and_then(|made| made.unpruned) {
        Some(unpruned) => TurnRecord { tokens_after_summary: unpruned.0, ..record },
        None => record,
    };
    let (gate, model, identity) = (worker.gate.clone(), over.model.clone(), identity.clone());
    let turn = Remembered { identity, record, end: None, refused: over.end, model, counted: Tokens::ZERO };
    drop(worker.tasks.spawn(async move { turn.remember(&gate, None, true).await }));
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
    async fn remember(mut self, gate: &Gate, answer: Option<&Answer>, is_kept: bool) {
        let conversations = &gate.conversations;
        let key = self.identity.key;
        let usage = answer.and_then(|answer| answer.usage);
        self.record.prompt_tokens = usage.map(|usage| usage.prompt_tokens);
        self.record.completion_tokens = usage.map(|usage| usage.completion_tokens);
        self.record.cached_tokens = usage.map(|usage| usage.cached_tokens);
        self.record.cost_usd = self.cost(answer);
        if let Some(cost) = self.record.cost_usd {
            gate.metrics.spent(cost);
        }
        let is_whole = self.record.outcome == Outcome::Answered.name();
        if let Some(message) = answer
            .filter(|_| is_whole && !is_kept && conversations.records_messages())
            .and_then(|answer| self.message(answer))
        {
            if let Some(archive) = &gate.archive {
                archive::message(archive, &self.identity, &self.record.route, &message);
            }
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
                (COST, record.cost_usd.map_or(0, nanousd)),
            ],
            labels: vec![
                ("name", self.identity.name.clone()),
                ("tenant", self.identity.tenant.clone()),
                ("route", record.route.clone()),
                ("model", record.model.clone()),
                ("strategy", record.strategy.clone()),
            ],
        };
        if let Some(archive) = &gate.archive {
            archive::audit(archive, &self.identity, self.end.or(self.refused), &self.record);
        }
        if let Err(reason) = conversations.count(key, turn).await {
            gate.metrics.uncounted(reason);
        }
    }

    /// What the turn cost: by what the upstream reported, else by our own count of what went out and came back.
    fn cost(&self, answer: Option<&Answer>) -> Option<f64> {
        let (answer, prices) = (answer?, self.model.prices?);
        let (input, cached, output) = match answer.usage {
            Some(usage) => (usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens),
            None => {
                let texts = answer.content.iter().chain(answer.tool_calls.iter().map(|call| &call.arguments));
                let said: Tokens = texts.map(|text| count(self.model.encoding, text)).sum();
                (self.counted.0, 0, said.0)
            }
        };
        prices.cost(Tokens(input), Tokens(cached), Tokens(output))
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
