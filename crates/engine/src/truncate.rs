use crate::edits::{Edits, Inputs};
use crate::turns::{last_cut_before, last_user_turn};
use crate::{Conversation, Decision, Memory, Message, Policy, Timestamp, Tokens};

/// Decides for a request whose summary is due but could not be made.
///
/// Drops the oldest messages until the request fits, and nothing if it fits already. A history over its block limit is cut as
/// far as it would have been folded. Instructions, the first and the last user turn and the unresolved tail stay.
#[must_use]
pub fn truncate(
    conversation: &Conversation<'_>,
    memory: &Memory,
    policy: &Policy,
    now: Timestamp,
) -> Decision {
    let inputs = Inputs { conversation, memory, policy, now };
    let edits = Edits::plan(&inputs);
    let dropped = dropped(&inputs, &edits);
    edits.into_decision(&inputs, dropped)
}

/// Returns the indices of the messages to drop, in order.
fn dropped(inputs: &Inputs<'_>, edits: &Edits) -> Vec<usize> {
    let Inputs { conversation, policy, .. } = *inputs;
    let Conversation { messages, budget, marker, .. } = *conversation;
    let request = last_user_turn(messages);
    let is_droppable = |index: &usize| {
        let stays = messages[*index].role.is_instruction() || Some(*index) == request;
        !stays && edits.keeps(*index, &[])
    };
    // The task and the instructions before it stay.
    let after_task = messages.iter().position(Message::is_user_turn).map_or(0, |task| task + 1);
    let from = edits.folded_upto().max(after_task);
    let block_edge = policy.blocks.edge(messages, edits.folded.as_ref(), from).unwrap_or(from);
    let used = edits.used(conversation, &[]);
    let input = budget.input.unwrap_or(Tokens::MAX);
    let target = stepped_target(used, input);
    let mut left = used + marker;
    // The first cut that fits the budget, for want of one that meets the target.
    let mut fallback = None;
    for index in from..last_cut_before(messages, messages.len()) {
        if used <= input && index >= block_edge {
            break;
        }
        if is_droppable(&index) {
            left = left.saturating_sub(edits.cost(index, &messages[index]));
        }
        let cut = index + 1;
        if messages[cut].joined || cut < block_edge {
            continue;
        }
        if left <= target {
            return (from..cut).filter(is_droppable).collect();
        }
        if left <= input {
            fallback.get_or_insert(cut);
        }
    }
    fallback.map_or_else(Vec::new, |cut| (from..cut).filter(is_droppable).collect())
}

/// Returns the size to truncate to: whole quarters of the budget below `used`, as many as it takes to fit.
///
/// Steps keep the cut in the same place for some turns, and with it the prefix that the provider has cached.
fn stepped_target(used: Tokens, budget: Tokens) -> Tokens {
    let step = (budget.0 / 4).max(1);
    let excess = used.saturating_sub(budget).0;
    used.saturating_sub(Tokens(excess.div_ceil(step).saturating_mul(step)))
}
