//! When a condition of the policy holds.

use crate::turns::{open_from, turns_in};
use crate::{Budget, Cause, Message, Tokens, Trigger};
use std::num::NonZeroU32;

/// What came since the last summary.
pub(crate) struct Since<'a> {
    /// Behind what it covers: what is sent raw.
    pub(crate) summarized: &'a [Message],
    /// Behind the request that it was made for.
    pub(crate) made: &'a [Message],
}

/// The first condition that holds: of tokens, of messages that are sent raw, of turns since the last summary was made.
pub(crate) fn fires(trigger: &Trigger, since: &Since<'_>, after: Tokens, budget: &Budget) -> Option<Cause> {
    let reaches =
        |count: usize, limit: NonZeroU32| u64::try_from(count).is_ok_and(|count| count >= limit.get().into());
    let share = trigger.budget_ratio.is_some_and(|ratio| after.0 as f64 >= ratio * budget.input.0 as f64);
    if share || trigger.tokens.is_some_and(|limit| after >= limit) {
        return Some(Cause::Budget);
    }
    // What the user has just said is not part of the history yet.
    let history = &since.summarized[..open_from(since.summarized)];
    let talk = history.iter().filter(|message| !message.role.is_instruction()).count();
    if trigger.messages.is_some_and(|limit| reaches(talk, limit)) {
        return Some(Cause::Messages);
    }
    let users = since.made.iter().filter(|message| message.is_user_turn()).count();
    let by_turns = trigger.turns.is_some_and(|limit| reaches(turns_in(since.made), limit))
        || trigger.user_turns.is_some_and(|limit| reaches(users, limit));
    by_turns.then_some(Cause::Turns)
}

/// How many tokens a request may use before a condition on them holds; none where there is no such condition.
pub(crate) fn level(trigger: &Trigger, budget: &Budget) -> Option<Tokens> {
    let share = trigger.budget_ratio.map(|ratio| Tokens((ratio * budget.input.0 as f64).ceil() as u64));
    share.into_iter().chain(trigger.tokens).min()
}
