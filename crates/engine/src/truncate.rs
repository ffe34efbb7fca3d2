use crate::binding::invalidates;
use crate::edits::{Edits, Inputs};
use crate::prune::units;
use crate::role_order::Bridge;
use crate::turns::{last_cut_before, last_user_turn};
use crate::{Conversation, Decision, Memory, Message, Policy, RoleOrder, Timestamp, Tokens};
use std::ops::Range;

/// Decides for a request whose summary is due but could not be made.
///
/// Drops the oldest messages until the request fits, and nothing if it fits already: first those that the present summary covers
/// although they still stand beside it, then those that no summary covers. A history over its block limit is cut to that limit.
/// Instructions, the first and the last user turn, what the summary names and the unresolved tail stay; the first user turn goes last
/// of all, and only for a block limit.
#[must_use]
pub fn truncate(
    conversation: &Conversation<'_>,
    memory: &Memory,
    policy: &Policy,
    now: Timestamp,
) -> Decision {
    let policy = &policy.within(conversation);
    let inputs = Inputs { conversation, memory, policy, now };
    let mut edits = Edits::plan(&inputs);
    let upto = edits.folded_upto();
    let mut gone = dropped(&inputs, &edits);
    if invalidates(conversation.messages, &gone, policy.bound) {
        gone.clear();
    }
    let (covered, dropped) = gone.into_iter().partition(|index| *index < upto);
    edits.remove_covered(covered);
    edits.into_decision(&inputs, dropped)
}

/// Returns the indices of the messages to drop, in order.
fn dropped(inputs: &Inputs<'_>, edits: &Edits) -> Vec<usize> {
    let Inputs { conversation, policy, .. } = *inputs;
    let Conversation { messages, budget, marker, .. } = *conversation;
    let used = edits.used(conversation, &[]);
    let input = budget.input.unwrap_or(Tokens::MAX);
    let target = stepped_target(used, input);
    let mut excess = policy.blocks.excess(messages, |index| edits.keeps(*index, &[]), edits.folded.as_ref());
    let recent = policy.blocks.recent_from(messages);
    let (mut left, mut has_marker) = (used, false);
    let mut gone = Vec::new();
    // As far as the first cut that fits the budget, for want of one that meets the target.
    let mut fallback = None;
    let units = droppable(inputs, edits);
    for unit in &units {
        let fits = left <= target || used <= input;
        if (fits && excess == Tokens::ZERO) || (left <= input && unit.iter().any(|index| *index >= recent)) {
            break;
        }
        if !has_marker && unit.iter().any(|index| *index >= edits.folded_upto()) {
            (left, has_marker) = (left + marker, true);
        }
        for &index in unit {
            left = left.saturating_sub(edits.cost(index, &messages[index]));
            excess = excess.saturating_sub(policy.blocks.history_size(messages, index));
        }
        gone.extend(unit);
        if left <= input && excess == Tokens::ZERO {
            fallback.get_or_insert(gone.len());
        }
    }
    if left > target && used > input {
        gone.truncate(fallback.unwrap_or(if left <= input { gone.len() } else { 0 }));
    }
    in_order(inputs, edits, &units, gone)
}

