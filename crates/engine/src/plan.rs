use crate::{BlockFigures, Budget, Folded, Tokens, WindowFigures};

/// The edits of one request, with the arithmetic that led to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The indices of the messages whose content becomes a placeholder, in order.
    pub masked: Vec<usize>,
    /// The indices of the messages whose content becomes an excerpt, in order.
    pub trimmed: Vec<usize>,
    /// The first message that has just been trimmed for the sake of its cost; `None` if none was.
    pub newly_trimmed: Option<usize>,
    /// The summary in use, and the messages that it replaces.
    pub folded: Option<Folded>,
    /// The indices of the messages that are dropped without a summary, in order, because summarizing failed or the strategy is
    /// [`Window`](crate::Strategy::Window). A marker takes their place.
    pub dropped: Vec<usize>,
    /// The tokens of the request as the client sent it.
    pub before: Tokens,
    /// The tokens of the request as planned.
    pub after: Tokens,
    pub budget: Budget,
    pub verdict: Verdict,
    /// Why this request differs from the previous one plus new messages; `None` if it does not.
    pub cause: Option<Cause>,
    /// The number of observations that could be masked but are not yet, because it would not pay off.
    pub postponed: usize,
    /// The first message that `mask.keep` protects; 0 if the strategy does not mask.
    pub edge: usize,
    /// The first message that `trim.after` protects; 0 if the policy does not trim.
    pub trim_edge: usize,
    /// Nothing before this index was edited anew, because reasoning behind it is bound to what stands there; 0 if none is.
    pub bound: usize,
    /// Whether the conversation is left alone, because its provider has refused an edited request of it.
    pub is_left_alone: bool,
    /// The arithmetic of head and tail; only for the window strategy.
    pub window: Option<WindowFigures>,
    /// The sizes of the blocks; only if they have limits.
    pub blocks: Option<BlockFigures>,
}

/// Whether a request fits its budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It fits as planned.
    Fits,
    /// It does not fit even with every edit that the policy allows. It is forwarded as planned, and the upstream judges.
    OverBudget,
    /// It does not fit, and is not forwarded.
    Refused,
}

impl Verdict {
    /// Judges a request that uses `after` tokens with every edit that the policy allows.
    #[must_use]
    pub fn of(after: Tokens, budget: &Budget) -> Verdict {
        if budget.fits(after) {
            Verdict::Fits
        } else if budget.refuse_above.is_some_and(|limit| after > limit || limit == Tokens::ZERO) {
            Verdict::Refused
        } else {
            Verdict::OverBudget
        }
    }
}

/// Why a new decision was made: the mask or the trim frontier moved, a summary is due, or the window was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The request reached the token threshold, or would not have fitted.
    Budget,
    /// The provider's cache had expired or gives no discount, so masking or trimming cost nothing.
    Free,
    /// An observation left the part that is kept, and the pace is `every_turn`.
    EveryTurn,
    /// A full batch of observations had left it.
    Batch,
    /// Sending the observations unmasked had cost as much as masking them, or excerpts will soon have saved what they cost.
    BreakEven,
    /// The number of messages that no summary covers reached its limit.
    Messages,
    /// The number of turns since the last summary reached its limit.
    Turns,
    /// The request reached the prune threshold.
    Prune,
    /// The history exceeded its block limit.
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

    /// Parses a name; the inverse of [`name`](Cause::name).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Cause> {
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
