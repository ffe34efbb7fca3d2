//! The window pass: keeps a head and a tail of the history, and drops the middle. A marker takes its place.
//!
//! The head and the tail each get a share of the room that the history has, in messages of average length. If that does not
//! fit, they shrink by two messages at a time down to their minimum. Once cut, the same middle stays dropped until the request
//! no longer fits, so that the provider's prompt cache keeps hitting. Then the head stays as it is, and the tail gives up a quarter of
//! the room: a tail that fits exactly would have to be cut again at the next request.

use crate::binding::invalidates;
use crate::role_order::Bridge;
use crate::turns::{dialogue, last_user_turn, open_turn_from, position_of, unresolved_from, with_calls};
use crate::{Conversation, Digest, Kind, Memory, Message, Policy, RoleOrder, Tokens};

/// How much of the beginning and the end of the history stays if not all of it fits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowPolicy {
    /// The head's share of the room for the history.
    pub head_ratio: f64,
    /// The tail's share. What the two leave is for the marker.
    pub tail_ratio: f64,
    /// The maximum number of messages in the head.
    pub head_max: usize,
    pub tail_max: usize,
    /// The minimum number of messages in the head, even if the request does not fit with them.
    pub head_min: usize,
    pub tail_min: usize,
}

impl Default for WindowPolicy {
    fn default() -> WindowPolicy {
        WindowPolicy {
            head_ratio: 0.25,
            tail_ratio: 0.70,
            head_max: 20,
            tail_max: 20,
            head_min: 3,
            tail_min: 5,
        }
    }
}

/// The run of messages between head and tail that was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The digest at the last message before it; `None` if the gap starts at the beginning.
    pub behind: Option<Digest>,
    /// The digest at its last message.
    pub last: Digest,
}

/// The figures of one window, so that the arithmetic can be shown to a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowFigures {
    /// The tokens of everything but the history: instructions, tools, pinned notes, the open turn.
    pub scaffold: Tokens,
    /// The tokens that are left for the history.
    pub room: Tokens,
    /// The tokens of the whole history.
    pub history: Tokens,
    /// How the history was cut; `None` if this request made no new cut.
    pub cut: Option<Cut>,
}

/// The sizes of head and tail. Pairs are `(head, tail)`, in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The average length of a message.
    pub average: Tokens,
    /// The head's share of the room.
    pub head_room: Tokens,
    /// The tail's share of the room.
    pub tail_room: Tokens,
    /// The sizes that the shares hold.
    pub planned: (usize, usize),
    /// The sizes after shrinking until the request fits.
    pub kept: (usize, usize),
}

/// The result of the window pass.
#[derive(Debug, PartialEq)]
pub(crate) struct Windowed {
    /// The indices of the dropped messages, in order.
    pub(crate) dropped: Vec<usize>,
    pub(crate) gap: Option<Gap>,
    pub(crate) figures: WindowFigures,
}

