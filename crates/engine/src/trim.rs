//! The trim pass: which long observations become excerpts, and when.
//!
//! The cheapest moment to shrink a result is right after the model has read it. The provider has cached everything up to it and
//! nothing behind it, so shrinking it costs the excerpt alone. Some turns later, everything behind it has to be read again as well.
//! So unlike masking, trimming cannot wait until not doing it has cost as much: the price grows faster than that.
//!
//! ```text
//! price  = (cached tokens from the first new excerpt on, as edited) × (write − cached)
//! saving = (tokens that the excerpts save) × cached                            at every request from now on
//! debt   = debt + price when something is trimmed, debt − saving at every request
//! ```
//!
//! With the break-even pace, observations are trimmed if the saving makes up for the price within [`PAYBACK`] requests, and if what
//! excerpts have cost and not saved yet stays below a share of the conversation's own bill. Where that does not hold for an early
//! observation but does for later ones, the early one is *skipped*, until something else makes the provider read it again anyway.

use crate::memory::Recalled;
use crate::turns::{kept_from, position_of};
use crate::{Cause, Conversation, Folded, Horizon, Memory, Message, Pace, Timestamp, Tokens, TrimPolicy};
use std::sync::Arc;

/// Within how many requests an excerpt must have saved what it costs.
const PAYBACK: f64 = 10.0;

/// The share of what the provider charges to read the conversation once that excerpts may have cost and not saved yet. It bounds the
/// loss if the conversation ends at once.
const MAX_DEBT: f64 = 0.15;

/// Messages before the trim frontier that are not trimmed, by their short digests. Most conversations have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skipped(Option<Arc<[u64]>>);

impl Skipped {
    const NONE: Skipped = Skipped(None);

    /// Each waypoint holds them, so a conversation in which more would be skipped waits until some of them have been masked or folded.
    pub const MAX: usize = 1024;

    /// `None` if there are more than [`Skipped::MAX`].
    pub fn of(messages: impl IntoIterator<Item = u64>) -> Option<Skipped> {
        let messages: Vec<u64> = messages.into_iter().take(Skipped::MAX + 1).collect();
        match messages.len() {
            0 => Some(Skipped::NONE),
            1..=Skipped::MAX => Some(Skipped(Some(messages.into()))),
            _ => None,
        }
    }

    /// Their short digests.
    #[must_use]
    pub fn shorts(&self) -> &[u64] {
        self.0.as_deref().unwrap_or_default()
    }

    fn has(&self, message: &Message) -> bool {
        self.shorts().contains(&message.digest.short())
    }
}

/// Which observations of a request are excerpts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Trimming {
    /// Every trimmable message before this index is trimmed, unless it was skipped.
    pub(crate) frontier: usize,
    pub(crate) skipped: Skipped,
    /// Why something was trimmed now; `None` if nothing was.
    pub(crate) cause: Option<Cause>,
    /// The first message that was trimmed now.
    pub(crate) start: Option<usize>,
    /// What excerpts have cost and not saved yet.
    pub(crate) debt: f64,
    /// The furthest index that the frontier may move to.
    pub(crate) edge: usize,
    pub(crate) horizon: Horizon,
}

impl Trimming {
    /// The trimming of a policy that does not trim.
    pub(crate) const NONE: Trimming = Trimming {
        frontier: 0,
        skipped: Skipped::NONE,
        cause: None,
        start: None,
        debt: 0.0,
        edge: 0,
        horizon: Horizon { length: 0, cut_at: None },
    };

    pub(crate) fn is_trimmed(&self, index: usize, message: &Message) -> bool {
        index < self.frontier && message.trim_saving() > Tokens::ZERO && !self.skipped.has(message)
    }

    /// What a message costs that is not masked.
    pub(crate) fn cost(&self, index: usize, message: &Message) -> Tokens {
        let saving = if self.is_trimmed(index, message) { message.trim_saving() } else { Tokens::ZERO };
        message.tokens.saturating_sub(saving)
    }

