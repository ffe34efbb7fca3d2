//! The mask pass: which old observations become placeholders, and when.
//!
//! Masking one more observation makes everything behind it a miss in the provider's prompt cache. So the frontier, before
//! which everything maskable is masked, stays where it is until moving it pays.

use crate::turns::kept_from;
use crate::{Cause, Digest, Economy, Folded, Keep, Memory, Message, Pace, Timestamp, Tokens};

/// How far the masks of a request reach, before and after this decision.
#[derive(Debug, PartialEq)]
pub(crate) struct Masking {
    /// Everything maskable before this index is masked.
    pub(crate) frontier: usize,
    pub(crate) cause: Option<Cause>,
    pub(crate) tally: f64,
    /// Where the frontier could go at most.
    pub(crate) edge: usize,
}

/// What earlier requests of this conversation have left.
struct Past {
    frontier: usize,
    /// How many messages the provider has seen, masked up to `frontier`.
    seen: usize,
    tally: f64,
    is_cold: bool,
    /// What the summary in use covered.
    fold: Option<Digest>,
}

pub(crate) fn mask(
    messages: &[Message],
    memory: &Memory,
    keep: Keep,
    pace: Pace,
    economy: &Economy,
    now: Timestamp,
    folded: Option<&Folded>,
) -> Masking {
    let edge = kept_from(messages, keep);
    let mut past = recall(messages, memory, economy, now);
    // What a summary stands for needs no mask, and where it is new nothing behind it is in the cache any more.
    past.frontier = past.frontier.max(folded.map_or(0, |folded| folded.upto));
    past.is_cold |= folded.map(|folded| folded.covers) != past.fold;
    if past.seen == messages.len() {
        // The same request again: a retry gets what the first try got.
        return Masking { frontier: past.frontier, cause: None, tally: past.tally, edge };
    }
    let edge = edge.max(past.frontier);
    let Some(first) = (past.frontier..edge).find(|&index| messages[index].saving() > Tokens::ZERO) else {
        return Masking { frontier: past.frontier, cause: None, tally: past.tally, edge };
    };
    let newly = &messages[first..edge];
    let saving: Tokens = newly.iter().map(Message::saving).sum();
    let tally = past.tally + saving.0 as f64 * economy.cached;
    let cause = match pace {
        Pace::EveryTurn => Some(Cause::EveryTurn),
        Pace::Batch(size) => {
            let left = newly.iter().filter(|message| message.saving() > Tokens::ZERO).count();
            (left >= usize::try_from(size.get()).unwrap_or(usize::MAX)).then_some(Cause::Batch)
        }
        Pace::BreakEven if past.is_cold => Some(Cause::Free),
        Pace::BreakEven => {
            let price = price(messages, first, edge, past.seen) * economy.miss();
            (tally >= price).then_some(if price > 0.0 { Cause::BreakEven } else { Cause::Free })
        }
    };
    match cause {
        Some(_) => Masking { frontier: edge, cause, tally: 0.0, edge },
        None => Masking { frontier: past.frontier, cause, tally, edge },
    }
}

/// The tokens that the provider has in its cache now and would have to read again: those behind the first newly
/// masked observation, as they would be forwarded. What is new in this request is read for the first time in any case.
fn price(messages: &[Message], first: usize, edge: usize, seen: usize) -> f64 {
    let behind = messages.iter().enumerate().take(seen).skip(first);
    let again: Tokens = behind
        .map(
            |(index, message)| {
                if index < edge { message.tokens.saturating_sub(message.saving()) } else { message.tokens }
            },
        )
        .sum();
    again.0 as f64
}

fn recall(messages: &[Message], memory: &Memory, economy: &Economy, now: Timestamp) -> Past {
    let Some((index, waypoint)) = memory.last_on(messages) else {
        // Nothing is known to be in the cache, so there is nothing to lose.
        return Past { frontier: 0, seen: 0, tally: 0.0, is_cold: true, fold: None };
    };
    let edge = waypoint.frontier.and_then(|edge| {
        // The waypoint is on the way of these messages, and so is everything before it.
        messages[..=index]
            .iter()
            .rposition(|message| !message.role.is_instruction() && message.digest == edge)
    });
    // Instructions at the very end do not take part in the digest; they neither make a request a new one.
    let rest_is_instructions = messages[index + 1..].iter().all(|message| message.role.is_instruction());
    Past {
        frontier: edge.map_or(0, |edge| edge + 1),
        seen: if rest_is_instructions { messages.len() } else { index + 1 },
        tally: waypoint.tally,
        fold: waypoint.fold,
        is_cold: now.0.saturating_sub(waypoint.at.0) > economy.cache_life,
    }
}
