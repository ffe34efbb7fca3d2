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
//! Folding pays off when `tally ≥ price`, and at once if the cache is cold.

use crate::fold::Folded;
use crate::memory::Recalled;
use crate::turns::{dialogue, kept_from, last_cut_before};
use crate::{Conversation, FoldPace, FoldPolicy, Memory, Timestamp, Tokens};

/// Whether folding pays off, and the tally to carry over to the next request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FoldTiming {
    pub(crate) pays_off: bool,
    /// What not folding has cost since the last summary.
    pub(crate) tally: f64,
}

impl FoldTiming {
    /// Folding costs no cache hits, or the policy does not care.
    pub(crate) const FREE: FoldTiming = FoldTiming { pays_off: true, tally: 0.0 };
}

pub(crate) fn fold_timing(
    conversation: &Conversation<'_>,
    memory: &Memory,
    folded: Option<&Folded>,
    policy: &FoldPolicy,
    now: Timestamp,
) -> FoldTiming {
    let Conversation { messages, head, economy, .. } = *conversation;
    if policy.pace == FoldPace::AtTrigger {
        return FoldTiming::FREE;
    }
    let Some(Recalled { waypoint, seen, at, .. }) = memory.recall(messages, head) else {
        // Nothing is known to be in the cache, so there is nothing to lose.
        return FoldTiming::FREE;
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
    let behind: Tokens = messages.iter().take(seen).skip(upto).map(|message| message.tokens).sum();
    let price = (behind + summary).0 as f64 * economy.miss_penalty();
    let is_cold = economy.is_cold(at, now) || !same_summary || seen == 0;
    FoldTiming { pays_off: is_cold || tally >= price, tally }
}

/// How many times shorter a first summary is assumed to be than the messages that it replaces.
const EXPECTED_SHORTENING: u64 = 10;
