//! The error codes of refusals by policy, which a plan that is only observed names, too.

use tidegate_context::LimitReached;

pub(crate) const OVER_BUDGET: &str = "context_budget_exceeded";

pub(crate) fn of_limit(limit: &LimitReached) -> &'static str {
    match limit {
        LimitReached::Turns { .. } => "max_turns_exceeded",
        LimitReached::Cost { .. } => "max_cost_exceeded",
    }
}
