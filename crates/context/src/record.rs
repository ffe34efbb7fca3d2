//! The record of a turn, as it is stored. The store keeps it as opaque bytes.

mod stored;

pub use stored::{decode_turn, encode_turn};

use crate::{BlockSizes, Ending, Figures, Outcome, PlacedExcerpt};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tidegate_config::strategy_name;
use tidegate_engine::{Excerpt, Passage, Plan};

/// An excerpt in a request. Messages are counted without instructions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecalledExcerpt {
    /// The message that it stands in, and the indexes of those that it quotes.
    pub into: u32,
    pub messages: Vec<usize>,
    /// Each passage by its message and the bytes from and to which it goes in the message's text.
    pub passages: Vec<[u32; 3]>,
    pub tokens: u64,
    /// Whether it was chosen for this request, and not for an earlier one.
    pub new: bool,
}

impl RecalledExcerpt {
    fn of(placed: &PlacedExcerpt) -> RecalledExcerpt {
        let passage = |&Passage { message, start, end }: &Passage| [message, start, end];
        RecalledExcerpt {
            into: placed.excerpt.message,
            messages: placed.sources.clone(),
            passages: placed.excerpt.passages.iter().map(passage).collect(),
            tokens: placed.tokens.0,
            new: placed.is_new,
        }
    }

    pub(crate) fn excerpt(&self) -> Excerpt {
        let passage = |&[message, start, end]: &[u32; 3]| Passage { message, start, end };
        Excerpt { message: self.into, passages: self.passages.iter().map(passage).collect() }
    }
}

/// What happened to one request. Members are added, never changed: a member that an older version did not write has its default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TurnRecord {
    pub at: u64,
    pub request_id: String,
    /// The API that the client speaks: `chat`, `messages`. Empty in the records of a version that knew only `chat`.
    pub dialect: String,
    /// Whether the messages were left to the provider.
    pub native: bool,
    pub route: String,
    pub model: String,
    pub strategy: String,
    pub status: u16,
    /// `answered`, `upstream_error`, `upstream_broke`, `client_closed`, `refused`, `rescued`.
    pub outcome: String,
    /// The code of the error or the cause, if the turn was refused, could not be forwarded or broke off.
    pub reason: Option<String>,
    /// Messages in the request, and the digest of the conversation with all of them.
    pub messages: usize,
    pub end: String,
    pub tokens_before: u64,
    pub tokens_after: u64,
    pub budget: u64,
    /// The model's window, who says so, and the arithmetic from it to the budget: how much of it is used at all, and what is
    /// reserved for the answer and for overhead. Zero for a window or a budget that is unknown.
    pub window: u64,
    pub window_source: String,
    pub safe: u64,
    /// The number of tokens above which a request is refused; zero if the upstream judges.
    pub refuse_above: u64,
    pub output: u64,
    pub overhead: u64,
    /// Tokens with the summary, and after pruning.
    pub tokens_after_summary: u64,
    pub tokens_after_prune: u64,
    /// Whether the request waited for a summary, whether that pruned, and whether the request was refused for its length.
    pub summary_triggered: bool,
    pub prune_triggered: bool,
    pub overflow_rejected: bool,
    /// How many messages a summary stands for, and how many a marker does.
    pub folded: usize,
    pub dropped: usize,
    /// The digest of the conversation up to the last message that the summary covers, the one before `upto`; empty without a
    /// summary.
    pub covers: String,
    pub upto: usize,
    /// The messages that the summary and the marker stand for, as half-open ranges of indexes.
    pub folded_messages: Vec<[usize; 2]>,
    pub dropped_messages: Vec<[usize; 2]>,
    /// The tokens of those messages.
    pub folded_tokens: u64,
    pub dropped_tokens: u64,
    /// Tokens of the summary, tokens of the masked observations as sent, and how much of that masking saves.
    pub summary_tokens: u64,
    pub masked_tokens: u64,
    pub saved_by_masking: u64,
    /// What was brought back of messages that have left the request.
    pub recalled: Vec<RecalledExcerpt>,
    /// How often the model called the recall tool before its answer or in it, and how often an original answered that.
    #[serde(skip_serializing_if = "is_zero")]
    pub recall_calls: u32,
    #[serde(skip_serializing_if = "is_zero")]
    pub recalls_found: u32,
    /// Tokens of the trimmed observations as sent, and how much of that trimming saves.
    pub trimmed_tokens: u64,
    pub saved_by_trimming: u64,
    /// Tokens of the pinned notes in the request.
    pub memory_tokens: u64,
    /// The sizes of its blocks, where they have limits.
    pub blocks: Option<BlockSizes>,
    /// The indexes of the masked messages.
    pub masked: Vec<usize>,
    /// The indexes of the trimmed messages, and the first message that the policy protects from trimming; zero where it does not trim.
    pub trimmed: Vec<usize>,
    pub trim_edge: usize,
    pub postponed: usize,
    /// How many of the first messages were not edited anew, because signed reasoning behind them is bound to them.
    pub bound: usize,
    /// Whether the conversation was left alone, because its provider had refused an edited request of it.
    pub left_alone: bool,
    /// The first message that the policy protects from masking.
    pub edge: usize,
    /// Whether the plan was only reported, and the client's own request forwarded.
    pub observed: bool,
    pub trigger: Option<String>,
    pub degraded: Option<String>,
    /// What the upstream reported.
    pub prompt_tokens: Option<u64>,
    pub completion_tokens: Option<u64>,
    pub cached_tokens: Option<u64>,
    /// The cost in USD, by what the upstream reported or else by our own count; absent if a price is unknown.
    pub cost_usd: Option<f64>,
    /// Whether the cost follows from our own count, because the upstream reported no usage.
    pub cost_estimated: bool,
    /// The estimated cost of the request as the client sent it.
    pub unedited_cost_usd: Option<f64>,
    /// The estimated cost of the request as planned, and whether it would have been refused, if the plan was only reported.
    pub planned_cost_usd: Option<f64>,
    pub would_refuse: bool,
    /// How many turns in a row brought nothing new, where that is worth a hint.
    pub stop_hint: Option<u32>,
    pub first_byte_ms: Option<u64>,
    /// The time between forwarding the request and the head of the upstream's answer.
    pub upstream_ms: Option<u64>,
    /// How many seconds the upstream asked the client to wait.
    pub retry_after_s: Option<u64>,
    pub duration_ms: u64,
    pub overhead_us: u64,
}

