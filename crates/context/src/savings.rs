//! Estimates what editing a request saved: its bill, compared with what the client's own request would have cost.
//!
//! The second figure cannot be known, so it is estimated conservatively: if it is unclear how much of the client's own request the
//! provider would have cached, everything that it can have seen before counts as cached.

use crate::{Assessment, TurnInput};
use tidegate_engine::{Message, Plan, Recalled, Timestamp, Tokens};
use tidegate_tokens::{Caching, Prices};
use tidegate_wire::Usage;

/// In USD.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    pub billed: f64,
    /// What the same answer would have cost for the request as the client sent it.
    pub unedited: f64,
    /// What it would have cost for the request as planned, if the plan was only observed.
    pub planned: Option<f64>,
}

impl Cost {
    /// What editing has saved; negative where it has cost.
    #[must_use]
    pub fn avoided(&self) -> f64 {
        self.unedited - self.billed
    }
}

/// A forwarded request beside the client's own, by our own count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unedited {
    before: Tokens,
    after: Tokens,
    /// How much of the client's own request the provider can have cached, had nothing ever been edited.
    seen: Tokens,
    /// How much of the forwarded one it can have cached; `None` if the request was edited anew, so that its hits say little.
    replayed: Option<Tokens>,
    /// The same two figures of the plan, if it was only observed.
    observed: Option<(Tokens, Option<Tokens>)>,
}

impl Unedited {
    pub(crate) fn new(
        assessment: &Assessment,
        input: &TurnInput,
        recalled: Option<Recalled<'_>>,
    ) -> Unedited {
        let (plan, messages) = (&assessment.decision.plan, &assessment.chat.messages);
        let caching = input.model.caching;
        let life = input.cache_life(&assessment.chat).as_millis();
        let is_warm = |at: Timestamp| u128::from(input.now.0.saturating_sub(at.0)) <= life;
        let recalled = recalled.filter(|recalled| recalled.seen > 0 && is_warm(recalled.at));
        let (seen, replayed) = match recalled {
            Some(Recalled { waypoint: before, last, .. }) => {
                let new: Tokens = messages[last + 1..].iter().map(|message| message.tokens).sum();
                let is_replayed = assessment.decision.waypoint.as_ref().is_some_and(|made| {
                    (made.frontier, made.fold, made.gap) == (before.frontier, before.fold, before.gap)
                        && (plan.newly_trimmed.is_some()
                            || (made.trim, &made.skipped) == (before.trim, &before.skipped))
                });
                // An excerpt is new, and so is what stands behind it. Without a cache, an edit breaks nothing.
                let is_cached = input.is_cached(&assessment.chat);
                let new_excerpts = plan.newly_trimmed.filter(|_| is_cached);
                let changed = new_excerpts.map_or(new, |first| forwarded_from(first, plan, messages));
                let is_comparable = is_replayed || !is_cached;
                let replayed = is_comparable.then(|| cacheable(plan.after.saturating_sub(changed), caching));
                (cacheable(plan.before.saturating_sub(new), caching), replayed)
            }
            // The first request, or one after every cache has gone cold.
            None => (Tokens::ZERO, Some(Tokens::ZERO)),
        };
        let unedited = Unedited { before: plan.before, after: plan.after, seen, replayed, observed: None };
        if input.context.observe { unedited.as_sent() } else { unedited }
    }

    /// The same for a request that was forwarded as it came, whatever was planned.
    fn as_sent(self) -> Unedited {
        let observed = Some((self.after, self.replayed));
        Unedited { after: self.before, replayed: Some(self.seen), observed, ..self }
    }

