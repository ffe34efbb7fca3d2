//! Evaluates a [`Trigger`]'s conditions.

use crate::turns::{count_turns, dialogue, open_turn_from};
use crate::{Budget, Cause, Message, Tokens, Trigger};
use std::num::NonZeroU32;

/// The messages that a trigger counts.
pub(crate) struct Since<'a> {
    /// Those after the last message that the summary covers: the ones that are sent raw.
    pub(crate) covered: &'a [Message],
    /// Those after the request that the summary was made for.
    pub(crate) made: &'a [Message],
}

/// Returns the first condition that holds, in this order: tokens, raw messages, turns since the last summary was made.
pub(crate) fn fired(trigger: &Trigger, since: &Since<'_>, after: Tokens, budget: &Budget) -> Option<Cause> {
    let reaches =
        |count: usize, limit: NonZeroU32| u64::try_from(count).is_ok_and(|count| count >= limit.get().into());
    let by_ratio = trigger.budget_ratio.zip(budget.input);
    let by_ratio = by_ratio.is_some_and(|(ratio, input)| after.0 as f64 >= ratio * input.0 as f64);
    if by_ratio || trigger.tokens.is_some_and(|limit| after >= limit) {
        return Some(Cause::Budget);
    }
    // The open turn is not part of the history yet.
    let raw = dialogue(&since.covered[..open_turn_from(since.covered)]).count();
    if trigger.messages.is_some_and(|limit| reaches(raw, limit)) {
        return Some(Cause::Messages);
    }
    let user_turns = since.made.iter().filter(|message| message.is_user_turn()).count();
    let by_turns = trigger.turns.is_some_and(|limit| reaches(count_turns(since.made), limit))
        || trigger.user_turns.is_some_and(|limit| reaches(user_turns, limit));
    by_turns.then_some(Cause::Turns)
}

/// Returns the number of tokens at which one of the trigger's token conditions holds, or `None` if it has none.
pub(crate) fn token_threshold(trigger: &Trigger, budget: &Budget) -> Option<Tokens> {
    let by_ratio = trigger.budget_ratio.zip(budget.input);
    let by_ratio = by_ratio.map(|(ratio, input)| Tokens((ratio * input.0 as f64).ceil() as u64));
    by_ratio.into_iter().chain(trigger.tokens).min()
}
