//! What would happen to a request: read, measured, decided. The proxy does it for every request and `tidegate explain` for
//! one, with the same code.

use crate::summary_message::{SummaryMessage, marker, message, tokens};
use bytes::Bytes;
use std::borrow::Cow;
use std::sync::Arc;
use tidegate_config::FoldRole;
use tidegate_config::{Context, Mask, ModelSettings};
use tidegate_engine::{
    Conversation, Decision, Economy, Fold, FoldPolicy, Memory, Message, Plan, Policy, Role, Strategy,
    Timestamp, Tokens, decide, truncate,
};
use tidegate_tokens::{Model, ModelOverride, ModelTable, count};
use tidegate_wire::{
    BadEdit, Chat, Edit, LookedUp, Meter, Outline, Piece, Placeholder, Reader, Reading, Unreadable, splice,
};

/// One request, and everything that its plan depends on.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    pub body: &'a [u8],
    pub outline: &'a Outline,
    pub context: &'a Context,
    /// The strategy in force: the context's, or what the client asked for where the route allows it.
    pub strategy: Strategy,
    pub model: &'a Arc<Model>,
    /// What this model's counts have been wrong by before.
    pub factor: f64,
    /// The summaries of the conversation.
    pub summaries: &'a [SummaryMessage],
}

/// What to do about a request that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Say what should be summarized.
    Decide,
    /// Summarizing has failed: drop what does not fit.
    Truncate,
}

/// What was found out and decided about a request.
#[derive(Debug)]
pub struct Assessment {
    pub chat: Chat,
    pub decision: Decision,
}

impl Question<'_> {
    /// Calls `use_it` with how the request is to be read. The rules borrow from the context, so they cannot be returned.
    fn with_reading<T>(&self, use_it: impl FnOnce(&Reading<'_>) -> T) -> T {
        let Mask { placeholder, exclude_tools, .. } = &self.context.mask;
        let pattern = self.context.observations.user_pattern.as_ref();
        let observes = |text: &str| pattern.is_some_and(|pattern| pattern.is_match(text));
        let excludes = |tool: &str| exclude_tools.iter().any(|glob| glob.matches(tool));
        let Model { encoding, images, .. } = **self.model;
        use_it(&Reading {
            meter: Meter { encoding, images },
            observes: pattern.map(|pattern| (pattern.as_str(), &observes as &dyn Fn(&str) -> bool)),
            excludes: (!exclude_tools.is_empty()).then_some(&excludes),
            placeholder: count(encoding, placeholder),
            factor: self.factor,
        })
    }

    /// What is known of its messages already, which decides whether it is done at once or out of the way.
    pub(crate) fn look_up(&self, reader: &Reader) -> LookedUp {
        self.with_reading(|reading| reader.look_up(self.outline, reading))
    }

    /// Reads the request and decides what to do with it.
    pub fn assess(&self, reader: &Reader, memory: &Memory, now: Timestamp) -> Result<Assessment, Unreadable> {
        self.assess_from(self.look_up(reader), reader, memory, Rule::Decide, now)
    }

    /// Decides as if summarizing had failed: what does not fit is dropped.
    pub fn truncate(
        &self,
        reader: &Reader,
        memory: &Memory,
        now: Timestamp,
    ) -> Result<Assessment, Unreadable> {
        self.assess_from(self.look_up(reader), reader, memory, Rule::Truncate, now)
    }

    pub(crate) fn assess_from(
        &self,
        looked_up: LookedUp,
        reader: &Reader,
        memory: &Memory,
        rule: Rule,
        now: Timestamp,
    ) -> Result<Assessment, Unreadable> {
        let chat = self.with_reading(|reading| reader.read(self.body, self.outline, reading, looked_up))?;
        let asked = self.outline.max_completion_tokens.or(self.outline.max_tokens);
        let conversation = Conversation {
            messages: &chat.messages,
            fixed: chat.fixed,
            budget: self.context.budget.budget(self.model.window, asked.map(Tokens)),
            economy: economy(self.model),
            marker: self.marker(),
        };
        let policy = Policy {
            strategy: self.strategy,
            mask: self.context.mask.policy,
            fold: fold_policy(self.context),
        };
        let decide = match rule {
            Rule::Decide => decide,
            Rule::Truncate => truncate,
        };
        let decision = if self.summaries.is_empty() {
            decide(&conversation, memory, &policy, now)
        } else {
            let mut memory = memory.clone();
            for SummaryMessage { fold, .. } in self.summaries {
                memory.add_fold(Fold { tokens: self.scaled(fold.tokens), ..*fold });
            }
            decide(&conversation, &memory, &policy, now)
        };
        Ok(Assessment { chat, decision })
    }

    /// What a marker costs at most. Only what folds can come to need one.
    fn marker(&self) -> Tokens {
        match self.strategy {
            Strategy::Summarization | Strategy::Hybrid => {
                self.scaled(tokens(&marker(LONGEST_MARKER), FoldRole::User, self.model.encoding))
            }
            Strategy::Passthrough | Strategy::Masking | Strategy::Window => Tokens::ZERO,
        }
    }

    fn scaled(&self, tokens: Tokens) -> Tokens {
        if self.factor == 1.0 { tokens } else { Tokens((tokens.0 as f64 * self.factor).ceil() as u64) }
    }
}

