//! The window pass: a head and a tail stay, the middle between them goes and a marker stands for it.

use crate::turns::{open_from, request_at, unresolved_from};
use crate::{Conversation, Digest, Memory, Message, Tokens};

/// How much of the beginning and of the end stays when not all of it fits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowPolicy {
    /// Their shares of what is left for the history; the rest is for the marker.
    pub head_ratio: f64,
    pub tail_ratio: f64,
    /// The most and the fewest messages of each.
    pub head_max: usize,
    pub tail_max: usize,
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

/// The run of messages that a request went without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The last message before it; none if it begins with the conversation.
    pub behind: Option<Digest>,
    /// Its last message.
    pub last: Digest,
}

/// The arithmetic of one window, so that it can be shown as it was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowFigures {
    /// What is there besides the history: instructions, tools, pinned notes, what the user has just said.
    pub scaffold: Tokens,
    /// What is left for the history, and what it uses.
    pub room: Tokens,
    pub history: Tokens,
    /// How it was cut, if it was cut now.
    pub cut: Option<Cut>,
}

/// Head and tail in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// What their shares hold of messages of average length.
    pub average: Tokens,
    pub head_room: Tokens,
    pub tail_room: Tokens,
    /// By their shares, and as they came out.
    pub planned: (usize, usize),
    pub kept: (usize, usize),
}

/// What goes, and why that many.
#[derive(Debug, PartialEq)]
pub(crate) struct Windowed {
    pub(crate) dropped: Vec<usize>,
    pub(crate) gap: Option<Gap>,
    pub(crate) figures: WindowFigures,
}

pub(crate) fn window(conversation: &Conversation<'_>, memory: &Memory, policy: &WindowPolicy) -> Windowed {
    let Conversation { messages, budget, marker, .. } = *conversation;
    let story = story(messages);
    let cost = |indexes: &[usize]| indexes.iter().map(|&index| messages[index].tokens).sum::<Tokens>();
    let history = cost(&story);
    let all: Tokens = messages.iter().map(|message| message.tokens).sum();
    let scaffold = all.saturating_sub(history) + conversation.fixed + conversation.pinned;
    let room = budget.input.saturating_sub(scaffold);
    let fits = |dropped: &[usize]| {
        let marker = if dropped.is_empty() { Tokens::ZERO } else { marker };
        history.saturating_sub(cost(dropped)) + marker <= room
    };
    let earlier = memory.last_on(messages).and_then(|(_, waypoint)| waypoint.gap);
    // With more room than before, such as that of another model, nothing has to be left out any more.
    let earlier = earlier.filter(|_| !fits(&[]));
    let replayed = earlier.map_or_else(Vec::new, |gap| replay(messages, &story, gap));
    if fits(&replayed) {
        let gap = gap(messages, &replayed);
        let figures = WindowFigures { scaffold, room, history, cut: None };
        return Windowed { dropped: replayed, gap, figures };
    }
    let planned = planned(story.len(), history, room, policy);
    let floor = (policy.head_min.min(story.len()), policy.tail_min.min(story.len()));
    let mut kept = planned;
    let dropped = loop {
        let dropped = middle(messages, &story, kept, floor.0);
        match smaller(kept, floor) {
            Some(next) if !fits(&dropped) => kept = next,
            Some(_) | None => break dropped,
        }
    };
    let cut = Cut {
        average: Tokens(history.0 / story.len().max(1) as u64),
        head_room: room.share(policy.head_ratio),
        tail_room: room.share(policy.tail_ratio),
        planned,
        kept,
    };
    let figures = WindowFigures { scaffold, room, history, cut: Some(cut) };
    Windowed { gap: gap(messages, &dropped), dropped, figures }
}

/// What may go: everything but instructions, what the user last asked for, and the open or unresolved end.
fn story(messages: &[Message]) -> Vec<usize> {
    let open = open_from(messages);
    let has_open_turn = messages[open..].iter().any(Message::is_user_turn);
    let end = if has_open_turn { open } else { unresolved_from(messages) };
    let request = request_at(messages);
    (0..end).filter(|&index| !messages[index].role.is_instruction() && Some(index) != request).collect()
}

