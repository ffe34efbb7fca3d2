//! One turn of a conversation: what is recorded of it, counted and archived.

use crate::archive;
use crate::entry::Entry;
use crate::gate::Gate;
use crate::identify::Identity;
use crate::limit::{COST, UNEDITED_COST, nanousd};
use crate::reply::Refusal;
use crate::request_id::unique;
use crate::rewrite::Rewritten;
use crate::savings::Unedited;
use crate::server::Worker;
use crate::trace;
use std::sync::Arc;
use tidegate_config::{Route, strategy_name};
use tidegate_engine::{Digest, Plan, Strategy, Tokens};
use tidegate_store::{Entries, MessageId, RawMessage, Turn, TurnRecord, encode_turn};
use tidegate_telemetry::{Answered, Call, Cost, Journey, Labels, Outcome, Planned};
use tidegate_tokens::{Model, count};
use tidegate_wire::{Answer, Usage, answer_message, chain, facts, read_message};

/// A turn of a conversation, as far as it is known before its answer.
#[derive(Debug)]
pub(crate) struct Remembered {
    pub(crate) identity: Identity,
    pub(crate) record: TurnRecord,
    pub(crate) end: Option<Digest>,
    /// The same of a request that was refused: it has no turn in the conversation, and is audited all the same.
    pub(crate) refused: Option<Digest>,
    pub(crate) model: Arc<Model>,
    /// What the forwarded request costs by our own count.
    pub(crate) counted: Tokens,
    pub(crate) heard: Option<Heard>,
}

/// What an answer is told to, besides the record.
#[derive(Debug)]
pub(crate) struct Heard {
    pub(crate) labels: Labels,
    /// What the request would have cost as it came.
    pub(crate) unedited: Unedited,
    pub(crate) journey: Journey,
    pub(crate) call: Option<Call>,
    /// Whether spans may hold what was said.
    pub(crate) with_content: bool,
}

pub(crate) fn record(rewritten: &Rewritten, route: &Route, strategy: Strategy) -> TurnRecord {
    let made = rewritten.made;
    let after = rewritten.plan.after;
    TurnRecord {
        model: rewritten.asked.clone(),
        messages: rewritten.messages,
        end: rewritten.end.map(|end| end.to_string()).unwrap_or_default(),
        tokens_after_summary: made.and_then(|made| made.unpruned).unwrap_or(after).0,
        summary_triggered: made.is_some(),
        prune_triggered: made.is_some_and(|made| made.has_pruned),
        masked_tokens: rewritten.left_out.masked.0,
        saved_by_masking: rewritten.left_out.by_masking.0,
        folded_tokens: rewritten.left_out.folded.0,
        dropped_tokens: rewritten.left_out.dropped.0,
        memory_tokens: rewritten.memory_tokens.0,
        blocks: rewritten.blocks,
        stop_hint: rewritten.stop_hint,
        ..planned(&rewritten.plan, route, strategy)
    }
}

/// What is recorded of any plan, carried out or not.
fn planned(plan: &Plan, route: &Route, strategy: Strategy) -> TurnRecord {
    let folded = plan.folded.as_ref();
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
        safe: plan.budget.safe.0,
        output: plan.budget.output.0,
        overhead: plan.budget.overhead.0,
        masked: plan.masked.clone(),
        folded: folded.map_or(0, |folded| folded.removed.len()),
        dropped: plan.dropped.len(),
        covers: folded.map(|folded| folded.covers.to_string()).unwrap_or_default(),
        upto: folded.map_or(0, |folded| folded.upto),
        folded_messages: folded.map(|folded| ranges(&folded.removed)).unwrap_or_default(),
        dropped_messages: ranges(&plan.dropped),
        summary_tokens: folded.map_or(0, |folded| folded.tokens.0),
        postponed: plan.postponed,
        edge: plan.edge,
        observed: route.context.observe,
        trigger: plan.cause.map(|cause| cause.name().to_owned()),
        ..TurnRecord::default()
    }
}

/// Indexes in order as ranges: a conversation loses hundreds of messages that follow each other.
fn ranges(indexes: &[usize]) -> Vec<[usize; 2]> {
    let runs = indexes.chunk_by(|one, next| one + 1 == *next);
    runs.filter_map(|run| Some([*run.first()?, run.last()? + 1])).collect()
}