    /// Whether trimming up to the edge would touch a message before `bound`.
    pub(crate) fn is_bound(&self, messages: &[Message], bound: usize) -> bool {
        let end = self.edge.min(bound).min(messages.len());
        (0..end).any(|index| {
            messages[index].trim_saving() > Tokens::ZERO && !self.is_trimmed(index, &messages[index])
        })
    }

    /// The messages as they are before anything is masked, for the passes that weigh what else to do to them.
    pub(crate) fn applied(&self, messages: &[Message]) -> Vec<Message> {
        let apply =
            |(index, message): (usize, &Message)| Message { tokens: self.cost(index, message), ..*message };
        messages.iter().enumerate().map(apply).collect()
    }

    /// Everything up to the edge trimmed, for a request that would not fit otherwise.
    pub(crate) fn to_the_edge(&self) -> Trimming {
        let frontier = self.edge.max(self.frontier);
        Trimming { frontier, skipped: Skipped::NONE, ..self.clone() }
    }
}

/// What is known of the last request, and of the provider's cache.
pub(crate) struct Replayed {
    trimming: Trimming,
    /// The number of messages that the provider has in its cache, as they were forwarded.
    cached: usize,
    is_retry: bool,
    previous: Option<Horizon>,
    /// The first message that no summary covers.
    from: usize,
    /// Nothing before this index is trimmed anew.
    bound: usize,
}

/// Repeats what was decided for the last request.
pub(crate) fn replay(
    conversation: &Conversation<'_>,
    memory: &Memory,
    (policy, bound): (&TrimPolicy, usize),
    now: Timestamp,
    folded: Option<&Folded>,
) -> Replayed {
    let Conversation { messages, cache, economy, .. } = *conversation;
    // A fresh result is never trimmed, even if the client has gone back to a message that was old before.
    let edge = kept_from(messages, policy.after);
    let from = folded.map_or(0, |folded| folded.upto);
    let Some(Recalled { waypoint, last, seen, at, is_retry }) = memory.recall(messages, cache) else {
        let horizon = memory.newest(cache).map(|waypoint| waypoint.horizon);
        let trimming = Trimming { edge, horizon: Horizon::of(messages, horizon), ..Trimming::NONE };
        return Replayed { trimming, cached: 0, is_retry: false, previous: horizon, from, bound };
    };
    let frontier =
        waypoint.trim.map_or(0, |digest| position_of(&messages[..=last], digest).unwrap_or(last) + 1);
    let is_same_fold = folded.map(|folded| folded.covers) == waypoint.fold;
    let is_cold = economy.is_cold(at, now) || !is_same_fold;
    let trimming = Trimming {
        frontier: frontier.min(edge),
        skipped: waypoint.skipped.clone(),
        cause: None,
        start: None,
        debt: waypoint.trim_debt,
        edge,
        horizon: Horizon::of(messages, Some(waypoint.horizon)),
    };
    let cached = if is_cold { 0 } else { seen };
    Replayed { trimming, cached, is_retry, previous: Some(waypoint.horizon), from, bound }
}

impl Replayed {
    pub(crate) fn trimming(&self) -> Trimming {
        self.trimming.clone()
    }

    /// Decides what else to trim. `changed` is the first message that has just been masked: the provider has to read everything
    /// behind it again anyway.
    pub(crate) fn decide(
        &self,
        conversation: &Conversation<'_>,
        policy: &TrimPolicy,
        is_masked: &dyn Fn(usize) -> bool,
        changed: Option<usize>,
    ) -> Trimming {
        let Conversation { messages, economy, .. } = *conversation;
        let mut trimming = self.trimming.clone();
        let is_candidate = |index: &usize| {
            let message = &messages[*index];
            let is_whole = !trimming.is_trimmed(*index, message) && !is_masked(*index);
            is_whole && message.trim_saving() > Tokens::ZERO
        };
        let candidates: Vec<usize> = (self.from..trimming.edge).filter(is_candidate).collect();
        let is_bound = candidates.first().is_some_and(|first| *first < self.bound);
        if !(self.is_retry || is_bound)
            && let Some((start, price, cause)) =
                self.worthwhile(conversation, policy, &candidates, is_masked, changed)
        {
            let spared = candidates.iter().take_while(|index| **index < start);
            let spared = spared.map(|&index| messages[index].digest.short());
            if let Some(skipped) = Skipped::of(spared) {
                trimming.frontier = trimming.edge;
                trimming.skipped = skipped;
                trimming.cause = Some(cause);
                trimming.start = Some(start);
                trimming.debt += price;
            }
        }
        let is_excerpt = |index: &usize| trimming.is_trimmed(*index, &messages[*index]) && !is_masked(*index);
        let excerpts = (self.from..trimming.frontier).filter(is_excerpt);
        let saving: Tokens = excerpts.map(|index| messages[index].trim_saving()).sum();
        trimming.debt = (trimming.debt - saving.0 as f64 * economy.cached).max(0.0);
        trimming
    }