pub(crate) fn window(conversation: &Conversation<'_>, memory: &Memory, policy: &Policy) -> Windowed {
    let Conversation { messages, budget, marker, .. } = *conversation;
    let Policy { window: ref policy, order, bound, .. } = *policy;
    let droppable = droppable(messages);
    let cost = |indices: &[usize]| indices.iter().map(|&index| messages[index].tokens).sum::<Tokens>();
    let history = cost(&droppable);
    let all: Tokens = messages.iter().map(|message| message.tokens).sum();
    let scaffold = all.saturating_sub(history) + conversation.fixed + conversation.pinned;
    let room = budget.input.unwrap_or(Tokens::MAX).saturating_sub(scaffold);
    let fits_into = |dropped: &[usize], room: Tokens| {
        let marker = if dropped.is_empty() { Tokens::ZERO } else { marker };
        history.saturating_sub(cost(dropped)) + marker <= room
    };
    let fits = |dropped: &[usize]| fits_into(dropped, room);
    let earlier = memory.recall(messages, conversation.cache).and_then(|recalled| recalled.waypoint.gap);
    // If everything fits now, for example with a larger model, nothing is dropped any more.
    let earlier = earlier.filter(|_| bound > 0 || !fits(&[]));
    let repeated = earlier.map_or_else(Vec::new, |gap| repeat(messages, &droppable, gap, order));
    let as_before = |repeated: Vec<usize>| {
        let figures = WindowFigures { scaffold, room, history, cut: None };
        Windowed { gap: gap(messages, &repeated), dropped: repeated, figures }
    };
    if fits(&repeated) {
        return as_before(repeated);
    }
    let planned = planned(droppable.len(), history, room, policy);
    let min = (policy.head_min.min(droppable.len()), policy.tail_min.min(droppable.len()));
    let with_slack = |dropped: &[usize]| fits_into(dropped, room.saturating_sub(Tokens(room.0 / 4)));
    let same_head = repeated.first().and_then(|first| droppable.iter().position(|index| index == first));
    let shorter = same_head.and_then(|head| {
        let tails = shorter_tails(planned.1, min.1).map(|tail| (head, tail));
        let cut = |kept| (kept, middle(messages, &droppable, kept, min.0, order));
        let cuts: Vec<_> = tails.map(cut).filter(|(_, dropped)| fits(dropped)).collect();
        cuts.iter().find(|(_, dropped)| with_slack(dropped)).or(cuts.last()).cloned()
    });
    let (kept, dropped) = shorter.unwrap_or_else(|| {
        let mut kept = planned;
        loop {
            let dropped = middle(messages, &droppable, kept, min.0, order);
            match smaller(kept, min) {
                Some(next) if !fits(&dropped) => kept = next,
                Some(_) | None => break (kept, dropped),
            }
        }
    });
    if invalidates(messages, &dropped, bound) {
        return as_before(repeated);
    }
    let cut = Cut {
        average: Tokens(history.0 / droppable.len().max(1) as u64),
        head_room: room.share(policy.head_ratio),
        tail_room: room.share(policy.tail_ratio),
        planned,
        kept,
    };
    let figures = WindowFigures { scaffold, room, history, cut: Some(cut) };
    Windowed { gap: gap(messages, &dropped), dropped, figures }
}

/// Returns the indices of the history, which may be dropped: everything but instructions, the last user turn with the calls that it
/// answers, and the open turn or unresolved tail.
fn droppable(messages: &[Message]) -> Vec<usize> {
    let open = open_turn_from(messages);
    let has_open_turn = messages[open..].iter().any(Message::is_user_turn);
    let end = if has_open_turn { open } else { unresolved_from(messages) };
    let request = last_user_turn(messages).map_or(0..0, |request| with_calls(messages, request));
    (0..end).filter(|index| !messages[*index].role.is_instruction() && !request.contains(index)).collect()
}

/// Returns how many messages of average length the shares of head and tail hold, within their limits.
fn planned(count: usize, history: Tokens, room: Tokens, policy: &WindowPolicy) -> (usize, usize) {
    let average = history.0 as f64 / count.max(1) as f64;
    let holds = |ratio: f64| {
        let share = room.share(ratio).0 as f64 / average;
        // An empty history has an average of zero.
        if share.is_finite() { share as usize } else { 0 }
    };
    let head = holds(policy.head_ratio).min(policy.head_max).min(count / 2);
    let tail = holds(policy.tail_ratio).min(policy.tail_max).min(count - head);
    (head.max(policy.head_min).min(count), tail.max(policy.tail_min).min(count))
}

/// Returns the next smaller sizes of head and tail, or `None` if both are at their minimum.
///
/// Takes two messages from the head while it is at least as long as the tail, otherwise from the tail, which matters more. Takes
/// from the head again once the tail is at its minimum.
fn smaller((head, tail): (usize, usize), (min_head, min_tail): (usize, usize)) -> Option<(usize, usize)> {
    let shorter = |count: usize, min: usize| count.saturating_sub(2).max(min);
    let from_head = head > min_head && (head >= tail || tail <= min_tail);
    if from_head {
        Some((shorter(head, min_head), tail))
    } else if tail > min_tail {
        Some((head, shorter(tail, min_tail)))
    } else {
        None
    }
}

