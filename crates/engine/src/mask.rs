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
//!
//! # Debt
//!
//! The price is paid for savings in the future. A client that shortens its own history takes them away, again and again if it
//! does so at every few turns. So the price is a *debt* that every masked request pays back, and a further move also has to make up
//! for what is left of it:
//!
//! ```text
//! debt   = debt + price                                  when the frontier moves
//! debt   = debt − (tokens that the masks save) × cached  at every request
//! ```
//!
//! A client that only adds messages has paid its debt long before the next move. Where a client is known to shorten its history
//! ([`Horizon`]), a move must also be paid back before it is expected to do so again.

use crate::memory::Recalled;
use crate::turns::{count_turns, kept_from, position_of};
use crate::{
    Cause, Conversation, Digest, Folded, Horizon, MaskPolicy, Memory, Message, Pace, Timestamp, Tokens,
};

/// Where the mask frontier of a request is.
#[derive(Debug, PartialEq)]
pub(crate) struct Masking {
    /// Everything maskable before this index is masked.
    pub(crate) frontier: usize,
    /// Where the frontier was before.
    pub(crate) moved_from: usize,
    /// Why the frontier moved; `None` if it did not.
    pub(crate) cause: Option<Cause>,
    /// What leaving maskable observations in the prompt has cost since the frontier last moved.
    pub(crate) tally: f64,
    /// What moving the frontier has cost and masking has not saved yet.
    pub(crate) debt: f64,
    pub(crate) horizon: Horizon,
    /// The furthest index that the frontier may move to.
    pub(crate) edge: usize,
}

impl Masking {
    /// The masking of a strategy that does not mask.
    pub(crate) const NONE: Masking = Masking {
        frontier: 0,
        moved_from: 0,
        cause: None,
        tally: 0.0,
        debt: 0.0,
        horizon: Horizon { length: 0, cut_at: None },
        edge: 0,
    };
}

/// The last request of this conversation, as far as the mask pass needs it.
struct Previous {
    frontier: usize,
    /// The number of messages that the provider has read, masked up to `frontier`.
    seen: usize,
    tally: f64,
    debt: f64,
    is_retry: bool,
    horizon: Option<Horizon>,
    /// Whether the provider has nothing of this conversation in its cache.
    is_cold: bool,
    /// What the summary in use covered.
    fold: Option<Digest>,
}

pub(crate) fn mask(
    conversation: &Conversation<'_>,
    memory: &Memory,
    (policy, bound): (&MaskPolicy, usize),
    now: Timestamp,
    folded: Option<&Folded>,
) -> Masking {
    let Conversation { messages, economy, .. } = *conversation;
    let edge = kept_from(messages, policy.keep);
    let mut previous = previous(conversation, memory, edge, now);
    // Folded messages need no mask, and a new summary has already invalidated the cache behind it.
    let folded_upto = folded.map_or(0, |folded| folded.upto);
    previous.frontier = previous.frontier.max(folded_upto);
    previous.is_cold |= folded.map(|folded| folded.covers) != previous.fold;
    let horizon = Horizon::of(messages, previous.horizon);
    let Previous { frontier, tally, debt, .. } = previous;
    if previous.is_retry {
        // A retry repeats what the first attempt got.
        return Masking { frontier, moved_from: frontier, cause: None, tally, debt, horizon, edge };
    }
    let edge = edge.max(frontier);
    let saved = |upto: usize| -> f64 {
        let masks = messages.get(folded_upto..upto).unwrap_or_default();
        masks.iter().map(Message::saving).sum::<Tokens>().0 as f64 * economy.cached
    };
    let still = |tally| {
        let debt = (debt - saved(frontier)).max(0.0);
        Masking { frontier, moved_from: frontier, cause: None, tally, debt, horizon, edge }
    };
    let Some(first) = (frontier..edge).find(|&index| messages[index].saving() > Tokens::ZERO) else {
        return still(tally);
    };
    // Masks are made up to a frontier, so those behind it wait, too.
    if first < bound {
        return still(tally);
    }
    let newly = &messages[first..edge];
    let saving: Tokens = newly.iter().map(Message::saving).sum();
    let tally = tally + saving.0 as f64 * economy.cached;
    let price = if previous.is_cold {
        0.0
    } else {
        tokens_read_again(messages, first, edge, previous.seen) * economy.miss_penalty()
    };
    let cause = match policy.pace {
        Pace::EveryTurn => Some(Cause::EveryTurn),
        Pace::Batch(size) => {
            let waiting = newly.iter().filter(|message| message.saving() > Tokens::ZERO).count();
            (waiting >= usize::try_from(size.get()).unwrap_or(usize::MAX)).then_some(Cause::Batch)
        }
        Pace::BreakEven if price == 0.0 => Some(Cause::Free),
        Pace::BreakEven => {
            let left = horizon.requests_left(previous.horizon).unwrap_or(f64::INFINITY);
            let is_paid_back = saving.0 as f64 * economy.cached * left >= price;
            (is_paid_back && tally >= price + debt).then_some(Cause::BreakEven)
        }
    };
    match cause {
        Some(_) => {
            let debt = (debt + price - saved(edge)).max(0.0);
            Masking { frontier: edge, moved_from: frontier, cause, tally: 0.0, debt, horizon, edge }
        }
        None => still(tally),
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

fn previous(conversation: &Conversation<'_>, memory: &Memory, edge: usize, now: Timestamp) -> Previous {
    let Conversation { messages, cache, economy, .. } = *conversation;
    let Some(Recalled { waypoint, last, seen, at, is_retry }) = memory.recall(messages, cache) else {
        // Nothing is known to be in the cache, so there is nothing to lose.
        // A history that is new but not short belongs to a client that has cut off its beginning.
        let same_client = memory.newest(cache).filter(|_| count_turns(messages) > 1);
        return Previous {
            frontier: 0,
            seen: 0,
            tally: 0.0,
            debt: same_client.map_or(0.0, |waypoint| waypoint.debt),
            horizon: same_client.map(|waypoint| waypoint.horizon),
            is_retry: false,
            is_cold: true,
            fold: None,
        };
    };
    let masked = waypoint.frontier.map(|digest| position_of(&messages[..=last], digest));
    let (frontier, tally) = match masked {
        None => (0, waypoint.tally),
        // A client that went back to an earlier message has not decided about what its window protects now.
        Some(Some(masked)) if Horizon::of(messages, None).is_rewound(waypoint.horizon) => {
            ((masked + 1).min(edge), waypoint.tally)
        }
        Some(Some(masked)) => (masked + 1, waypoint.tally),
        // The conversation has changed before the frontier. What is still the same was sent masked.
        Some(None) => ((last + 1).min(edge), 0.0),
    };
    Previous {
        frontier,
        seen,
        tally,
        debt: waypoint.debt,
        is_retry,
        horizon: Some(waypoint.horizon),
        fold: waypoint.fold,
        is_cold: economy.is_cold(at, now),
    }
}
