use crate::{BlockPolicy, Tokens, WindowPolicy};
use std::num::NonZeroU32;

/// What a route does with the messages of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// Do nothing: the upstream says itself what does not fit.
    Passthrough,
    /// Replace the content of old observations by a placeholder.
    #[default]
    Masking,
    /// Fold old messages into a summary.
    Summarization,
    /// Mask first, fold at the trigger.
    Hybrid,
    /// Keep a head and a tail, drop the middle.
    Window,
}

/// How much of the end of a conversation an edit leaves alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    Turns(NonZeroU32),
    UserTurns(NonZeroU32),
    Messages(NonZeroU32),
    Tokens(Tokens),
}

/// When something happens: as soon as any of the conditions that are set holds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Trigger {
    /// Used tokens reach this share of the input budget.
    pub budget_ratio: Option<f64>,
    /// Used tokens reach this count.
    pub tokens: Option<Tokens>,
    /// This many messages that no summary covers.
    pub messages: Option<NonZeroU32>,
    /// This many turns since the last time.
    pub turns: Option<NonZeroU32>,
    /// This many user turns since the last time.
    pub user_turns: Option<NonZeroU32>,
}

/// How often the mask frontier moves. Each move makes everything behind it a miss in the provider's prompt cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Whenever an observation leaves the window.
    EveryTurn,
    /// When this many observations have left it.
    Batch(NonZeroU32),
    /// When keeping them has cost as much as masking them would.
    BreakEven,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaskPolicy {
    pub keep: Keep,
    pub pace: Pace,
}

/// When to fold, and what to leave alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FoldPolicy {
    pub when: Trigger,
    pub keep: Keep,
    pub pace: FoldPace,
    /// When folding can no longer wait for the next request, and what is left alone then.
    pub prune_when: Trigger,
    pub prune_keep: Keep,
    /// Whether the first thing the user said stays verbatim for ever.
    pub pins_task: bool,
    /// What a summary may cost.
    pub longest_summary: Tokens,
}

impl Default for MaskPolicy {
    fn default() -> MaskPolicy {
        let ten = NonZeroU32::new(10).unwrap_or(NonZeroU32::MIN);
        MaskPolicy { keep: Keep::Turns(ten), pace: Pace::BreakEven }
    }
}

/// Whether a summary that is due waits until it pays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoldPace {
    /// No: the trigger alone says when.
    AtTrigger,
    /// Until not folding has cost as much as the cache misses that it brings.
    BreakEven,
}

impl Default for FoldPolicy {
    fn default() -> FoldPolicy {
        let some = |count| NonZeroU32::new(count);
        let four = Keep::Turns(some(4).unwrap_or(NonZeroU32::MIN));
        FoldPolicy {
            when: Trigger { budget_ratio: Some(0.70), user_turns: some(8), ..Trigger::default() },
            keep: four,
            pace: FoldPace::AtTrigger,
            prune_when: Trigger { budget_ratio: Some(0.90), ..Trigger::default() },
            prune_keep: four,
            pins_task: false,
            longest_summary: Tokens(1500),
        }
    }
}

/// What a route asks of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Policy {
    pub strategy: Strategy,
    pub mask: MaskPolicy,
    pub fold: FoldPolicy,
    pub window: WindowPolicy,
    pub blocks: BlockPolicy,
}
