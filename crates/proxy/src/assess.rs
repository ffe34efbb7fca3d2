//! What would happen to a request: read, measured, decided. The proxy does it for every request and `tidegate explain` for
//! one, with the same code.

use crate::look::{Look, unit};
use crate::pinned_message::PinnedMessage;
use crate::summary_message::{SummaryMessage, gap_marker, marker};
use std::sync::Arc;
use tidegate_config::{Context, Mask, ModelSettings};
use tidegate_engine::{
    BlockPolicy, Conversation, Decision, Economy, Fold, FoldPolicy, Memory, Policy, Strategy, Timestamp,
    Tokens, WindowPolicy, decide, truncate,
};
use tidegate_tokens::chat::message_tokens;
use tidegate_tokens::{Model, ModelOverride, ModelTable};
use tidegate_wire::{CacheLookup, Meter, Outline, ParsedRequest, ReadOptions, Reader, Unreadable};

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
    /// What is pinned to it.
    pub pinned: Option<&'a PinnedMessage>,
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
    pub chat: ParsedRequest,
    pub decision: Decision,
    /// The summary and the notes where the total of the blocks leaves less of them.
    pub(crate) trimmed: Option<(Option<SummaryMessage>, Option<PinnedMessage>)>,
}

impl Question<'_> {
    /// Calls `use_it` with how the request is to be read. The rules borrow from the context, so they cannot be returned.
    fn with_options<T>(&self, reader: &Reader, use_it: impl FnOnce(&ReadOptions<'_>) -> T) -> T {
        let Mask { placeholder, exclude_tools, .. } = &self.context.mask;
        let pattern = self.context.observations.user_pattern.as_ref();
        let observes = |text: &str| pattern.is_some_and(|pattern| pattern.is_match(text));
        let excludes = |tool: &str| exclude_tools.iter().any(|glob| glob.matches(tool));
        let Model { encoding, images, .. } = **self.model;
        use_it(&ReadOptions {
            meter: Meter { encoding, images, unit: unit(self.context, self.model) },
            user_observations: pattern.map(|pattern| (pattern.as_str(), &observes as &dyn Fn(&str) -> bool)),
            excluded_tools: (!exclude_tools.is_empty()).then_some(&excludes),
            placeholder: reader.count(encoding, placeholder),
            factor: self.factor,
            finds_cuts: match self.strategy {
                Strategy::Summarization | Strategy::Hybrid | Strategy::Window => true,
                Strategy::Passthrough | Strategy::Masking => false,
            },
        })
    }

    /// What is known of its messages already, which decides whether it is done at once or out of the way.
    pub(crate) fn look_up(&self, reader: &Reader) -> CacheLookup {
        self.with_options(reader, |options| reader.look_up(self.outline, options))
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
        lookup: CacheLookup,
        reader: &Reader,
        memory: &Memory,
        rule: Rule,
        now: Timestamp,
    ) -> Result<Assessment, Unreadable> {
        let chat =
            self.with_options(reader, |options| reader.read(self.body, self.outline, options, lookup))?;
        let asked = self.outline.output_limit.map(|limit| limit.tokens);
        let conversation = Conversation {
            messages: &chat.messages,
            fixed: chat.fixed,
            budget: self.context.budget.budget(self.window(), asked.map(Tokens)),
            economy: economy(self.model),
            marker: self.marker(reader),
            pinned: self.scaled(self.pinned().map_or(Tokens::ZERO, |pinned| pinned.tokens)),
        };
        let policy = self.policy();
        let decide = match rule {
            Rule::Decide => decide,
            Rule::Truncate => truncate,
        };
        let decision = if self.summaries.is_empty() {
            decide(&conversation, memory, &policy, now)
        } else {
            let mut memory = memory.clone();
            for SummaryMessage { fold, .. } in self.summaries {
                memory.add_fold(Fold { tokens: self.scaled(fold.tokens), ..fold.clone() });
            }
            decide(&conversation, &memory, &policy, now)
        };
        let trimmed = self.trimmed(&decision);
        Ok(Assessment { chat, decision, trimmed }.without_what_is_trimmed(self))
    }

    /// The window of the model: what the route says of it, else what is known of it.
    fn window(&self) -> Option<Tokens> {
        let asked = self.outline.model.as_deref().unwrap_or_default();
        self.context.window_of(asked, self.model.has_own_window).or(self.model.window)
    }

    /// What is pinned, where the request is edited at all.
    pub(crate) fn pinned(&self) -> Option<&PinnedMessage> {
        let edits = self.strategy != Strategy::Passthrough && !self.context.observe;
        self.pinned.filter(|pinned| edits && !pinned.json.is_empty())
    }

    pub(crate) fn look(&self) -> Look<'_> {
        Look::of(self.context, self.model, self.pinned.map(|pinned| pinned.text.as_str()))
    }

    fn policy(&self) -> Policy {
        let Context { mask, window, blocks, .. } = self.context;
        let count = |number: std::num::NonZeroU32| usize::try_from(number.get()).unwrap_or(usize::MAX);
        Policy {
            strategy: self.strategy,
            mask: mask.policy,
            fold: fold_policy(self.context),
            window: WindowPolicy {
                head_ratio: window.head_ratio,
                tail_ratio: window.tail_ratio,
                head_max: count(window.head_max),
                tail_max: count(window.tail_max),
                head_min: count(window.head_min),
                tail_min: count(window.tail_min),
            },
            blocks: BlockPolicy {
                history_max: blocks.history_max,
                total_max: blocks.total_max,
                min_recent: count(blocks.min_recent_messages),
                memory: self.pinned().map_or(Tokens::ZERO, |pinned| pinned.size),
            },
        }
    }

    /// The summary and the notes as short as the total of the blocks makes them; none where it leaves them whole.
    fn trimmed(&self, decision: &Decision) -> Option<(Option<SummaryMessage>, Option<PinnedMessage>)> {
        let blocks = decision.plan.blocks?;
        if blocks.summary_max >= blocks.summary && blocks.memory_max >= blocks.memory {
            return None;
        }
        let look = self.look();
        let used = decision.plan.folded.as_ref();
        let summary = used.and_then(|used| self.summaries.iter().find(|one| one.fold.covers == used.covers));
        let summary = summary.map(|summary| summary.within(blocks.summary_max, &look));
        let pinned = self.pinned().map(|pinned| {
            if blocks.memory_max < blocks.memory {
                PinnedMessage::within(&pinned.text, blocks.memory_max, &look)
            } else {
                pinned.clone()
            }
        });
        Some((summary, pinned))
    }

    /// What a marker costs at most. Only what folds or leaves out a middle can come to need one.
    fn marker(&self, reader: &Reader) -> Tokens {
        let text = match self.strategy {
            Strategy::Summarization | Strategy::Hybrid => marker(LONGEST_MARKER),
            Strategy::Window => gap_marker(LONGEST_MARKER),
            Strategy::Passthrough | Strategy::Masking => return Tokens::ZERO,
        };
        let encoding = self.model.encoding;
        self.scaled(message_tokens(encoding, "user", None) + reader.count(encoding, &text))
    }

    pub(crate) fn scaled(&self, tokens: Tokens) -> Tokens {
        if self.factor == 1.0 { tokens } else { Tokens((tokens.0 as f64 * self.factor).ceil() as u64) }
    }
}

/// A marker never counts more than this many digits have room for.
const LONGEST_MARKER: usize = 99_999;

fn fold_policy(context: &Context) -> FoldPolicy {
    FoldPolicy {
        when: context.fold.when,
        keep: context.fold.keep,
        prune_when: context.prune.when,
        prune_keep: context.prune.keep,
        pins_task: context.fold.pin_task,
        pace: context.fold.pace,
        longest_summary: context.fold.max_tokens,
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