    /// What was billed for `usage`, and what would have been without us; `None` if a price is unknown.
    #[must_use]
    pub fn cost(&self, prices: &Prices, usage: Usage) -> Option<Cost> {
        let Usage { prompt_tokens, cached_tokens, completion_tokens, .. } = usage;
        let bill =
            |input: u64, cached: u64| prices.cost(Tokens(input), Tokens(cached), Tokens(completion_tokens));
        let billed = bill(prompt_tokens, cached_tokens)?;
        if self.before == self.after || self.after == Tokens::ZERO {
            let planned = self
                .observed
                .map(|plan| self.planned(plan, usage))
                .map(|(input, cached)| bill(input, cached));
            return Some(Cost { billed, unedited: billed, planned: planned.flatten() });
        }
        // How many tokens the provider counts for one of ours.
        let scale = prompt_tokens as f64 / self.after.0 as f64;
        let hits = match self.replayed {
            Some(replayed) if replayed > Tokens::ZERO => {
                (cached_tokens as f64 / (replayed.0 as f64 * scale)).min(1.0)
            }
            Some(_) | None => 1.0,
        };
        let whole = self.before.0 as f64 * scale;
        let cached = self.seen.0 as f64 * scale * hits;
        let unedited = bill(whole.round() as u64, cached.round() as u64)?;
        Some(Cost { billed, unedited, planned: None })
    }

    /// The same where the upstream was asked several times, because the model had recalled something: `hidden` is the usage of the answers
    /// that the client does not see, in order, and `last` that of the one that it does, if that is billed.
    ///
    /// Every answer is billed with a prompt of its own. The client's own request would have had one answer: it holds everything.
    #[must_use]
    pub fn cost_of_all(&self, prices: &Prices, hidden: &[Usage], last: Option<Usage>) -> Option<Cost> {
        let Some(first) = hidden.first() else { return self.cost(prices, last?) };
        let said = last.map_or(first.completion_tokens, |last| last.completion_tokens);
        let cost = self.cost(prices, Usage { completion_tokens: said, ..*first })?;
        let bill = |usage: &Usage| {
            let Usage { prompt_tokens, cached_tokens, completion_tokens, .. } = *usage;
            prices.cost(Tokens(prompt_tokens), Tokens(cached_tokens), Tokens(completion_tokens))
        };
        let billed: Option<f64> = hidden.iter().chain(&last).map(bill).sum();
        Some(Cost { billed: billed?, ..cost })
    }

    /// The input of the request as planned, and how much of it would have been cached, by what was reported for the client's own.
    fn planned(&self, (after, replayed): (Tokens, Option<Tokens>), usage: Usage) -> (u64, u64) {
        if after == self.before {
            return (usage.prompt_tokens, usage.cached_tokens);
        }
        let scale = usage.prompt_tokens as f64 / self.before.0.max(1) as f64;
        let seen = self.seen.0 as f64 * scale;
        let hits = if seen > 0.0 { (usage.cached_tokens as f64 / seen).min(1.0) } else { 0.0 };
        // A request that is edited anew misses the cache.
        let cached = replayed.unwrap_or(Tokens::ZERO).0 as f64 * scale * hits;
        ((after.0 as f64 * scale).round() as u64, cached.round() as u64)
    }
}

/// What the messages from `first` on cost as they are forwarded. None of them is folded or dropped.
fn forwarded_from(first: usize, plan: &Plan, messages: &[Message]) -> Tokens {
    let cost = |(index, message): (usize, &Message)| {
        let saving = match (plan.masked.binary_search(&index), plan.trimmed.binary_search(&index)) {
            (Ok(_), _) => message.saving(),
            (Err(_), Ok(_)) => message.trim_saving(),
            (Err(_), Err(_)) => Tokens::ZERO,
        };
        message.tokens.saturating_sub(saving)
    };
    messages.iter().enumerate().skip(first).map(cost).sum()
}

