//! Reads a request, measures it and asks the engine what to do with it.

use crate::markers::{self, LONGEST_MARKER};
use crate::recall::{Unrecalled, is_gone};
use crate::{ConversationState, PinnedMessage, PlacedExcerpt, RecalledExcerpt, SummaryMessage, TurnInput};
use std::borrow::Cow;
use std::sync::Arc;
use tidegate_config::Native;
use tidegate_engine::{
    Cause, Conversation, Decision, Fold, Memory, Message, Plan, Policy, Strategy, Tokens, Verdict, decide,
    truncate,
};
use tidegate_tokens::chat::message_tokens;
use tidegate_wire::{CacheLookup, ParsedRequest, Reader, RecallOffer, Unreadable};

/// How to treat a request that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Ask for a summary.
    Decide,
    /// Summarizing has failed: drop what does not fit, behind a marker.
    Truncate,
}

/// A request that was read, with the engine's decision about it.
#[derive(Clone, Debug)]
pub struct Assessment {
    pub chat: Arc<ParsedRequest>,
    pub decision: Decision,
    /// Whether the messages are left to the provider, which was asked to manage them itself.
    pub is_native: bool,
    /// Whether the provider keeps the messages before these, so that there is nothing to edit and no total to judge.
    pub continues_upstream: bool,
    /// What was brought back of messages that have left the request, in the order of the messages that it stands in.
    pub excerpts: Vec<PlacedExcerpt>,
    /// Why nothing was brought back for this request, if it is known.
    pub unrecalled: Option<Unrecalled>,
    /// The summary and the notes as they were shortened to the total of the blocks; `None` if that left them whole.
    pub(crate) trimmed: Option<Trimmed>,
}

/// The messages of our own, shortened to fit the total of the blocks.
#[derive(Clone, Debug)]
pub(crate) struct Trimmed {
    pub(crate) summary: Option<SummaryMessage>,
    pub(crate) notes: Option<PinnedMessage>,
}

impl TurnInput {
    /// Reads the request and decides what to do with it.
    pub fn assess(
        &self,
        state: &ConversationState,
        reader: &Reader,
        rule: Rule,
    ) -> Result<Assessment, Unreadable> {
        self.assess_known(state, self.look_up(reader), reader, rule)
    }

    /// The same for a caller that has looked the messages up already.
    pub(crate) fn assess_known(
        &self,
        state: &ConversationState,
        lookup: CacheLookup,
        reader: &Reader,
        rule: Rule,
    ) -> Result<Assessment, Unreadable> {
        let mut chat =
            self.with_options(reader, |options| reader.read(&self.body, &self.outline, options, lookup))?;
        let is_native = self.is_native(&chat);
        let memory = self.memory(state);
        let is_left_alone = self.leaves_alone || memory.leaves_alone(&chat.messages, chat.cache);
        if !(is_native || is_left_alone) {
            let tool = self.recall_tool_tokens(reader);
            chat.fixed += tool;
            chat.rough += tool;
        }
        let conversation = Conversation {
            messages: &chat.messages,
            cache: chat.cache,
            fixed: chat.fixed,
            budget: self.budget(&chat),
            economy: self.economy(&chat),
            marker: self.marker(reader),
            pinned: self.scaled(state.notes_in(self).map_or(Tokens::ZERO, |notes| notes.tokens)),
        };
        let mut policy =
            Policy { bound: self.bound(&chat), leaves_alone: is_left_alone, ..self.policy(state) };
        let continues_upstream = self.outline.continues_upstream;
        if is_native || self.outline.is_elsewhere() {
            policy.strategy = Strategy::Passthrough;
        } else if chat.parsed.iter().any(|message| message.facts.is_native) {
            policy.strategy = around_compaction(policy.strategy);
        }
        let decide = match rule {
            Rule::Decide => decide,
            Rule::Truncate => truncate,
        };
        let recalls = self.recalls() && !is_native && !is_left_alone && !self.outline.is_elsewhere();
        let mut excerpts = if recalls { self.earlier_excerpts(&memory, &chat, reader) } else { Vec::new() };
        // A message costs what is put into it, too.
        let mut has_made_room = false;
        let mut decision = loop {
            let messages = with_excerpts(&chat.messages, &excerpts);
            let conversation = Conversation { messages: &messages, ..conversation };
            let mut decision = decide(&conversation, &memory, &policy, self.now);
            let added: Tokens = excerpts.iter().map(|excerpt| excerpt.tokens).sum();
            decision.plan.before = decision.plan.before.saturating_sub(added);
            let count = excerpts.len();
            // Summarizing makes room for them; where it cannot, they go first.
            let is_stuck = decision.wanted.is_none() || rule == Rule::Truncate;
            if decision.plan.verdict != Verdict::Fits && is_stuck && policy.bound == 0 {
                excerpts.clear();
                has_made_room |= count > 0;
            }
            excerpts.retain(|excerpt| excerpt.sources.iter().all(|source| is_gone(&decision.plan, *source)));
            if excerpts.len() == count {
                break decision;
            }
        };
        if has_made_room {
            decision.plan.cause.get_or_insert(Cause::Budget);
        }
        excerpts.retain(|excerpt| !is_gone(&decision.plan, excerpt.message));
        let mut unrecalled = (!recalls).then_some(Unrecalled::Off);
        if recalls {
            let plan = &decision.plan;
            let summary = plan.folded.as_ref().and_then(|folded| state.summary(folded.covers));
            let summary = summary.and_then(SummaryMessage::text);
            match self.new_excerpt(&memory, &chat, plan, &excerpts, summary.as_deref(), reader) {
                Ok(new) => {
                    decision.plan.after += new.tokens;
                    excerpts.push(new);
                }
                Err(reason) => unrecalled = Some(reason),
            }
            if let Some(waypoint) = &mut decision.waypoint {
                waypoint.excerpts = excerpts.iter().map(|placed| placed.excerpt.clone()).collect();
            }
        }
        let trimmed = self.trimmed(state, &decision.plan);
        let mut assessment = Assessment {
            chat: Arc::new(chat),
            decision,
            is_native,
            continues_upstream,
            excerpts,
            unrecalled,
            trimmed,
        };
        assessment.recount_trimmed(self, state);
        Ok(assessment)
    }