impl TurnRecord {
    /// The part of a record that follows from the turn itself. Time, route, model and answer are the caller's to fill in.
    #[must_use]
    pub fn new(outcome: &Outcome) -> TurnRecord {
        let plan = &outcome.assessment.decision.plan;
        let is_refused = outcome.ending == Ending::OverBudget;
        TurnRecord {
            // A refused request is not a part of the conversation.
            end: outcome.end().filter(|_| !is_refused).map(|end| end.to_string()).unwrap_or_default(),
            overflow_rejected: is_refused,
            recalled: outcome.assessment.excerpts.iter().map(RecalledExcerpt::of).collect(),
            ..TurnRecord::of_plan(&outcome.figures, plan)
        }
    }

    fn of_plan(figures: &Figures, plan: &Plan) -> TurnRecord {
        let folded = plan.folded.as_ref();
        TurnRecord {
            dialect: figures.dialect.name().to_owned(),
            native: figures.is_native,
            strategy: strategy_name(figures.strategy).to_owned(),
            messages: figures.messages,
            tokens_before: figures.before.0,
            tokens_after: figures.after.0,
            tokens_after_summary: figures.after_summary().0,
            tokens_after_prune: figures.after.0,
            summary_triggered: figures.made.is_some(),
            prune_triggered: figures.has_pruned(),
            budget: figures.budget.input.unwrap_or_default().0,
            window: figures.budget.window.tokens().unwrap_or_default().0,
            window_source: figures.budget.window.source().to_owned(),
            safe: figures.budget.safe.unwrap_or_default().0,
            refuse_above: figures.budget.refuse_above.unwrap_or_default().0,
            output: figures.budget.output.0,
            overhead: figures.budget.overhead.0,
            masked: plan.masked.clone(),
            folded: figures.folded,
            dropped: figures.dropped,
            covers: folded.map(|folded| folded.covers.to_string()).unwrap_or_default(),
            upto: folded.map_or(0, |folded| folded.upto),
            folded_messages: folded.map(|folded| ranges(&folded.removed)).unwrap_or_default(),
            dropped_messages: ranges(&plan.dropped),
            folded_tokens: figures.left_out.folded.0,
            dropped_tokens: figures.left_out.dropped.0,
            summary_tokens: figures.summary_tokens.0,
            masked_tokens: figures.left_out.masked.0,
            saved_by_masking: figures.left_out.by_masking.0,
            trimmed: plan.trimmed.clone(),
            trim_edge: plan.trim_edge,
            trimmed_tokens: figures.left_out.trimmed.0,
            saved_by_trimming: figures.left_out.by_trimming.0,
            memory_tokens: figures.notes_tokens.0,
            blocks: figures.blocks,
            postponed: figures.postponed,
            bound: figures.bound,
            left_alone: figures.is_left_alone,
            edge: plan.edge,
            observed: figures.observed,
            would_refuse: figures.would_refuse(),
            trigger: figures.trigger.map(|cause| cause.name().to_owned()),
            stop_hint: figures.stop_hint,
            ..TurnRecord::default()
        }
    }
}

/// Few turns have recalls, and every turn has a record.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for this")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Ordered indexes as half-open ranges: a conversation loses hundreds of consecutive messages.
fn ranges(indexes: &[usize]) -> Vec<[usize; 2]> {
    let runs = indexes.chunk_by(|one, next| one + 1 == *next);
    runs.filter_map(|run| Some([*run.first()?, run.last()? + 1])).collect()
}

/// Decodes all records of a conversation that can be read and puts them into order.
#[must_use]
pub fn decode_turns(records: &[Bytes]) -> Vec<TurnRecord> {
    let mut turns: Vec<TurnRecord> = records.iter().filter_map(|record| decode_turn(record)).collect();
    // Turns of the same millisecond are ordered by the length of the conversation.
    turns.sort_by(|a, b| (a.at, a.messages, &a.request_id).cmp(&(b.at, b.messages, &b.request_id)));
    turns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_indexes_are_one_range() {
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), [[0, 3], [5, 6], [7, 9]]);
        assert!(ranges(&[]).is_empty());
    }
}