/// How much of a prefix of this length a provider caches.
fn cacheable(length: Tokens, caching: Caching) -> Tokens {
    if length < caching.minimum {
        return Tokens::ZERO;
    }
    let step = caching.step.0.max(1);
    Tokens(length.0 / step * step)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRICES: Prices =
        Prices { input: 10.0, cached_input: Some(1.0), cache_write: None, output: Some(0.0) };

    fn usage(prompt_tokens: u64, cached_tokens: u64) -> Usage {
        Usage { prompt_tokens, cached_tokens, ..Usage::default() }
    }

    fn edited(seen: u64, replayed: Option<u64>) -> Unedited {
        let (before, after) = (Tokens(20_000), Tokens(10_000));
        Unedited { before, after, seen: Tokens(seen), replayed: replayed.map(Tokens), observed: None }
    }

    /// In millionths of a dollar.
    fn cost(unedited: &Unedited, usage: Usage) -> (f64, f64) {
        let cost = unedited.cost(&PRICES, usage).unwrap();
        ((cost.billed * 1e6).round(), (cost.unedited * 1e6).round())
    }

    #[test]
    fn an_unedited_request_saves_nothing() {
        let same = Unedited { before: Tokens(10_000), ..edited(9_000, Some(9_000)) };
        assert_eq!(cost(&same, usage(10_000, 0)), (100_000.0, 100_000.0));
    }

    #[test]
    fn an_observed_request_tells_what_it_would_have_cost() {
        let applied = edited(19_000, Some(9_000)).cost(&PRICES, usage(10_000, 9_000)).unwrap();
        let observed = edited(19_000, Some(9_000)).as_sent().cost(&PRICES, usage(20_000, 19_000)).unwrap();
        assert_eq!((observed.planned, observed.billed), (Some(applied.billed), applied.unedited));
        let uncached = edited(19_000, Some(9_000)).as_sent().cost(&PRICES, usage(20_000, 0)).unwrap();
        assert_eq!(uncached.planned, Some(0.1));
    }

    #[test]
    fn an_observed_request_saves_nothing() {
        assert_eq!(cost(&edited(9_000, None).as_sent(), usage(20_000, 5_000)), (155_000.0, 155_000.0));
    }

    #[test]
    fn cache_hits_are_assumed_for_the_unedited_request_too() {
        // 1,000 new ones in both; the rest was seen before.
        assert_eq!(cost(&edited(19_000, Some(9_000)), usage(10_000, 9_000)), (19_000.0, 29_000.0));
    }

    #[test]
    fn without_cache_hits_none_are_assumed_for_the_unedited_request() {
        assert_eq!(cost(&edited(19_000, Some(9_000)), usage(10_000, 0)), (100_000.0, 200_000.0));
    }

    #[test]
    fn every_answer_is_billed_with_its_own_prompt() {
        let unedited = edited(0, Some(0));
        let (first, last) = (usage(10_000, 0), usage(11_000, 10_000));
        let cost = |hidden: &[Usage], last| unedited.cost_of_all(&PRICES, hidden, last).unwrap();
        assert_eq!(cost(&[], Some(first)), unedited.cost(&PRICES, first).unwrap());
        let both = cost(&[first], Some(last));
        // Without us, the model would have answered at once.
        let micros = |usd: f64| (usd * 1e6).round();
        assert_eq!((micros(both.billed), micros(both.unedited)), (100_000.0 + 20_000.0, 200_000.0));
        // An error after the first answer is not billed, but that answer is.
        assert_eq!(micros(cost(&[first], None).billed), 100_000.0);
        assert_eq!(unedited.cost_of_all(&PRICES, &[], None), None);
    }

    #[test]
    fn an_edit_that_breaks_the_cache_counts_as_a_loss() {
        // Ours at full price, theirs almost all out of the cache: this turn has cost more than it saved.
        assert_eq!(cost(&edited(19_000, None), usage(10_000, 0)), (100_000.0, 29_000.0));
    }

    #[test]
    fn the_estimate_is_scaled_to_the_providers_token_counts() {
        // The provider counts twice what we count.
        assert_eq!(cost(&edited(0, Some(0)), usage(20_000, 0)), (200_000.0, 400_000.0));
    }

    #[test]
    fn without_an_output_price_there_is_no_estimate() {
        let unpriced = Prices { output: None, ..PRICES };
        let usage = Usage { completion_tokens: 1, ..usage(10, 0) };
        assert_eq!(edited(0, None).cost(&unpriced, usage), None);
    }
}
