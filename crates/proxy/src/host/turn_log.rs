//! Records, counts and archives one turn when its answer is over.

use crate::host::archive;
use crate::host::identity::Identity;
use crate::host::recalls::Recalls;
use crate::host::shared::Gateway;
use crate::observe::request::RequestFacts;
use crate::observe::request_id::unique;
use crate::observe::spans;
use std::sync::Arc;
use std::time::Duration;
use tidegate_context::{
    Cost, Ending, Figures, Outcome as TurnOutcome, TurnInput, TurnRecord, Unedited, encode_turn, nanodollars,
};
use tidegate_engine::{Digest, Tokens};
use tidegate_store::{Generation, MessageId, RawMessage, Standing, Turn};
use tidegate_telemetry::{Answered, Labels, Outcome, RequestSpan, UpstreamSpan};
use tidegate_tokens::{Model, Prices, count};
use tidegate_wire::{Answer, Dialect, Usage, chain};

/// The counter of what a conversation has cost, in billionths of a dollar.
pub(crate) const COST: &str = "cost_nanousd";
/// The counter of what it would have cost unedited.
const UNEDITED_COST: &str = "unedited_cost_nanousd";
/// The counters of what observed turns cost, and of what the same turns would have cost as planned.
const OBSERVED_COST: &str = "observed_cost_nanousd";
const PLANNED_COST: &str = "planned_cost_nanousd";

/// A turn of a conversation, collected before its answer is complete.
#[derive(Debug)]
pub(crate) struct TurnLog {
    pub(crate) identity: Identity,
    /// The generation of the conversation that the turn was decided on.
    generation: Generation,
    pub(crate) record: TurnRecord,
    figures: Figures,
    dialect: Dialect,
    /// The digest of the conversation up to the request's last message.
    end: Option<Digest>,
    model: Arc<Model>,
    /// What the request is billed at.
    prices: Option<Prices>,
    /// Our own count of the forwarded request, before any correction.
    counted: Tokens,
    unedited: Unedited,
    /// Whether messages are stored. What is passed on unedited may be counted only.
    is_recorded: bool,
    /// What the model has recalled before its answer.
    pub(crate) recalls: Arc<Recalls>,
    /// Whether the upstream has answered completely, and not with an error.
    is_answered: bool,
    reports: Option<AnswerReports>,
}

/// What is known of the answer when a turn is written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AnswerRead<'a> {
    Read(&'a Answer),
    /// There was one that could not be read, of about so many tokens. None has arrived if the client left before, or nobody waited longer.
    Unreadable {
        tokens: Tokens,
    },
    /// There was none, or an error.
    Nothing,
}

impl AnswerRead<'_> {
    fn is_partial(&self) -> bool {
        matches!(self, AnswerRead::Read(answer) if answer.partial)
    }
}

/// Where the answer is reported, besides the record.
#[derive(Debug)]
pub(crate) struct AnswerReports {
    pub(crate) dialect: Dialect,
    pub(crate) labels: Labels,
    pub(crate) span: RequestSpan,
    pub(crate) call: Option<UpstreamSpan>,
    /// Whether spans may hold content.
    pub(crate) with_content: bool,
}

impl TurnLog {
    pub(crate) fn new(
        (identity, generation): (Identity, Generation),
        route: &str,
        input: &TurnInput,
        outcome: &TurnOutcome,
        reports: Option<AnswerReports>,
    ) -> TurnLog {
        let record = TurnRecord {
            at: Gateway::now().0,
            route: route.to_owned(),
            model: model_label(input.requested_model()),
            ..TurnRecord::new(outcome)
        };
        TurnLog {
            identity,
            generation,
            record,
            figures: outcome.figures,
            dialect: input.outline.dialect,
            end: outcome.end(),
            model: input.model.clone(),
            prices: input.prices(&outcome.assessment.chat),
            counted: TurnLog::count_of(input, outcome),
            unedited: outcome.unedited,
            is_recorded: input.is_recorded(),
            recalls: Arc::default(),
            is_answered: false,
            reports,
        }
    }

