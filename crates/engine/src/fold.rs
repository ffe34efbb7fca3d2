//! Summaries that exist already: which of them a request uses, and which messages it replaces.

use crate::binding::invalidates;
use crate::role_order::Bridge;
use crate::turns::{dialogue, last_user_turn, position_of, unresolved_from, with_calls};
use crate::{Digest, Memory, Message, Policy, Strategy, Tokens};

/// A summary of a prefix of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fold {
    /// The digest at the last message that the summary covers.
    pub covers: Digest,
    /// The cost of the summary message.
    pub tokens: Tokens,
    /// The length of the summary's text, in the unit of the block limits.
    pub size: Tokens,
    /// Whether the last user turn that the summary covers stays next to it, because it was the last user turn of all when the
    /// summary was made.
    pub keeps_request: bool,
    /// The number of messages in the conversation when the summary was made, not counting instructions. Turn triggers count
    /// from there.
    pub seen: usize,
    /// The covered messages that stay next to the summary, in order. Positions do not count instructions, so they survive a
    /// changed system prompt.
    pub kept: Vec<usize>,
    /// Those of them that an entry of the summary names. They are never dropped.
    pub anchored: Vec<usize>,
}

/// A summary applied to one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folded {
    /// The digest at the last message that the summary covers.
    pub covers: Digest,
    /// The summary covers the messages before this index. Those that are not in `removed` stay next to it.
    pub upto: usize,
    /// The indices of the messages that the summary replaces, in order.
    pub removed: Vec<usize>,
    /// The indices of the covered messages that are never dropped.
    pub anchored: Vec<usize>,
    /// The cost of the summary message.
    pub tokens: Tokens,
    /// The length of the summary's text, in the unit of the block limits.
    pub size: Tokens,
    /// The index of the first message that came after the request that the summary was made for.
    pub made_at: usize,
}

/// Returns the usable summary that covers the most messages. The one that is in use stays where another would invalidate reasoning.
pub(crate) fn longest_fold(
    messages: &[Message],
    memory: &Memory,
    policy: &Policy,
    in_use: Option<Digest>,
) -> Option<Folded> {
    let may_stand = |folded: &Folded| {
        Some(folded.covers) == in_use || !invalidates(messages, &folded.removed, policy.bound)
    };
    let usable = memory.folds().iter().filter_map(|fold| apply(messages, fold, policy)).filter(may_stand);
    usable.max_by_key(|folded| folded.upto)
}

/// Returns the summary that covers exactly `covers`, if it is usable.
pub(crate) fn same_fold(
    messages: &[Message],
    memory: &Memory,
    policy: &Policy,
    covers: Option<Digest>,
) -> Option<Folded> {
    let fold = memory.folds().iter().find(|fold| Some(fold.covers) == covers)?;
    apply(messages, fold, policy)
}

/// Applies a summary to a request. Returns `None` if the summary belongs to another branch, reaches into the unresolved tail,
/// or would not shrink the request.
fn apply(messages: &[Message], fold: &Fold, policy: &Policy) -> Option<Folded> {
    let upto = position_of(messages, fold.covers)? + 1;
    // A client that removed its last messages may have made part of the covered prefix the unresolved tail.
    if upto > unresolved_from(messages) || messages.get(upto).is_some_and(|message| message.joined) {
        return None;
    }
    let kept = if fold.kept.is_empty() { Vec::new() } else { indices_of(messages, &fold.kept) };
    let replaceable = replaceable(messages, upto, fold.keeps_request, &kept, policy);
    let removed = policy.order.removable(messages, replaceable, &[], Bridge::Beginning);
    let saved = cost_without_summary(messages, &removed, policy);
    (fold.tokens < saved || policy.limits_history()).then(|| Folded {
        covers: fold.covers,
        upto,
        removed,
        anchored: indices_of(messages, &fold.anchored),
        tokens: fold.tokens,
        size: fold.size,
        made_at: index_after(messages, fold.seen).max(upto),
    })
}

/// Returns the messages before `upto` that a summary can replace. Instructions stay, and so do those in `kept`, the last user turn, if
/// nothing came after it, and the first one, if `pin_task`. A user turn that also answers calls stays with them.
pub(crate) fn replaceable(
    messages: &[Message],
    upto: usize,
    keeps_request: bool,
    kept: &[usize],
    policy: &Policy,
) -> Vec<usize> {
    let holds_last_user_turn = !messages[upto..].iter().any(Message::is_user_turn);
    let request =
        (keeps_request || holds_last_user_turn).then(|| last_user_turn(&messages[..upto])).flatten();
    let task = policy.fold.pin_task.then(|| messages.iter().position(Message::is_user_turn)).flatten();
    let [request, task] = [request, task].map(|kept| kept.map_or(0..0, |kept| with_calls(messages, kept)));
    let goes = |index: &usize| {
        let stays = request.contains(index) || task.contains(index) || kept.binary_search(index).is_ok();
        !messages[*index].role.is_instruction() && !stays
    };
    (0..upto).filter(goes).collect()
}

/// Returns what these messages would cost without a summary: as they would be masked or trimmed, so that a summary has to be shorter
/// than their placeholders and excerpts.
pub(crate) fn cost_without_summary(messages: &[Message], indices: &[usize], policy: &Policy) -> Tokens {
    let cost = |message: &Message| match (policy.strategy, policy.trim) {
        (Strategy::Hybrid, _) => message.masked_cost(),
        (_, Some(_)) => message.trimmed_cost(),
        (_, None) => message.tokens,
    };
    indices.iter().map(|&index| cost(&messages[index])).sum()
}

/// Returns the index after the first `count` messages, not counting instructions.
fn index_after(messages: &[Message], count: usize) -> usize {
    count
        .checked_sub(1)
        .and_then(|last| dialogue(messages).nth(last))
        .map_or(messages.len().min(count), |(index, _)| index + 1)
}

/// Converts positions that do not count instructions into indices.
fn indices_of(messages: &[Message], positions: &[usize]) -> Vec<usize> {
    let dialogue = dialogue(messages).map(|(index, _)| index).enumerate();
    dialogue
        .filter(|(position, _)| positions.binary_search(position).is_ok())
        .map(|(_, index)| index)
        .collect()
}
