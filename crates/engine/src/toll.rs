//! What folding costs in the provider's prompt cache, and whether waiting has cost as much.
//!
//! The same rule as for masks: a summary makes everything behind it a miss once, and until then every request
//! carries what it would have stood for. When the one has cost as much as the other would, it is time.

use crate::fold::{Folded, legal};
use crate::turns::kept_from;
use crate::{Economy, FoldPace, FoldPolicy, Memory, Message, Timestamp, Tokens};

/// Whether folding pays by now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Toll {
    pub(crate) is_paid: bool,
    /// What not folding has cost since the last summary.
    pub(crate) tally: f64,
}

pub(crate) fn toll(
    messages: &[Message],
    memory: &Memory,
    folded: Option<&Folded>,
    policy: &FoldPolicy,
    economy: &Economy,
    now: Timestamp,
) -> Toll {
    if policy.pace == FoldPace::AtTrigger {
        return Toll { is_paid: true, tally: 0.0 };
    }
    let Some((seen, waypoint)) = memory.last_on(messages) else {
        // Nothing is known to be in the cache, so there is nothing to lose.
        return Toll { is_paid: true, tally: 0.0 };
    };
    let covers = folded.map(|folded| folded.covers);
    let is_cold = now.0.saturating_sub(waypoint.at.0) > economy.cache_life || covers != waypoint.fold;
    let (from, upto) =
        (folded.map_or(0, |folded| folded.upto), legal(messages, kept_from(messages, policy.keep)));
    let goes = messages.get(from..upto).unwrap_or_default();
    let goes: Tokens =
        goes.iter().filter(|message| !message.role.is_instruction()).map(|message| message.tokens).sum();
    // A first summary takes a place of its own; a later one takes the place of the one before it.
    let summary = folded.map_or(goes.0 / SHORTENING, |folded| folded.tokens.0);
    let saving = goes.0.saturating_sub(if folded.is_some() { 0 } else { summary });
    let earlier = if covers == waypoint.fold { waypoint.fold_tally } else { 0.0 };
    let tally = earlier + saving as f64 * economy.cached;
    let again: Tokens = messages.iter().take(seen + 1).skip(upto).map(|message| message.tokens).sum();
    let price = (again.0 + summary) as f64 * economy.miss();
    Toll { is_paid: is_cold || tally >= price, tally }
}

/// How much shorter a summary is than what it stands for, where nobody has seen one yet.
const SHORTENING: u64 = 10;