pub(crate) fn figures(rewritten: &Rewritten, route: &Route) -> Planned {
    let plan = &rewritten.plan;
    let folded = plan.folded.as_ref();
    Planned {
        before: plan.before.0,
        after: plan.after.0,
        masked_tokens: rewritten.left_out.masked.0,
        summary_tokens: folded.map_or(0, |folded| folded.tokens.0),
        masked: plan.masked.len() as u64,
        folded: folded.map_or(0, |folded| folded.removed.len()) as u64,
        dropped: plan.dropped.len() as u64,
        has_stop_hint: rewritten.stop_hint.is_some(),
        is_observed: route.context.observe,
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
    let counted = Tokens::ZERO;
    let turn = Remembered { identity, record, end: None, refused: over.end, model, counted, heard: None };
    drop(worker.tasks.spawn(async move { turn.remember(&gate, None, true).await }));
}

impl Remembered {
    pub(crate) fn note(&mut self, entry: &Entry) {
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
    pub(crate) async fn remember(mut self, gate: &Gate, answer: Option<&Answer>, is_kept: bool) {
        let conversations = &gate.conversations;
        let key = self.identity.key;
        let usage = answer.and_then(|answer| answer.usage);
        self.record.prompt_tokens = usage.map(|usage| usage.prompt_tokens);
        self.record.completion_tokens = usage.map(|usage| usage.completion_tokens);
        self.record.cached_tokens = usage.map(|usage| usage.cached_tokens);
        let cost = self.cost(answer);
        self.record.cost_usd = cost.map(|cost| cost.billed);
        self.record.unedited_cost_usd = cost.map(|cost| cost.unedited);
        if let Some(heard) = self.heard.take() {
            heard.tell(gate, answer, cost);
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
        // What is refused is not forwarded: it would look like a request that was left as it is.
        let sent = |tokens: u64| if record.overflow_rejected { 0 } else { tokens };
        let forwarded = if record.observed { record.tokens_before } else { record.tokens_after };
        let turn = Turn {
            id: unique().to_be_bytes(),
            end: self.end.map(|end| MessageId(end.0)),
            at: record.at,
            record: encode_turn(record),
            counts: [
                ("tokens_before", sent(record.tokens_before)),
                ("tokens_after", sent(forwarded)),
                ("prompt_tokens", reported(record.prompt_tokens)),
                ("completion_tokens", reported(record.completion_tokens)),
                ("cached_tokens", reported(record.cached_tokens)),
                (COST, record.cost_usd.map_or(0, nanousd)),
                (UNEDITED_COST, record.unedited_cost_usd.map_or(0, nanousd)),
                ("refusals", u64::from(record.outcome == Outcome::Refused.name())),
                ("degraded", u64::from(record.degraded.is_some())),
            ]
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .collect(),
            labels: vec![
                ("name", self.identity.name.clone()),
                ("tenant", self.identity.tenant.clone()),
                ("route", record.route.clone()),
                ("model", record.model.clone()),
                ("strategy", record.strategy.clone()),
                ("stop_hint", record.stop_hint.map(|turns| turns.to_string()).unwrap_or_default()),
            ],
        };
        if let Some(archive) = &gate.archive {
            archive::audit(archive, &self.identity, self.end.or(self.refused), &self.record);
        }
        if let Err(degraded) = conversations.count(key, turn).await {
            gate.metrics.uncounted(degraded.reason());
        }
    }

    /// What the turn cost: by what the upstream reported, else by our own count of what went out and came back.
    fn cost(&self, answer: Option<&Answer>) -> Option<Cost> {
        let (answer, prices) = (answer?, self.model.prices?);
        let usage = match answer.usage {
            Some(usage) => usage,
            // Nobody bills an error.
            None if answer.failed => return None,
            None => {
                let texts = answer.content.iter().chain(answer.tool_calls.iter().map(|call| &call.arguments));
                let said: Tokens = texts.map(|text| count(self.model.encoding, text)).sum();
                Usage { prompt_tokens: self.counted.0, completion_tokens: said.0, ..Usage::default() }
            }
        };
        self.heard.as_ref()?.unedited.cost(&prices, usage)
    }

    /// The answer as the client will send it back.
    pub(crate) fn message(&self, answer: &Answer) -> Option<RawMessage> {
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

impl Heard {
    fn tell(self, gate: &Gate, answer: Option<&Answer>, cost: Option<Cost>) {
        let usage = answer.and_then(|answer| answer.usage);
        let answered = Answered {
            prompt_tokens: usage.map(|usage| usage.prompt_tokens),
            completion_tokens: usage.map(|usage| usage.completion_tokens),
            cached_tokens: usage.map(|usage| usage.cached_tokens),
            cost,
        };
        gate.metrics.answered(&self.labels, &answered);
        trace::cost(&self.journey, answer, cost);
        if let Some((call, answer)) = self.call.as_ref().zip(answer) {
            trace::answered(call, answer, self.with_content);
        }
    }
}
