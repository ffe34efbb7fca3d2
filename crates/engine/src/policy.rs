use crate::{BlockPolicy, Budget, Conversation, RoleOrder, Tokens, WindowPolicy};
use std::num::NonZeroU32;

/// A route's context policy: which strategy to use, and the settings of each pass.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Policy {
    pub strategy: Strategy,
    pub mask: MaskPolicy,
    /// `None` if long observations stay whole until they are masked.
    pub trim: Option<TrimPolicy>,
    pub fold: FoldPolicy,
    pub window: WindowPolicy,
    pub blocks: BlockPolicy,
    pub order: RoleOrder,
    /// Nothing before this index is edited anew, because reasoning behind it is bound to what stands there; 0 if none is.
    pub bound: usize,
    /// Whether the request is left as it is, and with it all that follow it in its conversation.
    pub leaves_alone: bool,
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

impl Strategy {
    /// Whether it masks and trims old observations.
    #[must_use]
    pub fn masks(self) -> bool {
        match self {
            Strategy::Masking | Strategy::Hybrid => true,
            Strategy::Passthrough | Strategy::Summarization | Strategy::Window => false,
        }
    }

    /// Whether it makes summaries.
    #[must_use]
    pub fn folds(self) -> bool {
        match self {
            Strategy::Summarization | Strategy::Hybrid => true,
            Strategy::Passthrough | Strategy::Masking | Strategy::Window => false,
        }
    }
}

/// How much of the end of a conversation a pass leaves alone. The unresolved tail stays in any case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Keep {
    Turns(NonZeroU32),
    UserTurns(NonZeroU32),
    Messages(NonZeroU32),
    Tokens(Tokens),
    /// This share of what the budget leaves for the dialogue, after instructions and tools.
    Ratio(f64),
}

/// The maximum cost of a summary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SummaryLimit {
    Tokens(Tokens),
    /// A share of the input budget, but not less than `min`.
    Share {
        ratio: f64,
        min: Tokens,
    },
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
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MaskPolicy {
    /// Observations in this part of the conversation are not masked.
    pub keep: Keep,
    pub pace: Pace,
}

/// Which long observations to trim, and how often.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrimPolicy {
    /// Observations in this part of the conversation are not trimmed.
    pub after: Keep,
    pub pace: Pace,
}

impl Default for TrimPolicy {
    fn default() -> TrimPolicy {
        TrimPolicy { after: Keep::Turns(NonZeroU32::MIN), pace: Pace::BreakEven }
    }
}

/// How often the mask frontier or the trim frontier moves. Each move invalidates the provider's prompt cache from there on.
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
    pub max_summary: SummaryLimit,
    /// Whether room is left beside a summary for what is brought back and for the next turns.
    pub leaves_room: bool,
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
            max_summary: SummaryLimit::Tokens(Tokens(1500)),
            leaves_room: false,
        }
    }
}

impl SummaryLimit {
    /// The limit under this budget. Where the budget is unknown, a share is its minimum.
    #[must_use]
    pub fn of(self, budget: &Budget) -> Tokens {
        match self {
            SummaryLimit::Tokens(tokens) => tokens,
            SummaryLimit::Share { ratio, min } => {
                budget.input.map_or(min, |input| share(ratio, input).max(min))
            }
        }
    }
}

impl Policy {
    /// This policy with every share of the budget as a number of tokens, so that the passes need not know the budget.
    pub(crate) fn within(&self, conversation: &Conversation<'_>) -> Policy {
        let Policy { mut mask, mut trim, mut fold, .. } = *self;
        let after = trim.as_mut().map(|trim| &mut trim.after);
        for keep in [&mut mask.keep, &mut fold.keep, &mut fold.prune_keep].into_iter().chain(after) {
            if let Keep::Ratio(ratio) = *keep {
                *keep = dialogue_share(conversation, ratio, fold.when.tokens);
            }
        }
        fold.max_summary = SummaryLimit::Tokens(fold.max_summary.of(&conversation.budget));
        Policy { mask, trim, fold, ..*self }
    }

    /// Whether the history has a limit of its own, to which it is cut even if that saves nothing.
    pub(crate) fn limits_history(&self) -> bool {
        self.blocks.is_bounded() || self.fold.when.messages.is_some()
    }
}

/// Returns a share of what the budget leaves for the dialogue, or of the trigger's number of tokens if that is less. Where there is
/// nothing to take a share of, the last turns are kept.
fn dialogue_share(conversation: &Conversation<'_>, ratio: f64, trigger: Option<Tokens>) -> Keep {
    let Some(room) = conversation.budget.input.into_iter().chain(trigger).min() else {
        return Keep::Turns(TURNS_WITHOUT_BUDGET);
    };
    let instructions = conversation.messages.iter().filter(|message| message.role.is_instruction());
    let instructions: Tokens = instructions.map(|message| message.tokens).sum();
    let taken = instructions + conversation.fixed + conversation.pinned;
    Keep::Tokens(share(ratio, room.saturating_sub(taken)))
}

const TURNS_WITHOUT_BUDGET: NonZeroU32 = NonZeroU32::new(4).unwrap();

fn share(ratio: f64, of: Tokens) -> Tokens {
    Tokens((ratio * of.0 as f64) as u64)
}