/// Returns those of the messages `gone` that can go without breaking the order of roles. If the others do not fit then, more units go.
/// A limit of the history matters more than the order.
fn in_order(inputs: &Inputs<'_>, edits: &Edits, units: &[Vec<usize>], mut gone: Vec<usize>) -> Vec<usize> {
    let Inputs { conversation, policy, .. } = *inputs;
    let Conversation { budget, .. } = *conversation;
    let is_kept = match policy.order {
        RoleOrder::Any => false,
        RoleOrder::Strict => !policy.blocks.is_bounded(),
        // Where they stood otherwise, the provider would refuse the request.
        RoleOrder::StrictWithInstructions => {
            let first = conversation.messages.iter().position(|message| !message.role.is_instruction());
            let inner = first.map_or(&[][..], |first| &conversation.messages[first..]);
            !policy.blocks.is_bounded() || inner.iter().any(|message| message.role.is_instruction())
        }
    };
    gone.sort_unstable();
    let is_new = |unit: &&Vec<usize>| !unit.iter().any(|index| gone.binary_search(index).is_ok());
    let more: Vec<&Vec<usize>> = units.iter().filter(is_new).take(MORE).collect();
    let mut more = more.into_iter();
    loop {
        if !is_kept || gone.is_empty() {
            return gone;
        }
        let dropped = removable(inputs, edits, &gone);
        if edits.used(conversation, &dropped) <= budget.input.unwrap_or(Tokens::MAX) {
            return dropped;
        }
        let Some(unit) = more.next() else { return dropped };
        gone.extend(unit);
        gone.sort_unstable();
    }
}

/// The marker stands where messages are missing that no summary covers.
fn removable(inputs: &Inputs<'_>, edits: &Edits, gone: &[usize]) -> Vec<usize> {
    let (messages, order) = (inputs.conversation.messages, inputs.policy.order);
    let folded = edits.folded.as_ref().map_or(&[][..], |folded| &folded.removed);
    let both = |one: &[usize], other: &[usize]| {
        let mut both = [one, other].concat();
        both.sort_unstable();
        both
    };
    let (covered, raw) = gone.split_at(gone.partition_point(|index| *index < edits.folded_upto()));
    let covered = order.removable(messages, covered.to_vec(), &both(folded, raw), Bridge::Beginning);
    let raw = order.removable(messages, raw.to_vec(), &both(folded, &covered), Bridge::FirstGap);
    both(&covered, &raw)
}

/// How many more units may go.
const MORE: usize = 16;

/// Returns the messages that can be dropped, in the order in which they go. Those of one list go together.
fn droppable(inputs: &Inputs<'_>, edits: &Edits) -> Vec<Vec<usize>> {
    let messages = inputs.conversation.messages;
    let (task, request) = (messages.iter().position(Message::is_user_turn), last_user_turn(messages));
    let list = |unit: &Range<usize>, spared: Option<usize>| -> Vec<usize> {
        let stays = |index: usize| {
            [request, spared].contains(&Some(index))
                || edits.folded.as_ref().is_some_and(|folded| folded.anchored.contains(&index))
        };
        if unit.clone().any(stays) {
            return Vec::new();
        }
        let goes = |index: &usize| !messages[*index].role.is_instruction() && edits.keeps(*index, &[]);
        unit.clone().filter(goes).collect()
    };
    let end = last_cut_before(messages, messages.len());
    let units: Vec<Range<usize>> =
        units(&messages[..end], 0).into_iter().filter(|unit| unit.end <= end).collect();
    let upto = edits.folded_upto();
    let (covered, raw): (Vec<_>, Vec<_>) = units.iter().partition(|unit| unit.start < upto);
    // The task and what stands before it stay.
    let raw = raw.into_iter().filter(|unit| task.is_none_or(|task| unit.start > task));
    let mut lists: Vec<Vec<usize>> = covered.into_iter().chain(raw).map(|unit| list(unit, task)).collect();
    if inputs.policy.blocks.is_bounded() {
        lists.extend(
            units
                .iter()
                .find(|unit| task.is_some_and(|task| unit.contains(&task)))
                .map(|unit| list(unit, None)),
        );
    }
    lists.retain(|list| !list.is_empty());
    lists
}

/// Returns the size to truncate to: whole quarters of the budget below `used`, as many as it takes to fit.
///
/// Steps keep the cut in the same place for some turns, and with it the prefix that the provider has cached.
fn stepped_target(used: Tokens, budget: Tokens) -> Tokens {
    let step = (budget.0 / 4).max(1);
    let excess = used.saturating_sub(budget).0;
    used.saturating_sub(Tokens(excess.div_ceil(step).saturating_mul(step)))
}
