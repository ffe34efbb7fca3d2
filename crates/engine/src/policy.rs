use crate::{BlockPolicy, Tokens, WindowPolicy};
use std::num::NonZeroU32;

/// A route's context policy: which strategy to use, and the settings of each pass.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Policy {
    pub strategy: Strategy,
    pub mask: MaskPolicy,
    pub fold: FoldPolicy,
    pub window: WindowPolicy,
    pub blocks: BlockPolicy,
}

/// Which passes edit a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// None. The upstream rejects what does not fit.
    Passthrough,
    /// Replace the content of old observations with a placeholder.
    #[default]
    Masking,
    /// Fold old messages into a summary.
    Summarization,
    /// Mask first, and fold when the trigger fires.
    Hybrid,
    /// Keep a head and a tail, and drop the middle.
    Window,
}

/// How much of the end of a conversation a pass leaves alone. The unresolved tail stays in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    Turns(NonZeroU32),
    UserTurns(NonZeroU32),
    Messages(NonZeroU32),
    Tokens(Tokens),
}

/// A set of conditions. The trigger fires if any of them holds; one without conditions never fires.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Trigger {
    /// The request uses at least this share of the input budget.
    pub budget_ratio: Option<f64>,
    /// The request uses at least this many tokens.
    pub tokens: Option<Tokens>,
    /// At least this many messages are not covered by a summary.
    pub messages: Option<NonZeroU32>,
    /// At least this many turns have passed since the last summary was made.
    pub turns: Option<NonZeroU32>,
    /// At least this many user turns have passed since the last summary was made.
    pub user_turns: Option<NonZeroU32>,
}

/// Which observations to mask, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaskPolicy {
    /// Observations in this part of the conversation are not masked.
    pub keep: Keep,
    pub pace: Pace,
}

/// How often the mask frontier moves. Each move invalidates the provider's prompt cache from there on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Whenever an observation leaves the part that is kept.
    EveryTurn,
    /// When this many observations have left it.
    Batch(NonZeroU32),
    /// When sending them unmasked has cost as much as masking them would.
    BreakEven,
}

impl Default for MaskPolicy {
    fn default() -> MaskPolicy {
        let ten = NonZeroU32::new(10).unwrap_or(NonZeroU32::MIN);
        MaskPolicy { keep: Keep::Turns(ten), pace: Pace::BreakEven }
    }
}

/// When to fold, and which messages to leave alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FoldPolicy {
    /// When a summary is due.
    pub when: Trigger,
    /// The part of the conversation that is not folded.
    pub keep: Keep,
    pub pace: FoldPace,
    /// When a summary can no longer wait for the next request.
    pub prune_when: Trigger,
    /// The part of the conversation that is not folded even then.
    pub prune_keep: Keep,
    /// Whether the first user message is never folded.
    pub pin_task: bool,
    /// The maximum cost of a summary.
    pub max_summary_tokens: Tokens,
}

/// Whether a summary that is due waits until it pays off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoldPace {
    /// It does not wait.
    AtTrigger,
    /// It waits until not folding has cost as much as the cache misses that folding causes.
    BreakEven,
}

impl Default for FoldPolicy {
    fn default() -> FoldPolicy {
        let four = Keep::Turns(NonZeroU32::new(4).unwrap_or(NonZeroU32::MIN));
        FoldPolicy {
            when: Trigger { budget_ratio: Some(0.70), user_turns: NonZeroU32::new(8), ..Trigger::default() },
            keep: four,
            pace: FoldPace::AtTrigger,
            prune_when: Trigger { budget_ratio: Some(0.90), ..Trigger::default() },
            prune_keep: four,
            pin_task: false,
            max_summary_tokens: Tokens(1500),
        }
    }
}
