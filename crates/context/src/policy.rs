//! Translates the configuration into the engine's terms.

use crate::{ConversationState, TurnInput};
use tidegate_config::{Context, FoldPlacement, ModelSettings};
use tidegate_engine::{
    AnswerRoom, BlockPolicy, Budget, CacheKind, Capacity, ContextWindow, FoldPolicy, Policy, RoleOrder,
    Tokens, WindowPolicy,
};
use tidegate_tokens::{ModelOverride, ModelTable};
use tidegate_wire::ParsedRequest;

impl TurnInput {
    /// The model's window: what the route or `[models]` says, else what the upstream has named, else what its provider has published,
    /// which is certain on the provider's own host alone. An upstream that names another window may serve anything under that name.
    #[must_use]
    pub fn window(&self) -> ContextWindow {
        let is_in_models = matches!(self.model.window, ContextWindow::Configured(_));
        if let Some(window) = self.context.window_of(self.requested_model(), is_in_models) {
            return ContextWindow::Configured(window);
        }
        let window = match self.model.window {
            ContextWindow::Known(window) if !self.at_provider => ContextWindow::Typical(window),
            window => window,
        };
        match (window, self.learnt_window) {
            (ContextWindow::Configured(_), _) | (_, None) => window,
            (ContextWindow::Known(known), Some(learnt)) if learnt == known => window,
            (_, Some(learnt)) => ContextWindow::Learnt(learnt),
        }
    }

    /// The budget of this request.
    pub(crate) fn budget(&self, chat: &ParsedRequest) -> Budget {
        let budget = self.context.budget.budget(&self.capacity(chat));
        match self.ceiling {
            Some(ceiling) => budget.at_most(ceiling),
            None => budget,
        }
    }

    /// The budget of this request if its model's window were `window`.
    #[must_use]
    pub fn budget_within(&self, window: Tokens) -> Budget {
        let requested_output = self.outline.output_limit.map(|limit| Tokens(limit.tokens));
        let capacity = Capacity { requested_output, ..Capacity::of(ContextWindow::Learnt(window)) };
        self.context.budget.budget(&capacity)
    }

    /// The tokens of parts that are counted by a rule of thumb: providers do not say how they show tools to their models.
    #[must_use]
    pub fn estimated(&self, chat: &ParsedRequest) -> Tokens {
        self.scaled(chat.estimated())
    }

    /// Whether the model may find more tokens than `window` in this request and the answer that it asks for, where we have counted
    /// `counted` in the request. `estimated` of them are a rule of thumb.
    #[must_use]
    pub fn can_exceed(&self, counted: Tokens, estimated: Tokens, window: Tokens) -> bool {
        let asked = self.outline.output_limit.map_or(Tokens::ZERO, |limit| Tokens(limit.tokens));
        let unsure = Tokens(estimated.0.saturating_mul(3));
        self.model.most(counted) + unsure + asked > window
    }

    /// The room that a request has.
    fn capacity(&self, chat: &ParsedRequest) -> Capacity {
        let window = self.window();
        Capacity {
            window,
            answer: match window {
                ContextWindow::Known(_) | ContextWindow::Typical(_) => self.model.answer,
                ContextWindow::Configured(_)
                | ContextWindow::Learnt(_)
                | ContextWindow::Fallback(_)
                | ContextWindow::Unknown => AnswerRoom::Shared,
            },
            requested_output: self.outline.output_limit.map(|limit| Tokens(limit.tokens)),
            accuracy: self.model.accuracy(self.factor),
            estimated: self.estimated(chat),
        }
    }

    pub(crate) fn policy(&self, state: &ConversationState) -> Policy {
        let Context { mask, window, blocks, .. } = &*self.context;
        let count = |number: std::num::NonZeroU32| usize::try_from(number.get()).unwrap_or(usize::MAX);
        Policy {
            strategy: self.strategy,
            bound: 0,
            leaves_alone: false,
            mask: mask.policy,
            trim: self.context.trim.as_ref().map(|trim| trim.policy),
            fold: fold_policy(&self.context),
            order: self.role_order(),
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
                memory: state.notes_in(self).map_or(Tokens::ZERO, |notes| notes.size),
            },
        }
    }
}

impl TurnInput {
    /// Whether the provider caches messages of this request. A breakpoint in a tool, or in instructions before all messages, caches none
    /// of them.
    pub(crate) fn is_cached(&self, chat: &ParsedRequest) -> bool {
        match self.model.caching.kind {
            CacheKind::Automatic => true,
            CacheKind::Explicit => {
                self.outline.sets_breakpoints
                    || chat.breakpoints().any(|index| is_behind_a_message(chat, index))
            }
            CacheKind::None => false,
        }
    }
}

/// Whether a message is part of the dialogue, or instructions that stand behind a part of it.
pub(crate) fn is_behind_a_message(chat: &ParsedRequest, index: usize) -> bool {
    chat.messages[..=index].iter().any(|message| !message.role.is_instruction())
}

impl TurnInput {
    /// Whether texts of our own go into messages of the client's where the roles want that.
    pub(crate) fn role_order(&self) -> RoleOrder {
        if self.outline.dialect.alternates() {
            return RoleOrder::StrictWithInstructions;
        }
        match self.context.fold.placement {
            FoldPlacement::Merge => RoleOrder::Strict,
            FoldPlacement::Message => RoleOrder::Any,
        }
    }
}

fn fold_policy(context: &Context) -> FoldPolicy {
    FoldPolicy {
        when: context.fold.when,
        keep: context.fold.keep,
        prune_when: context.prune.when,
        prune_keep: context.prune.keep,
        pin_task: context.fold.pin_task,
        pace: context.fold.pace,
        max_summary: context.fold.max_tokens,
        leaves_room: context.recall.auto,
    }
}

/// The built-in model table with the configuration's `[models]` on top.
#[must_use]
pub fn model_table<'a>(models: impl IntoIterator<Item = (&'a String, &'a ModelSettings)>) -> ModelTable {
    ModelTable::builtin().with(models.into_iter().map(|(name, settings)| {
        let changed = ModelOverride {
            window: settings.window,
            max_output: settings.max_output,
            // The configuration accepts only encoding names that parse.
            encoding: settings.encoding.as_deref().and_then(|name| name.parse().ok()),
            input: settings.input,
            cached_input: settings.cached_input,
            cache_write: settings.cache_write,
            output: settings.output,
            cache: settings.cache,
            cache_ttl: settings.cache_ttl,
        };
        (name.clone(), changed)
    }))
}