/// Returns the sizes of ever shorter tails, down to the minimum.
fn shorter_tails(tail: usize, min: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(tail.max(min)), move |tail| {
        (*tail > min).then(|| tail.saturating_sub(2).max(min))
    })
}

/// Returns the messages between head and tail.
///
/// A call is never separated from its results: the head ends before such a call, or after it if it would be shorter than
/// `min_head`. The unresolved tail stays.
fn middle(
    messages: &[Message],
    droppable: &[usize],
    (head, tail): (usize, usize),
    min_head: usize,
    order: RoleOrder,
) -> Vec<usize> {
    let joined = |at: usize| droppable.get(at).is_some_and(|&index| messages[index].joined);
    let mut from = head.min(droppable.len());
    while from > 0 && joined(from) {
        from -= 1;
    }
    while from < min_head || joined(from) {
        from += 1;
    }
    let unresolved = unresolved_from(messages);
    let resolved = droppable.iter().take_while(|&&index| index < unresolved).count();
    let mut to = droppable.len().saturating_sub(tail).min(resolved);
    while to > from && joined(to) {
        to -= 1;
    }
    in_order(messages, droppable.get(from..to).unwrap_or_default().to_vec(), order)
}

/// Returns those of the messages in a gap that are dropped. Where the tail begins in the middle of a tool loop, the question that it
/// works on stays, also after later questions: it has been sent. So does what keeps the roles in order.
fn in_order(messages: &[Message], mut gap: Vec<usize>, order: RoleOrder) -> Vec<usize> {
    let question = gap.iter().rposition(|&index| messages[index].is_user_turn());
    let is_answered = |index: &usize| messages[*index].kind == Kind::Observation;
    if let Some(question) = question.filter(|&at| gap[at + 1..].iter().any(is_answered)) {
        let question = with_calls(messages, gap[question]);
        gap.retain(|index| !question.contains(index));
    }
    order.removable(messages, gap, &[], Bridge::FirstGap)
}

fn gap(messages: &[Message], dropped: &[usize]) -> Option<Gap> {
    let (first, last) = (dropped.first()?, dropped.last()?);
    let behind = dialogue(&messages[..*first]).next_back();
    Some(Gap { behind: behind.map(|(_, message)| message.digest), last: messages[*last].digest })
}

/// Returns the messages of an earlier gap, or nothing if the gap is not part of this conversation any more.
fn repeat(messages: &[Message], droppable: &[usize], gap: Gap, order: RoleOrder) -> Vec<usize> {
    let from = match gap.behind {
        None => Some(0),
        Some(behind) => position_of(messages, behind).map(|index| index + 1),
    };
    let (Some(from), Some(last)) = (from, position_of(messages, gap.last)) else { return Vec::new() };
    // A client that removed its last messages may now end inside the gap.
    let is_whole =
        last < unresolved_from(messages) && !messages.get(last + 1).is_some_and(|next| next.joined);
    let gap = droppable.iter().copied().filter(|index| is_whole && (from..=last).contains(index));
    in_order(messages, gap.collect(), order)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_become_numbers_of_messages() {
        // 18,593 and 52,060 of 74,372 tokens hold 7 and 21 messages of 2,400, and the tail is capped at 20.
        let plan = |count, average: u64, room| {
            planned(count, Tokens(average * count as u64), Tokens(room), &WindowPolicy::default())
        };
        assert_eq!(plan(40, 2_400, 74_372), (7, 20));
        assert_eq!(plan(200, 1_000, 215_000), (20, 20));
        assert_eq!(plan(10, 2_400, 74_372), (5, 5));
        assert_eq!(plan(40, 50_000, 74_372), (3, 5));
        assert_eq!(plan(4, 50_000, 74_372), (3, 4));
        assert_eq!(plan(0, 0, 74_372), (0, 0));
    }

    #[test]
    fn head_and_tail_shrink_alternately_down_to_their_minimum() {
        let mut steps = vec![(12, 9)];
        while let Some(next) = smaller(steps[steps.len() - 1], (3, 5)) {
            steps.push(next);
        }
        let expected = [(12, 9), (10, 9), (8, 9), (8, 7), (6, 7), (6, 5), (4, 5), (3, 5)];
        assert_eq!(steps, expected);
    }
}
