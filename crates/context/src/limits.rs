//! Limits of a conversation: its number of turns and its cost.

use crate::SavedFold;
use tidegate_config::Limits;
use tidegate_engine::{Message, Tokens, count_turns};
use tidegate_tokens::ModelTable;

/// A limit that the conversation has reached. Amounts are in billionths of a dollar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitReached {
    Turns { turns: usize, max: u32 },
    Cost { spent: u64, max: u64 },
}

const NANO: f64 = 1e9;

/// Converts USD to billionths of a dollar, so that counters are integers.
#[must_use]
pub fn nanodollars(usd: f64) -> u64 {
    // Clamps negative and absurd amounts.
    (usd * NANO).round().clamp(0.0, 1e18) as u64
}

/// The inverse of [`nanodollars`].
#[must_use]
pub fn dollars(nanodollars: u64) -> f64 {
    nanodollars as f64 / NANO
}

/// What the summaries of a conversation have cost in USD, as far as prices are known. They count toward its limit.
#[must_use]
pub fn summaries_cost(folds: &[SavedFold], models: &ModelTable) -> f64 {
    let cost = |fold: &SavedFold| {
        let author = &fold.state.author;
        let prices = models.lookup(&author.model).prices.filter(|_| author.calls > 0)?;
        prices.cost(Tokens(author.prompt_tokens), Tokens::ZERO, Tokens(author.completion_tokens))
    };
    folds.iter().filter_map(cost).sum()
}

/// Finds the limit that the next turn would exceed.
pub(crate) fn check(limits: &Limits, messages: &[Message], spent: Option<f64>) -> Option<LimitReached> {
    let turns = count_turns(messages);
    if let Some(max) = limits.max_turns
        && u64::try_from(turns).is_ok_and(|turns| turns >= u64::from(max.get()))
    {
        return Some(LimitReached::Turns { turns, max: max.get() });
    }
    let (max, spent) = limits.max_cost_usd.zip(spent)?;
    (spent >= max).then(|| LimitReached::Cost { spent: nanodollars(spent), max: nanodollars(max) })
}