    /// Our own count of the forwarded request, before any correction.
    pub(crate) fn count_of(input: &TurnInput, outcome: &TurnOutcome) -> Tokens {
        Tokens((outcome.figures.forwarded().0 as f64 / input.factor).round() as u64)
    }

    /// Adds how the request ended, and the span of its upstream call.
    pub(crate) fn note(&mut self, facts: RequestFacts, call: Option<UpstreamSpan>) {
        let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let record = &mut self.record;
        record.request_id = facts.request_id;
        record.status = facts.status.as_u16();
        record.outcome = facts.outcome.name().to_owned();
        record.reason = facts.reason.map(str::to_owned);
        record.first_byte_ms = facts.first_byte.map(millis);
        record.upstream_ms = facts.upstream_latency.map(millis);
        record.retry_after_s = facts.retry_after;
        self.is_answered = facts.outcome.is_success();
        record.duration_ms = millis(facts.duration);
        record.overhead_us = facts.overhead_us;
        record.degraded = facts.degraded.map(str::to_owned);
        if let Some(reports) = &mut self.reports {
            reports.call = call;
        }
    }

    /// Writes the turn. `is_kept` is whether the answer is in the timeline already.
    pub(crate) async fn write(mut self, gateway: &Gateway, answer: AnswerRead<'_>, is_kept: bool) {
        let usage = self.usage(&answer);
        let cost = self.cost(&answer, usage);
        let is_reported = usage.is_some() && self.recalls.is_reported();
        self.record.cost_estimated = cost.is_some() && (!is_reported || answer.is_partial());
        // Each answer was billed with its own prompt, and the client sees but the last one.
        let usage = self.recalls.added_to(usage);
        (self.record.recall_calls, self.record.recalls_found) = self.recalls.calls();
        self.record.prompt_tokens = usage.map(|usage| usage.prompt_tokens);
        self.record.completion_tokens = usage.map(|usage| usage.completion_tokens);
        self.record.cached_tokens = usage.map(|usage| usage.cached_tokens);
        self.record.cost_usd = cost.map(|cost| cost.billed);
        self.record.unedited_cost_usd = cost.map(|cost| cost.unedited);
        self.record.planned_cost_usd = cost.and_then(|cost| cost.planned);
        if let Some(reports) = self.reports.take() {
            reports.write(gateway, &answer, usage, cost);
        }
        let is_whole = self.is_answered && self.is_recorded;
        let message = match answer {
            AnswerRead::Read(answer) if is_whole && !is_kept => self.recorded_answer(gateway, answer),
            AnswerRead::Read(_) | AnswerRead::Unreadable { .. } | AnswerRead::Nothing => None,
        };
        if let Some(archive) = &gateway.archive {
            archive::audit(archive, &self.identity, self.end, &self.figures, &self.record);
        }
        // At the same time, so that a store that commits in batches needs one commit.
        let (key, generation) = (self.identity.key, self.generation);
        let conclude = gateway.conversations.conclude(key, generation, self.turn(), message);
        let ((), concluded) = tokio::join!(self.save_spent(gateway), conclude);
        if let Err(degraded) = concluded {
            gateway.metrics().turn_uncounted(degraded.reason());
        }
    }

    /// The answer as a message to record, which is archived here.
    fn recorded_answer(&self, gateway: &Gateway, answer: &Answer) -> Option<RawMessage> {
        if !gateway.conversations.records_messages() {
            return None;
        }
        let message = self.answer_message(answer)?;
        if let Some(archive) = &gateway.archive {
            archive::message(archive, &self.identity, &self.record.route, &message);
        }
        Some(message)
    }

