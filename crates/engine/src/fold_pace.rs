//! The break-even rule for folding: whether a summary that is due pays off already.
//!
//! The rule is the same as for masks. A new summary makes everything behind it a cache miss once; until then, every request
//! carries the messages that it would replace:
//!
//! ```text
//! tally += (tokens that folding would save) × cached
//! price  = (cached tokens behind the new summary + the summary itself) × (write − cached)
//! ```
//!
//! Folding pays off when `tally ≥ price`, and at once if the cache is cold. Where the client is known to shorten its history
//! ([`Horizon`]), a summary must also be paid back before it is expected to do so again. A summary is used for every model that the
//! conversation goes on with, so all of them must have paid as much whose cache is still warm.

use crate::fold::Folded;
use crate::memory::Recalled;
use crate::turns::{dialogue, kept_from, last_cut_before};
use crate::{CacheKey, Conversation, FoldPace, FoldPolicy, Horizon, Memory, Timestamp, Tokens};

/// Whether folding pays off, and the tally to carry over to the next request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FoldTiming {
    pub(crate) pays_off: bool,
    /// What not folding has cost since the last summary.
    pub(crate) tally: f64,
    pub(crate) horizon: Horizon,
}

impl FoldTiming {
    /// Folding costs no cache hits, or the policy does not care.
    pub(crate) const FREE: FoldTiming =
        FoldTiming { pays_off: true, tally: 0.0, horizon: Horizon { length: 0, cut_at: None } };
}

pub(crate) fn fold_timing(
    conversation: &Conversation<'_>,
    memory: &Memory,
    folded: Option<&Folded>,
    policy: &FoldPolicy,
    now: Timestamp,
) -> FoldTiming {
    let Conversation { messages, cache, economy, .. } = *conversation;
    if policy.pace == FoldPace::AtTrigger {
        return FoldTiming::FREE;
    }
    let Some(Recalled { waypoint, seen, at, .. }) = memory.recall(messages, cache) else {
        // Nothing is known to be in the cache, so there is nothing to lose.
        return FoldTiming { horizon: Horizon::of(messages, None), ..FoldTiming::FREE };
    };
    let same_summary = folded.map(|folded| folded.covers) == waypoint.fold;
    let from = folded.map_or(0, |folded| folded.upto);
    let upto = last_cut_before(messages, kept_from(messages, policy.keep));
    let goes = messages.get(from..upto).unwrap_or_default();
    let goes: Tokens = dialogue(goes).map(|(_, message)| message.tokens).sum();
    // A first summary adds its own length. A later one replaces one that is assumed to be as long.
    let (summary, saving) = match folded {
        None => {
            let summary = Tokens(goes.0 / EXPECTED_SHORTENING);
            (summary, goes.saturating_sub(summary))
        }
        Some(folded) => (folded.tokens, goes),
    };
    let earlier = if same_summary { waypoint.fold_tally } else { 0.0 };
    let tally = earlier + saving.0 as f64 * economy.cached;
    let price = |seen: usize| {
        let behind: Tokens = messages.iter().take(seen).skip(upto).map(|message| message.tokens).sum();
        (behind + summary).0 as f64 * economy.miss_penalty()
    };
    let others = || memory.of_other_models(cache).into_iter().map(|other| other.cache);
    let has_paid = |other: CacheKey| {
        let Some(Recalled { waypoint, seen, at, .. }) = memory.recall(messages, other) else { return true };
        let is_warm = !economy.is_cold(at, now) && waypoint.fold == folded.map(|folded| folded.covers);
        !is_warm || waypoint.fold_tally >= price(seen)
    };
    let is_cold = economy.is_cold(at, now) || !same_summary || seen == 0;
    let horizon = Horizon::of(messages, Some(waypoint.horizon));
    let left = horizon.requests_left(Some(waypoint.horizon)).unwrap_or(f64::INFINITY);
    let own_price = price(seen);
    let is_paid_back = saving.0 as f64 * economy.cached * left >= own_price;
    let pays_off = is_cold || (is_paid_back && tally >= own_price);
    FoldTiming { pays_off: pays_off && others().all(has_paid), tally, horizon }
}

/// How many times shorter a first summary is assumed to be than the messages that it replaces.
const EXPECTED_SHORTENING: u64 = 10;
