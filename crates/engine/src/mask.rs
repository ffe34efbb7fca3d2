//! The mask pass: which old observations become placeholders, and when.
//!
//! Everything maskable before the *frontier* is masked, and nothing behind it. The frontier only moves forward, and never past
//! the *edge*: the first message that `mask.keep` protects. Each move changes the prompt at the first newly masked message, so
//! the provider has to read everything behind it at the full price again. [`Pace`] says when that is worth it.
//!
//! # Break-even
//!
//! Every request that leaves maskable observations in the prompt pays for them once more, at the cached price. The *tally* is
//! the sum of these payments since the frontier last moved:
//!
//! ```text
//! tally += (tokens that masking would save) × cached
//! price  = (cached tokens behind the first newly masked message, as masked) × (write − cached)
//! ```
//!
//! The frontier moves to the edge when `tally ≥ price`: when not masking has cost as much as masking costs now. This is the
//! ski-rental rule. It needs no knowledge of the future and never pays more than twice the optimum. The price is zero if the
//! cache has expired or gives no discount; then the frontier follows the edge at every request.

use crate::memory::Recalled;
use crate::turns::{kept_from, position_of};
use crate::{CachePricing, Cause, Digest, Folded, Keep, Memory, Message, Pace, Timestamp, Tokens};

/// Where the mask frontier of a request is.
#[derive(Debug, PartialEq)]
pub(crate) struct Masking {
    /// Everything maskable before this index is masked.
    pub(crate) frontier: usize,
    /// Why the frontier moved; `None` if it did not.
    pub(crate) cause: Option<Cause>,
    /// What leaving maskable observations in the prompt has cost since the frontier last moved.
    pub(crate) tally: f64,
    /// The furthest index that the frontier may move to.
    pub(crate) edge: usize,
}

impl Masking {
    /// The masking of a strategy that does not mask.
    pub(crate) const NONE: Masking = Masking { frontier: 0, cause: None, tally: 0.0, edge: 0 };
}

/// The last request of this conversation, as far as the mask pass needs it.
struct Previous {
    frontier: usize,
    /// The number of messages that the provider has read, masked up to `frontier`.
    seen: usize,
    tally: f64,
    /// Whether the provider has nothing of this conversation in its cache.
    is_cold: bool,
    /// What the summary in use covered.
    fold: Option<Digest>,
}

pub(crate) fn mask(
    messages: &[Message],
    memory: &Memory,
    keep: Keep,
    pace: Pace,
    economy: &CachePricing,
    now: Timestamp,
    folded: Option<&Folded>,
) -> Masking {
    let edge = kept_from(messages, keep);
    let mut previous = previous(messages, memory, edge, economy, now);
    // Folded messages need no mask, and a new summary has already invalidated the cache behind it.
    previous.frontier = previous.frontier.max(folded.map_or(0, |folded| folded.upto));
    previous.is_cold |= folded.map(|folded| folded.covers) != previous.fold;
    if previous.seen == messages.len() {
        // A retry repeats what the first attempt got.
        return Masking { frontier: previous.frontier, cause: None, tally: previous.tally, edge };
    }
    let edge = edge.max(previous.frontier);
    let Some(first) = (previous.frontier..edge).find(|&index| messages[index].saving() > Tokens::ZERO) else {
        return Masking { frontier: previous.frontier, cause: None, tally: previous.tally, edge };
    };
    let newly = &messages[first..edge];
    let saving: Tokens = newly.iter().map(Message::saving).sum();
    let tally = previous.tally + saving.0 as f64 * economy.cached;
    let cause = match pace {
        Pace::EveryTurn => Some(Cause::EveryTurn),
        Pace::Batch(size) => {
            let waiting = newly.iter().filter(|message| message.saving() > Tokens::ZERO).count();
            (waiting >= usize::try_from(size.get()).unwrap_or(usize::MAX)).then_some(Cause::Batch)
        }
        Pace::BreakEven if previous.is_cold => Some(Cause::Free),
        Pace::BreakEven => {
            let price = tokens_read_again(messages, first, edge, previous.seen) * economy.miss_penalty();
            (tally >= price).then_some(if price > 0.0 { Cause::BreakEven } else { Cause::Free })
        }
    };
    match cause {
        Some(_) => Masking { frontier: edge, cause, tally: 0.0, edge },
        None => Masking { frontier: previous.frontier, cause, tally, edge },
    }
}

/// Returns the tokens that are in the provider's cache now and would have to be read again: the messages from `first` on that
/// the provider has seen, masked up to `edge`. New messages do not count, because they are read for the first time anyway.
fn tokens_read_again(messages: &[Message], first: usize, edge: usize, seen: usize) -> f64 {
    let cost = |(index, message): (usize, &Message)| {
        if index < edge { message.masked_cost() } else { message.tokens }
    };
    let tokens: Tokens = messages.iter().enumerate().take(seen).skip(first).map(cost).sum();
    tokens.0 as f64
}

fn previous(
    messages: &[Message],
    memory: &Memory,
    edge: usize,
    economy: &CachePricing,
    now: Timestamp,
) -> Previous {
    let Some(Recalled { waypoint, last, is_retry }) = memory.recall(messages) else {
        // Nothing is known to be in the cache, so there is nothing to lose.
        return Previous { frontier: 0, seen: 0, tally: 0.0, is_cold: true, fold: None };
    };
    let masked = waypoint.frontier.map(|digest| position_of(&messages[..=last], digest));
    let (frontier, tally) = match masked {
        None => (0, waypoint.tally),
        Some(Some(masked)) => (masked + 1, waypoint.tally),
        // The conversation has changed before the frontier. What is still the same was sent masked.
        Some(None) => ((last + 1).min(edge), 0.0),
    };
    Previous {
        frontier,
        seen: if is_retry { messages.len() } else { last + 1 },
        tally,
        fold: waypoint.fold,
        is_cold: economy.is_cold(waypoint.at, now),
    }
}
