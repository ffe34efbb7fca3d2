//! Reads a request, measures it and asks the engine what to do with it.

use crate::markers::{self, LONGEST_MARKER};
use crate::policy::economy;
use crate::{ConversationState, PinnedMessage, SummaryMessage, TurnInput};
use std::sync::Arc;
use tidegate_engine::{Conversation, Decision, Fold, Plan, Strategy, Tokens, decide, truncate};
use tidegate_tokens::chat::message_tokens;
use tidegate_wire::{CacheLookup, ParsedRequest, Reader, Unreadable};

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
        let chat =
            self.with_options(reader, |options| reader.read(&self.body, &self.outline, options, lookup))?;
        let conversation = Conversation {
            messages: &chat.messages,
            head: chat.head,
            fixed: chat.fixed,
            budget: self.budget(&chat),
            economy: economy(&self.model),
            marker: self.marker(reader),
            pinned: self.scaled(state.notes_in(self).map_or(Tokens::ZERO, |notes| notes.tokens)),
        };
        let policy = self.policy(state);
        let decide = match rule {
            Rule::Decide => decide,
            Rule::Truncate => truncate,
        };
        let summaries = state.summaries();
        let decision = if summaries.is_empty() {
            decide(&conversation, &state.memory, &policy, self.now)
        } else {
            let mut memory = state.memory.clone();
            for SummaryMessage { fold, .. } in summaries {
                memory.add_fold(Fold { tokens: self.scaled(fold.tokens), ..fold.clone() });
            }
            decide(&conversation, &memory, &policy, self.now)
        };
        let trimmed = self.trimmed(state, &decision.plan);
        let mut assessment = Assessment { chat: Arc::new(chat), decision, trimmed };
        assessment.recount_trimmed(self, state);
        Ok(assessment)
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

impl Assessment {
    /// The same request under a plan that was made for it before.
    #[must_use]
    pub fn with_plan(mut self, plan: Plan) -> Assessment {
        self.decision.plan = plan;
        self.decision.wanted = None;
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
