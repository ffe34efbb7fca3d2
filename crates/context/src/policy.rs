//! Translates the configuration into the engine's terms.

use crate::{ConversationState, TurnInput};
use tidegate_config::{Context, ModelSettings};
use tidegate_engine::{BlockPolicy, CachePricing, FoldPolicy, Policy, Tokens, WindowPolicy};
use tidegate_tokens::{Model, ModelOverride, ModelTable};

impl TurnInput {
    /// The model's window: what the route says, else what the model table knows.
    pub(crate) fn window(&self) -> Option<Tokens> {
        let configured = self.context.window_of(self.requested_model(), self.model.has_own_window);
        configured.or(self.model.window)
    }

    pub(crate) fn policy(&self, state: &ConversationState) -> Policy {
        let Context { mask, window, blocks, .. } = &*self.context;
        let count = |number: std::num::NonZeroU32| usize::try_from(number.get()).unwrap_or(usize::MAX);
        Policy {
            strategy: self.strategy,
            mask: mask.policy,
            fold: fold_policy(&self.context),
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

fn fold_policy(context: &Context) -> FoldPolicy {
    FoldPolicy {
        when: context.fold.when,
        keep: context.fold.keep,
        prune_when: context.prune.when,
        prune_keep: context.prune.keep,
        pin_task: context.fold.pin_task,
        pace: context.fold.pace,
        max_summary_tokens: context.fold.max_tokens,
    }
}

/// The prices that break-even weighs. For an unknown model a discount on cached input is assumed: nearly all providers give one,
/// and overlooking it makes masking cost more than it saves, while assuming it only delays masking.
pub(crate) fn economy(model: &Model) -> CachePricing {
    let cache_life = u64::try_from(model.caching.ttl.as_millis()).unwrap_or(u64::MAX);
    match model.prices {
        Some(prices) => CachePricing { write: prices.written(), cached: prices.cached(), cache_life },
        None => CachePricing { write: 1.0, cached: 0.1, cache_life },
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
            cache_ttl: settings.cache_ttl,
        };
        (name.clone(), changed)
    }))
}