    /// The earlier decisions, with the summaries as they are rendered for this request.
    fn memory<'a>(&self, state: &'a ConversationState) -> Cow<'a, Memory> {
        let summaries = state.summaries();
        if summaries.is_empty() {
            return Cow::Borrowed(&state.memory);
        }
        let mut memory = state.memory.clone();
        for SummaryMessage { fold, .. } in summaries {
            memory.add_fold(Fold { tokens: self.scaled(fold.tokens), ..fold.clone() });
        }
        Cow::Owned(memory)
    }

    /// Whether the request, or an earlier one of its conversation, has asked the provider to manage the context, and that is respected.
    fn is_native(&self, chat: &ParsedRequest) -> bool {
        let asks = || self.outline.asks_native || chat.parsed.iter().any(|message| message.facts.is_native);
        self.context.native == Native::Defer && asks()
    }

    /// Shortens the summary and the notes where the total of the blocks demands it.
    fn trimmed(&self, state: &ConversationState, plan: &Plan) -> Option<Trimmed> {
        let blocks = plan.blocks?;
        if blocks.summary_max >= blocks.summary && blocks.memory_max >= blocks.memory {
            return None;
        }
        let renderer = state.renderer(self);
        let summary = plan.folded.as_ref().and_then(|used| state.summary(used.covers));
        let summary = summary.map(|summary| summary.within(blocks.summary_max, &renderer));
        let notes = state.notes_in(self).map(|notes| {
            if blocks.memory_max < blocks.memory {
                PinnedMessage::within(&notes.text, blocks.memory_max, &renderer)
            } else {
                notes.clone()
            }
        });
        Some(Trimmed { summary, notes })
    }

    /// The most that a marker can cost. Only strategies that fold or leave out a middle can need one.
    fn marker(&self, reader: &Reader) -> Tokens {
        let text = match self.strategy {
            Strategy::Summarization | Strategy::Hybrid => markers::missing_turns(LONGEST_MARKER),
            Strategy::Window => markers::left_out_middle(LONGEST_MARKER),
            Strategy::Passthrough | Strategy::Masking => return Tokens::ZERO,
        };
        let encoding = self.model.encoding;
        self.scaled(message_tokens(encoding, "user", None) + reader.count(encoding, &text))
    }
}

/// What may be done around what the provider has compacted, where that is not left to it. The provider reads nothing that stands before
/// it, so a summary or a marker would be lost there, and it must not go itself.
fn around_compaction(strategy: Strategy) -> Strategy {
    match strategy {
        Strategy::Masking | Strategy::Hybrid => Strategy::Masking,
        Strategy::Passthrough | Strategy::Summarization | Strategy::Window => Strategy::Passthrough,
    }
}

/// The messages as they cost with the excerpts in them.
fn with_excerpts<'a>(messages: &'a [Message], excerpts: &[PlacedExcerpt]) -> Cow<'a, [Message]> {
    let mut messages = Cow::Borrowed(messages);
    for PlacedExcerpt { message, tokens, size, .. } in excerpts {
        let message = &mut messages.to_mut()[*message];
        message.tokens += *tokens;
        message.size += *size;
        message.masked = message.masked.map(|masked| masked + *tokens);
    }
    messages
}

impl Assessment {
    /// Whether the request gets our tool.
    #[must_use]
    pub fn offers_recall(&self, input: &TurnInput) -> bool {
        !self.is_native
            && !self.decision.plan.is_left_alone
            && matches!(input.recall(), Some(RecallOffer::Tool { .. }))
    }

    /// The same request under a plan that was made for it before, with the excerpts that it had.
    #[must_use]
    pub fn as_recorded(
        mut self,
        plan: Plan,
        recalled: &[RecalledExcerpt],
        input: &TurnInput,
        reader: &Reader,
    ) -> Assessment {
        self.excerpts = input.recorded_excerpts(&self.chat, recalled, reader);
        self.decision.plan = plan;
        self.decision.wanted = None;
        self.unrecalled = None;
        self.trimmed = None;
        self
    }

    /// Corrects the plan's totals by what trimming has taken from the summary and the notes.
    fn recount_trimmed(&mut self, input: &TurnInput, state: &ConversationState) {
        let Some(Trimmed { summary, notes }) = &self.trimmed else { return };
        let plan = &mut self.decision.plan;
        let scaled = |tokens: Option<Tokens>| tokens.map_or(Tokens::ZERO, |tokens| input.scaled(tokens));
        let before = plan.folded.as_ref().map_or(Tokens::ZERO, |folded| folded.tokens)
            + scaled(state.notes_in(input).map(|notes| notes.tokens));
        let summary = summary.as_ref().map(|summary| summary.fold.tokens);
        let after = scaled(summary) + scaled(notes.as_ref().map(|notes| notes.tokens));
        plan.after = plan.after.saturating_sub(before) + after;
        if let (Some(folded), Some(tokens)) = (&mut plan.folded, summary) {
            folded.tokens = input.scaled(tokens);
        }
    }
}