/// Head and tail by their shares of the room, as if every message had the average length.
fn planned(count: usize, history: Tokens, room: Tokens, policy: &WindowPolicy) -> (usize, usize) {
    let average = history.0 as f64 / count.max(1) as f64;
    let holds = |ratio: f64| {
        let share = room.share(ratio).0 as f64 / average;
        // A share of nothing by nothing holds nothing.
        if share.is_finite() { share as usize } else { 0 }
    };
    let head = holds(policy.head_ratio).min(policy.head_max).min(count / 2);
    let tail = holds(policy.tail_ratio).min(policy.tail_max).min(count - head);
    (head.max(policy.head_min).min(count), tail.max(policy.tail_min).min(count))
}

/// Two messages fewer: of the head while it is at least as long as the tail, else of the tail, which matters more; and of the
/// head in the end. Neither becomes shorter than it may.
fn smaller((head, tail): (usize, usize), (least_head, least_tail): (usize, usize)) -> Option<(usize, usize)> {
    let shorter = |count: usize, least: usize| count.saturating_sub(2).max(least);
    if head > least_head && head >= tail {
        Some((shorter(head, least_head), tail))
    } else if tail > least_tail {
        Some((head, shorter(tail, least_tail)))
    } else if head > least_head {
        Some((shorter(head, least_head), tail))
    } else {
        None
    }
}

/// What is between them. A call is never parted from its results, and the unresolved end stays. Where that would make the head
/// shorter than it may be, it is longer instead.
fn middle(
    messages: &[Message],
    story: &[usize],
    (head, tail): (usize, usize),
    least_head: usize,
) -> Vec<usize> {
    let joined = |at: usize| story.get(at).is_some_and(|&index| messages[index].joined);
    let mut from = head.min(story.len());
    while from > 0 && joined(from) {
        from -= 1;
    }
    while from < least_head || joined(from) {
        from += 1;
    }
    let unresolved = unresolved_from(messages);
    let resolved = story.iter().take_while(|&&index| index < unresolved).count();
    let mut to = story.len().saturating_sub(tail).min(resolved);
    while to > from && joined(to) {
        to -= 1;
    }
    story.get(from..to).unwrap_or_default().to_vec()
}

fn gap(messages: &[Message], dropped: &[usize]) -> Option<Gap> {
    let (first, last) = (dropped.first()?, dropped.last()?);
    let behind = messages[..*first].iter().rev().find(|message| !message.role.is_instruction());
    Some(Gap { behind: behind.map(|message| message.digest), last: messages[*last].digest })
}

/// The same messages again. Nothing if they are not where they were.
fn replay(messages: &[Message], story: &[usize], gap: Gap) -> Vec<usize> {
    let at = |digest: Digest| {
        messages.iter().rposition(|message| !message.role.is_instruction() && message.digest == digest)
    };
    let from = match gap.behind {
        None => Some(0),
        Some(behind) => at(behind).map(|index| index + 1),
    };
    let (Some(from), Some(last)) = (from, at(gap.last)) else { return Vec::new() };
    // A client that has taken back its last messages may have come back to what was in the middle.
    let is_whole =
        last < unresolved_from(messages) && !messages.get(last + 1).is_some_and(|next| next.joined);
    story.iter().copied().filter(|index| is_whole && (from..=last).contains(index)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_become_messages() {
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
    fn they_are_reduced_in_this_order() {
        let mut steps = vec![(12, 9)];
        while let Some(next) = smaller(steps[steps.len() - 1], (3, 5)) {
            steps.push(next);
        }
        let expected = [(12, 9), (10, 9), (8, 9), (8, 7), (6, 7), (6, 5), (4, 5), (3, 5)];
        assert_eq!(steps, expected);
    }
}
