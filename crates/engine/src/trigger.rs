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

impl Since<'_> {
    /// Whether the messages that are sent raw have reached a limit. The open turn is not part of the history yet.
    pub(crate) fn exceeds(&self, limit: Option<NonZeroU32>) -> bool {
        let raw = || dialogue(&self.covered[..open_turn_from(self.covered)]).count();
        limit.is_some_and(|limit| reaches(raw(), limit))
    }
}

/// Returns the first condition that holds, in this order: tokens, raw messages, turns since the last summary was made.
pub(crate) fn fired(trigger: &Trigger, since: &Since<'_>, after: Tokens, budget: &Budget) -> Option<Cause> {
    let by_ratio = trigger.budget_ratio.zip(budget.input);
    let by_ratio = by_ratio.is_some_and(|(ratio, input)| after.0 as f64 >= ratio * input.0 as f64);
    if by_ratio || trigger.tokens.is_some_and(|limit| after >= limit) {
        return Some(Cause::Budget);
    }
    if since.exceeds(trigger.messages) {
        return Some(Cause::Messages);
    }
    let user_turns = since.made.iter().filter(|message| message.is_user_turn()).count();
    let by_turns = trigger.turns.is_some_and(|limit| reaches(count_turns(since.made), limit))
        || trigger.user_turns.is_some_and(|limit| reaches(user_turns, limit));
    by_turns.then_some(Cause::Turns)
}

fn reaches(count: usize, limit: NonZeroU32) -> bool {
    u64::try_from(count).is_ok_and(|count| count >= limit.get().into())
}

impl Trigger {
    /// Returns the number of tokens at which one of its token conditions holds, or `None` if it has none.
    #[must_use]
    pub fn token_threshold(&self, budget: &Budget) -> Option<Tokens> {
        let by_ratio = self.budget_ratio.zip(budget.input);
        let by_ratio = by_ratio.map(|(ratio, input)| Tokens((ratio * input.0 as f64).ceil() as u64));
        by_ratio.into_iter().chain(self.tokens).min()
    }
}