impl Assessment {
    /// The request as it is to be forwarded; nothing if that is what the client sent.
    pub fn pieces(&self, question: &Question<'_>) -> Result<Option<Vec<Piece>>, BadEdit> {
        let edits = self.edits(question);
        if edits.is_empty() {
            return Ok(None);
        }
        splice(question.body, question.outline, &self.chat.known, &edits).map(Some)
    }

    /// The plan in the words of `splice`, in the order of the messages.
    fn edits(&self, question: &Question<'_>) -> Vec<Edit> {
        let mut plan = Cow::Borrowed(&self.decision.plan);
        if question.context.observe {
            let Plan { masked, folded, dropped, .. } = plan.to_mut();
            masked.clear();
            dropped.clear();
            *folded = None;
        }
        let placeholder = Placeholder::new(&question.context.mask.placeholder);
        let mut insertions = self.insertions(&plan, question).into_iter().peekable();
        let mut edits = Vec::new();
        let mut masked = plan.masked.iter().peekable();
        let removed = plan.folded.as_ref().map_or(&[][..], |folded| &folded.removed);
        let (mut removed, mut dropped) = (removed.iter().peekable(), plan.dropped.iter().peekable());
        for (message, known) in self.chat.known.iter().enumerate() {
            while let Some((before, with)) = insertions.next_if(|(before, _)| *before == message) {
                edits.push(Edit::Insert { before, with });
            }
            if removed.next_if_eq(&&message).is_some() || dropped.next_if_eq(&&message).is_some() {
                match edits.last_mut() {
                    Some(Edit::Remove { messages }) if messages.end == message => messages.end += 1,
                    _ => edits.push(Edit::Remove { messages: message..message + 1 }),
                }
                continue;
            }
            // The tag is between the client and us; providers refuse members that they do not know.
            if known.facts.tag.is_some() {
                edits.push(Edit::Untag { message });
            }
            if masked.next_if_eq(&&message).is_some() {
                edits.push(Edit::Mask { message, placeholder: placeholder.clone() });
            }
        }
        edits
    }

    /// The messages of our own, each with the client's before which it stands.
    fn insertions(&self, plan: &Plan, question: &Question<'_>) -> Vec<(usize, Bytes)> {
        let messages = &self.chat.messages;
        let mut insertions = Vec::new();
        if let Some(folded) = &plan.folded {
            let summary = question.summaries.iter().find(|summary| summary.fold.covers == folded.covers);
            let behind_instructions = messages.iter().position(|message| !message.role.is_instruction());
            // The engine uses no summary that it was not given, and none that covers no message.
            insertions.extend(behind_instructions.zip(summary.map(|summary| summary.json.clone())));
        }
        if let Some(first) = plan.dropped.first() {
            let turns = plan.dropped.iter().filter(|&&index| begins_turn(&messages[index])).count();
            insertions.push((*first, message(FoldRole::User, &marker(turns.max(1)))));
        }
        insertions
    }
}

/// A marker never counts more turns than this many digits have room for.
const LONGEST_MARKER: usize = 99_999;

fn begins_turn(message: &Message) -> bool {
    message.role == Role::Assistant
}

fn fold_policy(context: &Context) -> FoldPolicy {
    FoldPolicy {
        when: context.fold.when,
        keep: context.fold.keep,
        prune_when: context.prune.when,
        prune_keep: context.prune.keep,
        pins_task: context.fold.pin_task,
    }
}

/// What the model's owner bills. Where nobody knows, a discount on repeated input is assumed: nearly all providers give
/// one, and to overlook it makes masking cost more than it saves, while to assume it only delays it.
fn economy(model: &Model) -> Economy {
    let cache_life = u64::try_from(model.caching.ttl.as_millis()).unwrap_or(u64::MAX);
    match model.prices {
        Some(prices) => Economy { write: prices.written(), cached: prices.cached(), cache_life },
        None => Economy { write: 1.0, cached: 0.1, cache_life },
    }
}

/// The built-in table with what the configuration says of models.
#[must_use]
pub fn model_table<'a>(models: impl IntoIterator<Item = (&'a String, &'a ModelSettings)>) -> ModelTable {
    ModelTable::builtin().with(models.into_iter().map(|(name, settings)| {
        let changed = ModelOverride {
            window: settings.window,
            max_output: settings.max_output,
            // The configuration accepts only names that parse.
            encoding: settings.encoding.as_deref().and_then(|name| name.parse().ok()),
            input: settings.input,
            cached_input: settings.cached_input,
            cache_write: settings.cache_write,
            output: settings.output,
            cache_ttl: settings.cache_ttl,
        };
        (name.clone(), changed)
    }))
}
