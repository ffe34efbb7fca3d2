use crate::{Budget, Tokens};

/// What to do with one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The messages whose content becomes a placeholder, by index, in order.
    pub masked: Vec<usize>,
    /// What the request uses as the client sent it, and as it would be forwarded.
    pub before: Tokens,
    pub after: Tokens,
    pub budget: Budget,
    pub verdict: Verdict,
    /// Why the mask frontier moved, if it did.
    pub cause: Option<Cause>,
    /// How many observations are outside the window and not masked yet, because that would not pay.
    pub postponed: usize,
    /// The first message that the policy protects: masks never reach further. Zero where nothing may be masked.
    pub edge: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It fits as planned.
    Fits,
    /// It does not fit even with every edit that the policy allows.
    OverBudget,
}

/// Why the mask frontier moved.
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
}

impl Cause {
    /// The name in headers, logs and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Cause::Budget => "budget",
            Cause::Free => "free",
            Cause::EveryTurn => "every_turn",
            Cause::Batch => "batch",
            Cause::BreakEven => "break_even",
        }
    }
}
