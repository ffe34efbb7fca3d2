//! An independent implementation of the break-even rule.

use crate::play::Exchange;
use proptest::prelude::*;
use tidegate_engine::{Cause, Verdict};

/// The state of the rule since the frontier last moved.
#[derive(Debug, Default)]
pub(crate) struct BreakEvenRule {
    tally: f64,
    debt: f64,
    last: Option<Last>,
}

#[derive(Debug)]
struct Last {
    messages: usize,
    /// The number of messages that the next request recognizes. Instructions at the end have no digest, so it cannot tell them from
    /// new ones.
    seen: usize,
    masked: Vec<usize>,
    at: u64,
}

impl BreakEvenRule {
    /// Checks a plan. Branched conversations, corrected counts and policies that trim are skipped: a branch has more than one history,
    /// rounding is not part of the rule, and excerpts change the prices.
    pub(crate) fn check(&mut self, exchange: &Exchange<'_>) -> Result<(), TestCaseError> {
        let plan = exchange.plan();
        let policy = &exchange.scenario.policy;
        if policy.pace != "\"break_even\""
            || !policy.masks
            || policy.trim.is_some()
            || exchange.is_after_branch
            || exchange.factor != 1.0
        {
            return Ok(());
        }
        // A refused request leaves no state, so its retry is decided anew.
        if exchange.is_retry && self.last.as_ref().is_some_and(|last| last.messages == exchange.sent.len()) {
            prop_assert_eq!(plan.cause, None, "a retry decides nothing");
            return Ok(());
        }
        let already = self.last.as_ref().map_or(&[][..], |last| &last.masked);
        let tokens = |index: usize| exchange.assessment.chat.messages[index].tokens.0;
        let masked_tokens = |index: usize| {
            exchange.assessment.chat.messages[index].masked.map_or(tokens(index), |masked| masked.0)
        };
        // The unmasked observations outside the window. The plan masks all of them or reports how many it postpones.
        let new_masks: Vec<usize> = match plan.cause {
            Some(_) => plan.masked.iter().copied().filter(|index| !already.contains(index)).collect(),
            None => {
                let frontier = already.last().map_or(0, |last| last + 1);
                let saves = |index: &usize| masked_tokens(*index) < tokens(*index);
                (frontier..exchange.sent.len()).filter(saves).take(plan.postponed).collect()
            }
        };
        let saving: u64 = new_masks.iter().map(|&index| tokens(index) - masked_tokens(index)).sum();
        let prices = policy.prices;
        let tally = self.tally + saving as f64 * prices.cached;
        let is_cold = self.last.as_ref().is_none_or(|last| exchange.now - last.at > prices.cache_life);
        let seen = self.last.as_ref().map_or(0, |last| last.seen);
        let rewritten: u64 = (new_masks.first().copied().unwrap_or(seen)..seen)
            .map(|index| if new_masks.contains(&index) { masked_tokens(index) } else { tokens(index) })
            .sum();
        let price = if is_cold { 0.0 } else { rewritten as f64 * (prices.write - prices.cached) };
        let pays = !new_masks.is_empty() && (price == 0.0 || tally >= price + self.debt);
        let saved = |masked: &[usize]| -> f64 {
            let tokens: u64 = masked.iter().map(|&index| tokens(index) - masked_tokens(index)).sum();
            tokens as f64 * prices.cached
        };
        // What the last move has cost and masking has not saved since.
        let debt = match plan.cause {
            Some(Cause::BreakEven | Cause::Free) => self.debt + price - saved(&plan.masked),
            _ => self.debt - saved(already),
        };
        match plan.cause {
            None => prop_assert!(!pays, "postponed although {} >= {} + {}", tally, price, self.debt),
            Some(Cause::Budget) => prop_assert!(!pays),
            Some(Cause::BreakEven) => {
                prop_assert!(pays && price > 0.0, "moved although {} < {} + {}", tally, price, self.debt)
            }
            Some(Cause::Free) => prop_assert!(pays && price == 0.0, "{} is not free", price),
            Some(
                Cause::EveryTurn
                | Cause::Batch
                | Cause::Messages
                | Cause::Turns
                | Cause::Prune
                | Cause::Blocks,
            ) => {
                prop_assert!(false, "{:?}", plan.cause)
            }
        }
        if plan.verdict != Verdict::Refused {
            self.debt = debt.max(0.0);
            self.tally = if plan.cause.is_some() {
                0.0
            } else if new_masks.is_empty() {
                self.tally
            } else {
                tally
            };
            let last_non_instruction = exchange.sent.iter().rposition(|sent| !sent.speaker.is_instruction());
            self.last = Some(Last {
                messages: exchange.sent.len(),
                seen: last_non_instruction.map_or(0, |last| last + 1),
                masked: plan.masked.clone(),
                at: exchange.now,
            });
        }
        Ok(())
    }
}
