//! The fold pass: which old messages a summary stands for, and when there should be a new one.

use crate::turns::{kept_from, request_at, turns_in, unresolved_from};
use crate::{Budget, Cause, Digest, Keep, Memory, Message, Policy, Strategy, Tokens, Trigger};
use std::num::NonZeroU32;
use std::ops::Range;

/// A summary that was made of the beginning of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fold {
    /// The digest of the conversation up to the last message that it covers.
    pub covers: Digest,
    /// What the message costs that holds it.
    pub tokens: Tokens,
    /// Whether the last thing the user said before its end stays beside it, because it was the last of all when the summary
    /// was made.
    pub keeps_request: bool,
    /// How many messages the conversation had when it was made, instructions not counted. Turns are counted from there.
    pub seen: usize,
}

/// When to fold, and what to leave alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FoldPolicy {
    pub when: Trigger,
    pub keep: Keep,
    /// When folding can no longer wait for the next request, and what is left alone then.
    pub prune_when: Trigger,
    pub prune_keep: Keep,
    /// Whether the first thing the user said stays verbatim for ever.
    pub pins_task: bool,
}

impl Default for FoldPolicy {
    fn default() -> FoldPolicy {
        let some = |count| NonZeroU32::new(count);
        let four = Keep::Turns(some(4).unwrap_or(NonZeroU32::MIN));
        FoldPolicy {
            when: Trigger { budget_ratio: Some(0.70), user_turns: some(8), ..Trigger::default() },
            keep: four,
            prune_when: Trigger { budget_ratio: Some(0.90), ..Trigger::default() },
            prune_keep: four,
            pins_task: false,
        }
    }
}

/// A summary as it stands in one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folded {
    pub covers: Digest,
    /// The messages that it stands for end here. Those of them that are not in `removed` stay beside it.
    pub upto: usize,
    /// The messages that go, in order.
    pub removed: Vec<usize>,
    pub tokens: Tokens,
    /// The conversation went on behind this message after the summary was made.
    pub made_at: usize,
}

/// What would be better to summarize.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoldJob {
    /// The messages that the new summary takes in, beside what `previous` covers.
    pub messages: Range<usize>,
    /// The digest of the conversation up to its last message.
    pub covers: Digest,
    /// The summary that it rewrites.
    pub previous: Option<Digest>,
    pub keeps_request: bool,
    /// What the messages cost that go for it, as they would be sent. A summary that costs as much is of no use.
    pub worth: Tokens,
    /// How many messages the conversation has, instructions not counted.
    pub seen: usize,
    pub cause: Cause,
    pub urgency: Urgency,
}

/// Whether a request should wait for a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// It goes out as it is; the next one will be shorter.
    Later,
    /// It hardly fits, or not at all.
    Now,
}

/// The summary that reaches furthest and may stand in this request. One that would make it longer may not.
pub(crate) fn folded(messages: &[Message], memory: &Memory, policy: &Policy) -> Option<Folded> {
    let usable = memory.folds().iter().filter_map(|fold| place(messages, fold, policy));
    usable.max_by_key(|folded| folded.upto)
}

/// The summary that an earlier request of the same messages had.
pub(crate) fn folded_as_before(
    messages: &[Message],
    memory: &Memory,
    policy: &Policy,
    covers: Option<Digest>,
) -> Option<Folded> {
    let fold = memory.folds().iter().find(|fold| Some(fold.covers) == covers)?;
    place(messages, fold, policy)
}

fn place(messages: &[Message], fold: &Fold, policy: &Policy) -> Option<Folded> {
    let last = messages
        .iter()
        .rposition(|message| !message.role.is_instruction() && message.digest == fold.covers)?;
    let upto = last + 1;
    // A client that has taken back its last messages may have taken back what the summary was made for.
    if upto > unresolved_from(messages) || messages.get(upto).is_some_and(|message| message.joined) {
        return None;
    }
    let removed = removed(messages, upto, fold.keeps_request, policy.fold.pins_task);
    let covered = worth(messages, &removed, policy.strategy);
    let made_at = behind(messages, fold.seen).max(upto);
    (fold.tokens < covered).then_some(Folded {
        covers: fold.covers,
        upto,
        removed,
        tokens: fold.tokens,
        made_at,
    })
}

/// What messages cost that a summary would stand for. Where they could be masked instead, that is what it has to be better than.
fn worth(messages: &[Message], removed: &[usize], strategy: Strategy) -> Tokens {
    let masks = strategy == Strategy::Hybrid;
    let cost = |message: &Message| {
        if masks { message.tokens.saturating_sub(message.saving()) } else { message.tokens }
    };
    removed.iter().map(|&index| cost(&messages[index])).sum()
}