    /// What a branch has cost rides on its state, where only the next request of the same branch finds it.
    async fn save_spent(&self, gateway: &Gateway) {
        let (Some(branch), Some(cost)) = (&self.identity.branch, self.record.cost_usd) else { return };
        let spent = branch.note.spent.saturating_add(nanodollars(cost));
        for key in &branch.own {
            // A failure is counted with that of the turn, which fails for the same reason.
            let _ = gateway.conversations.add_spent(*key, branch.note, spent).await;
        }
    }

    /// The turn as the store counts it.
    fn turn(&self) -> Turn {
        let (record, figures) = (&self.record, &self.figures);
        let reported = |value: Option<u64>| value.unwrap_or(0);
        // What was refused or failed is not billed: its tokens would make it look like a request that was left as it is.
        let is_counted = !self.has_failed();
        let is_error = [Outcome::UpstreamError, Outcome::UpstreamBroke]
            .into_iter()
            .any(|outcome| record.outcome == outcome.name());
        let sent = |tokens: Tokens| if is_counted { tokens.0 } else { 0 };
        let observed_cost = record.cost_usd.filter(|_| record.planned_cost_usd.is_some());
        let counts = [
            ("tokens_before", sent(figures.before)),
            ("tokens_after", sent(figures.forwarded())),
            // What was forwarded of turns whose plan was only observed, and what would have been.
            ("observed", u64::from(figures.observed && is_counted)),
            ("tokens_observed", if figures.observed { sent(figures.before) } else { 0 }),
            ("tokens_planned", if figures.observed { sent(figures.after) } else { 0 }),
            (OBSERVED_COST, observed_cost.map_or(0, nanodollars)),
            (PLANNED_COST, record.planned_cost_usd.map_or(0, nanodollars)),
            ("prompt_tokens", reported(record.prompt_tokens)),
            ("completion_tokens", reported(record.completion_tokens)),
            ("cached_tokens", reported(record.cached_tokens)),
            (COST, record.cost_usd.map_or(0, nanodollars)),
            (UNEDITED_COST, record.unedited_cost_usd.map_or(0, nanodollars)),
            ("refusals", u64::from(record.outcome == Outcome::Refused.name())),
            ("errors", u64::from(is_error)),
            ("degraded", u64::from(record.degraded.is_some())),
            ("recall_calls", record.recall_calls.into()),
        ];
        Turn {
            id: unique().to_be_bytes(),
            // A request that was refused or failed has no turn in the conversation.
            end: self.end.filter(|_| is_counted).map(|end| MessageId(end.0)),
            at: record.at,
            record: encode_turn(record),
            counts: counts.into_iter().filter(|(_, count)| *count > 0).collect(),
            labels: vec![
                ("name", self.identity.name.clone()),
                ("tenant", self.identity.tenant.clone()),
                // A text cannot be pinned to a conversation that may be several people's.
                ("unnamed", u8::from(self.identity.branch.is_some()).to_string()),
                ("route", record.route.clone()),
                ("model", record.model.clone()),
                ("strategy", record.strategy.clone()),
                ("stop_hint", figures.stop_hint.map(|turns| turns.to_string()).unwrap_or_default()),
            ],
        }
    }

    /// Whether nothing of an answer arrived: the request was refused, by us or by the upstream, or its client left before.
    fn has_failed(&self) -> bool {
        let record = &self.record;
        let is_unanswered = record.outcome == Outcome::UpstreamError.name() || record.first_byte_ms.is_none();
        record.overflow_rejected || is_unanswered
    }

    /// What the upstream reported. At the beginning of a stream it reports what it has written by then: if that is all that came, our
    /// own count is nearer the truth.
    fn usage(&self, answer: &AnswerRead<'_>) -> Option<Usage> {
        let AnswerRead::Read(answer) = answer else { return None };
        let usage = answer.usage?;
        let written = if answer.partial { self.written(answer).0 } else { 0 };
        Some(Usage { completion_tokens: usage.completion_tokens.max(written), ..usage })
    }

    /// Our own count of what the model has written.
    fn written(&self, answer: &Answer) -> Tokens {
        answer.texts().map(|text| count(self.model.encoding, text)).sum()
    }

