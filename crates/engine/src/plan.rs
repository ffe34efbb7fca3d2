use crate::{BlockFigures, Budget, Folded, Tokens, WindowFigures};

/// What to do with one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The messages whose content becomes a placeholder, by index, in order.
    pub masked: Vec<usize>,
    /// The summary that stands for the beginning, and the messages that go for it.
    pub folded: Option<Folded>,
    /// The messages that go although no summary covers them, because summarizing failed or the strategy is to keep a head
    /// and a tail. A marker stands for them.
    pub dropped: Vec<usize>,
    /// What the request uses as the client sent it, and as it would be forwarded.
    pub before: Tokens,
    pub after: Tokens,
    pub budget: Budget,
    pub verdict: Verdict,
    /// Why something new was decided, if it was: the mask frontier moved, or a summary is due.
    pub cause: Option<Cause>,
    /// How many observations are outside the window and not masked yet, because that would not pay.
    pub postponed: usize,
    /// The first message that the policy protects: masks never reach further. Zero where nothing may be masked.
    pub edge: usize,
    /// The arithmetic of head and tail, where that is the strategy.
    pub window: Option<WindowFigures>,
    /// How large the blocks are, where they have limits.
    pub blocks: Option<BlockFigures>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It fits as planned.
    Fits,
    /// It does not fit even with every edit that the policy allows.
    OverBudget,
}

/// Why something new was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The request would not have fitted otherwise.
    Budget,
    /// The provider had forgotten the prefix, or bills it like the rest, so that moving cost nothing.
    Free,
    /// A message left the window, and the policy is to follow at once.
    EveryTurn,
    /// Enough of them had left.
    Batch,
    /// Keeping them had cost as much as masking them.
    BreakEven,
    /// So many messages have come since the last summary.
    Messages,
    /// So many turns have come since the last summary.
    Turns,
    /// The request hardly fitted with the summary that there was.
    Prune,
    /// The history was longer than its block may be.
    Blocks,
}

impl Cause {
    const ALL: [Cause; 9] = [
        Cause::Budget,
        Cause::Free,
        Cause::EveryTurn,
        Cause::Batch,
        Cause::BreakEven,
        Cause::Messages,
        Cause::Turns,
        Cause::Prune,
        Cause::Blocks,
    ];

    /// The one that bears this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Cause> {
        Cause::ALL.into_iter().find(|cause| cause.name() == name)
    }

    /// The name in headers, logs and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Cause::Budget => "budget",
            Cause::Free => "free",
            Cause::EveryTurn => "every_turn",
            Cause::Batch => "batch",
            Cause::BreakEven => "break_even",
            Cause::Messages => "messages",
            Cause::Turns => "turns",
            Cause::Prune => "prune",
            Cause::Blocks => "blocks",
        }
    }
}