    /// Returns the first of the candidates to trim, what that costs, and why; all behind it are trimmed, too. `None` if nothing is.
    fn worthwhile(
        &self,
        conversation: &Conversation<'_>,
        policy: &TrimPolicy,
        candidates: &[usize],
        is_masked: &dyn Fn(usize) -> bool,
        changed: Option<usize>,
    ) -> Option<(usize, f64, Cause)> {
        let Conversation { messages, economy, .. } = *conversation;
        let first = *candidates.first()?;
        let prices = self.prices(conversation, candidates, is_masked, changed);
        let price_from = |start: usize| prices.get(start - first).copied().unwrap_or(0.0);
        match policy.pace {
            Pace::EveryTurn => return Some((first, price_from(first), Cause::EveryTurn)),
            Pace::Batch(size) => {
                let is_full = candidates.len() >= usize::try_from(size.get()).unwrap_or(usize::MAX);
                return is_full.then(|| (first, price_from(first), Cause::Batch));
            }
            Pace::BreakEven => {}
        }
        let left = self.trimming.horizon.requests_left(self.previous).unwrap_or(f64::INFINITY).min(PAYBACK);
        let read: Tokens = messages.iter().map(|message| message.tokens).sum::<Tokens>() + conversation.fixed;
        let max_debt = MAX_DEBT * read.0 as f64 * economy.write;
        let (mut saving, mut best) = (Tokens::ZERO, None);
        for &start in candidates.iter().rev() {
            saving += messages[start].trim_saving();
            let price = price_from(start);
            let net = saving.0 as f64 * economy.cached * left - price;
            let is_free = price == 0.0;
            let is_affordable = net >= 0.0 && self.trimming.debt + price <= max_debt;
            if (is_free || is_affordable) && best.is_none_or(|(_, _, most)| net >= most) {
                best = Some((start, price, net));
            }
        }
        let cause = |price: f64| if price == 0.0 { Cause::Free } else { Cause::BreakEven };
        best.map(|(start, price, _)| (start, price, cause(price)))
    }

    /// What the provider would charge to read again what it has cached, from each message on that it has cached, the first candidate
    /// first.
    fn prices(
        &self,
        conversation: &Conversation<'_>,
        candidates: &[usize],
        is_masked: &dyn Fn(usize) -> bool,
        changed: Option<usize>,
    ) -> Vec<f64> {
        let Conversation { messages, economy, .. } = *conversation;
        let cached = self.cached.min(changed.unwrap_or(usize::MAX));
        let cost = |index: usize| {
            let message = &messages[index];
            match (is_masked(index), candidates.binary_search(&index)) {
                (true, _) => message.masked_cost(),
                (false, Ok(_)) => message.trimmed_cost(),
                (false, Err(_)) => self.trimming.cost(index, message),
            }
        };
        let mut sum = Tokens::ZERO;
        let from = candidates.first().copied().unwrap_or(cached);
        let prices = (from..cached).rev().map(|index| {
            sum += cost(index);
            sum.0 as f64 * economy.miss_penalty()
        });
        let mut prices: Vec<f64> = prices.collect();
        prices.reverse();
        prices
    }
}