    /// The cost of the turn with all its answers: by what the upstream reported, else by our own count of what went out and came back.
    fn cost(&self, answer: &AnswerRead<'_>, usage: Option<Usage>) -> Option<Cost> {
        let prices = self.prices?;
        let estimated = |completion: Tokens| Usage {
            prompt_tokens: (self.counted + self.recalls.added()).0,
            completion_tokens: completion.0,
            ..Usage::default()
        };
        let last = match answer {
            AnswerRead::Read(_) if usage.is_some() => usage,
            // Errors are not billed.
            AnswerRead::Read(answer) if answer.failed => None,
            AnswerRead::Read(answer) => Some(estimated(self.written(answer))),
            AnswerRead::Unreadable { tokens } => Some(estimated(*tokens)),
            AnswerRead::Nothing => None,
        };
        self.unedited.cost_of_all(&prices, &self.recalls.billed(self.counted), last)
    }

    /// The answer as the client will send it back.
    pub(crate) fn answer_message(&self, answer: &Answer) -> Option<RawMessage> {
        let json = self.dialect.answer_message(answer)?;
        self.hashed_message(json).map(|(_, message)| message)
    }

    /// The answer as it stands in a history that is kept here, with a hash of what it says.
    pub(crate) fn answer_to_keep(&self, answer: &Answer) -> Option<([u8; 32], RawMessage)> {
        self.hashed_message(self.dialect.answer_to_keep(answer)?)
    }

    fn hashed_message(&self, json: Vec<u8>) -> Option<([u8; 32], RawMessage)> {
        let end = self.end?;
        let canonical = self.dialect.read_facts(&json).ok()?.canonical;
        let message = RawMessage {
            id: MessageId(chain(end, &canonical).0),
            parent: MessageId(end.0),
            position: u32::try_from(self.record.messages).ok()?,
            at: Gateway::now().0,
            json: self.dialect.recorded(json.into()),
            standing: Standing::Kept,
        };
        Some((canonical, message))
    }
}

impl AnswerReports {
    fn write(self, gateway: &Gateway, answer: &AnswerRead<'_>, usage: Option<Usage>, cost: Option<Cost>) {
        let answer = match answer {
            AnswerRead::Read(answer) => Some(*answer),
            AnswerRead::Unreadable { .. } => None,
            // Nothing was billed, so there is nothing to count.
            AnswerRead::Nothing if cost.is_none() => return,
            AnswerRead::Nothing => None,
        };
        let answered = Answered {
            prompt_tokens: usage.map(|usage| usage.prompt_tokens),
            completion_tokens: usage.map(|usage| usage.completion_tokens),
            cached_tokens: usage.map(|usage| usage.cached_tokens),
            cache_write_tokens: usage.map(|usage| usage.cache_write_tokens),
            reasoning_tokens: usage.map(|usage| usage.reasoning_tokens),
            cost,
        };
        gateway.metrics().answered(&self.labels, &answered);
        spans::cost(&self.span, answer, cost);
        if let Some((call, answer)) = self.call.as_ref().zip(answer) {
            spans::answered(call, self.dialect, answer, gateway.metrics().semconv(), self.with_content);
        }
    }
}

/// The record of a request that was refused for its length or at a limit. It is no turn of the conversation, but it is audited.
pub(crate) fn refused(
    (identity, generation): (Identity, Generation),
    route: &str,
    input: &TurnInput,
    outcome: &TurnOutcome,
    facts: RequestFacts,
) -> Option<TurnLog> {
    if outcome.ending == Ending::Forward {
        return None;
    }
    let mut log = TurnLog::new((identity, generation), route, input, outcome, None);
    log.note(facts, None);
    Some(log)
}

/// Truncates a model's name for records and labels.
pub(crate) fn model_label(requested: &str) -> String {
    const LONGEST: usize = 128;
    requested.chars().take(LONGEST).collect()
}