/// The index behind so many messages that are no instructions.
fn behind(messages: &[Message], seen: usize) -> usize {
    let talk = messages.iter().enumerate().filter(|(_, message)| !message.role.is_instruction());
    seen.checked_sub(1)
        .and_then(|last| talk.map(|(index, _)| index).nth(last))
        .map_or(messages.len().min(seen), |at| at + 1)
}

/// The messages before `upto` that a summary stands for. Instructions stay; so does what the user last asked for, where nothing
/// came after it.
fn removed(messages: &[Message], upto: usize, keeps_request: bool, pins_task: bool) -> Vec<usize> {
    let is_last = !messages[upto..].iter().any(Message::is_user_turn);
    let request = (keeps_request || is_last).then(|| request_at(&messages[..upto])).flatten();
    let task = pins_task.then(|| messages.iter().position(Message::is_user_turn)).flatten();
    let goes = |index: &usize| {
        !messages[*index].role.is_instruction() && Some(*index) != request && Some(*index) != task
    };
    (0..upto).filter(goes).collect()
}

/// What should be folded next, if anything should and anything can. `after` is what the request uses as planned so far.
pub(crate) fn wanted(
    messages: &[Message],
    memory: &Memory,
    folded: Option<&Folded>,
    after: Tokens,
    budget: &Budget,
    policy: &Policy,
) -> Option<FoldJob> {
    let from = folded.map_or(0, |folded| folded.upto);
    let over = after > budget.input;
    let made_at = folded.map_or(0, |folded| folded.made_at);
    let since = Since { summarized: &messages[from..], made: &messages[made_at..] };
    let pruned = fires(&policy.fold.prune_when, &since, after, budget);
    let (cause, urgency) = match fires(&policy.fold.when, &since, after, budget) {
        _ if over || pruned.is_some() => (if over { Cause::Budget } else { Cause::Prune }, Urgency::Now),
        Some(cause) => (cause, Urgency::Later),
        None => return None,
    };
    let mut upto = legal(messages, kept_from(messages, policy.fold.keep));
    if urgency == Urgency::Now {
        upto = upto.max(legal(messages, kept_from(messages, policy.fold.prune_keep)));
    }
    if over && upto <= from {
        // Rather than refusing, everything but the unresolved end.
        upto = legal(messages, unresolved_from(messages));
    }
    let last = (from..upto).rev().find(|&index| !messages[index].role.is_instruction())?;
    let keeps_request = !messages[upto..].iter().any(Message::is_user_turn);
    let before = folded.map_or(0, |folded| folded.removed.len());
    // Nothing but what stays anyway would be folded.
    let removed = removed(messages, upto, keeps_request, policy.fold.pins_task);
    if removed.len() <= before {
        return None;
    }
    // There is a summary of just that, and it is not worth its place: another would not be either.
    let covers = messages[last].digest;
    if memory.folds().iter().any(|fold| fold.covers == covers) {
        return None;
    }
    Some(FoldJob {
        messages: from..last + 1,
        covers,
        previous: folded.map(|folded| folded.covers),
        keeps_request,
        worth: worth(messages, &removed, policy.strategy),
        seen: messages.iter().filter(|message| !message.role.is_instruction()).count(),
        cause,
        urgency,
    })
}

/// The last place before or at `at` where a conversation can be cut: no call is parted from its results.
pub(crate) fn legal(messages: &[Message], at: usize) -> usize {
    let mut at = at.min(unresolved_from(messages));
    while at > 0 && messages[at].joined {
        at -= 1;
    }
    at
}

/// What came since the last summary.
struct Since<'a> {
    /// Behind what it covers: what is sent raw.
    summarized: &'a [Message],
    /// Behind the request that it was made for.
    made: &'a [Message],
}

/// The first condition that holds: of tokens, of messages that are sent raw, of turns since the last summary was made.
fn fires(trigger: &Trigger, since: &Since<'_>, after: Tokens, budget: &Budget) -> Option<Cause> {
    let reaches =
        |count: usize, limit: NonZeroU32| u64::try_from(count).is_ok_and(|count| count >= limit.get().into());
    let share = trigger.budget_ratio.is_some_and(|ratio| after.0 as f64 >= ratio * budget.input.0 as f64);
    if share || trigger.tokens.is_some_and(|limit| after >= limit) {
        return Some(Cause::Budget);
    }
    let talk = since.summarized.iter().filter(|message| !message.role.is_instruction()).count();
    if trigger.messages.is_some_and(|limit| reaches(talk, limit)) {
        return Some(Cause::Messages);
    }
    let users = since.made.iter().filter(|message| message.is_user_turn()).count();
    let by_turns = trigger.turns.is_some_and(|limit| reaches(turns_in(since.made), limit))
        || trigger.user_turns.is_some_and(|limit| reaches(users, limit));
    by_turns.then_some(Cause::Turns)
}
