//! Where a conversation stops: after so many turns, or when it has cost so much.

use crate::reply::Refusal;
use crate::summary_message::State;
use tidegate_config::Limits;
use tidegate_engine::{Message, Tokens, turns_in};
use tidegate_store::{Head, StoredFold};
use tidegate_tokens::ModelTable;

/// What has been spent on conversations is counted in billionths of a dollar, so that counters stay whole numbers.
pub(crate) const COST: &str = "cost_nanousd";
/// The same for what would have been spent if nothing had been edited.
pub(crate) const UNEDITED_COST: &str = "unedited_cost_nanousd";
const NANO: f64 = 1e9;

/// An amount as a counter takes it.
pub(crate) fn nanousd(usd: f64) -> u64 {
    // A negative or absurd amount is nobody's bill.
    (usd * NANO).round().clamp(0.0, 1e18) as u64
}

/// What a conversation has cost so far, in USD.
pub(crate) fn spent(head: &Head) -> f64 {
    head.counts.get(COST).copied().unwrap_or(0) as f64 / NANO
}

/// What the summaries of a conversation have cost, in USD, as far as prices are known. Who pays for one pays for the conversation.
pub(crate) fn summarized(folds: &[StoredFold], models: &ModelTable) -> f64 {
    let cost = |state: State| {
        let prices = models.lookup(&state.author).prices?;
        prices.cost(Tokens(state.prompt_tokens), Tokens::ZERO, Tokens(state.completion_tokens))
    };
    folds.iter().filter_map(State::of).filter(|state| state.calls > 0).filter_map(cost).sum()
}

/// Refuses the turn that would be one too many, or one too expensive.
pub(crate) fn check(limits: &Limits, messages: &[Message], spent: Option<f64>) -> Result<(), Refusal> {
    let turns = turns_in(messages);
    if let Some(most) = limits.max_turns
        && u64::try_from(turns).is_ok_and(|turns| turns >= u64::from(most.get()))
    {
        return Err(Refusal::MaxTurns { turns, most: most.get() });
    }
    if let (Some(most), Some(spent)) = (limits.max_cost_usd, spent)
        && spent >= most
    {
        return Err(Refusal::MaxCost { spent: nanousd(spent), most: nanousd(most) });
    }
    Ok(())
}
