//! The block pass: how much of the history fits, if the context is made of blocks with limits of their own.
//!
//! The blocks are the instructions, the pinned notes, the summary and the history. The history is everything before the last
//! user turn; that turn is to be answered, so it always stays and belongs to no block.

use crate::turns::{last_user_turn, open_turn_from, unresolved_from};
use crate::{Folded, Message, Tokens};

/// The limits of the blocks, in the unit of [`Message::size`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockPolicy {
    /// The maximum size of the history.
    pub history_max: Option<Tokens>,
    /// The maximum size of instructions, pinned notes, summary and history together.
    pub total_max: Option<Tokens>,
    /// The number of recent messages that stay whatever the limits say.
    pub min_recent: usize,
    /// The size of the pinned notes.
    pub memory: Tokens,
}

/// The sizes of the blocks of one request, and what the total leaves of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockFigures {
    /// The pinned notes.
    pub memory: Tokens,
    pub summary: Tokens,
    /// The history as planned.
    pub history: Tokens,
    /// The history as the client sent it.
    pub history_before: Tokens,
    /// What `total_max` leaves for the summary, after the history has been cut as far as possible.
    pub summary_max: Tokens,
    /// What `total_max` leaves for the pinned notes, after the summary has been cut to nothing.
    pub memory_max: Tokens,
}

impl BlockPolicy {
    pub(crate) fn is_bounded(&self) -> bool {
        self.history_max.is_some() || self.total_max.is_some()
    }

    /// Returns the index at which the history has to begin to fit, or `None` if it fits already. Only messages from `from` on
    /// can still be cut.
    pub(crate) fn edge(&self, messages: &[Message], folded: Option<&Folded>, from: usize) -> Option<usize> {
        if !self.is_bounded() {
            return None;
        }
        let room = self.history_room(messages, folded.map_or(Tokens::ZERO, |folded| folded.size));
        let mut used = Tokens::ZERO;
        // The oldest message that `min_recent` protects, and the oldest one beyond it.
        let (mut floor, mut oldest) = (open_turn_from(messages), None);
        for (count, index) in history(messages).rev().take_while(|&index| index >= from).enumerate() {
            used += messages[index].size;
            if count < self.min_recent {
                floor = index;
                continue;
            }
            if used > room {
                return cut(messages, index + 1, floor).filter(|&cut| cut > from);
            }
            oldest = Some(index);
        }
        // A covered message that stayed next to the summary, because it was the last user turn then, goes with the next summary.
        let left_over = folded.map_or(Tokens::ZERO, |folded| left_over(messages, folded));
        let is_over = used + left_over > room && left_over > Tokens::ZERO;
        oldest.filter(|_| is_over).and_then(|index| cut(messages, index + 1, floor)).filter(|&cut| cut > from)
    }

    /// The space for the history: its own limit, or what the total leaves if that is less.
    fn history_room(&self, messages: &[Message], summary: Tokens) -> Tokens {
        let fixed = instructions(messages) + self.memory + summary;
        let left = self.total_max.map(|total| total.saturating_sub(fixed));
        self.history_max.into_iter().chain(left).min().unwrap_or(Tokens(u64::MAX))
    }

    /// Returns by how much the history exceeds its room if the messages that satisfy `stays` stay.
    pub(crate) fn excess(
        &self,
        messages: &[Message],
        stays: impl Fn(&usize) -> bool,
        folded: Option<&Folded>,
    ) -> Tokens {
        if !self.is_bounded() {
            return Tokens::ZERO;
        }
        let used: Tokens = history(messages).filter(stays).map(|index| messages[index].size).sum();
        used.saturating_sub(self.history_room(messages, folded.map_or(Tokens::ZERO, |folded| folded.size)))
    }

    /// Returns the size of a message as far as it is part of the history.
    pub(crate) fn history_size(&self, messages: &[Message], index: usize) -> Tokens {
        let is_history = index < open_turn_from(messages)
            && !messages[index].role.is_instruction()
            && last_user_turn(messages) != Some(index);
        if is_history { messages[index].size } else { Tokens::ZERO }
    }

    /// Returns the first of the recent messages that stay whatever the limits say.
    pub(crate) fn recent_from(&self, messages: &[Message]) -> usize {
        let recent = history(messages).rev().take(self.min_recent).last();
        recent.filter(|_| self.is_bounded()).unwrap_or(messages.len())
    }

    /// Computes the figures of a request in which the messages that satisfy `stays` stay. What exceeds the total is taken from
    /// the summary first, then from the pinned notes.
    pub(crate) fn figures(
        &self,
        messages: &[Message],
        stays: impl Fn(&usize) -> bool,
        summary: Tokens,
    ) -> Option<BlockFigures> {
        if !self.is_bounded() {
            return None;
        }
        let size = |index: usize| messages[index].size;
        let left: Tokens = history(messages).filter(stays).map(size).sum();
        let used = instructions(messages) + self.memory + summary + left;
        let excess = self.total_max.map_or(Tokens::ZERO, |total| used.saturating_sub(total));
        Some(BlockFigures {
            memory: self.memory,
            summary,
            history: left,
            history_before: history(messages).map(size).sum(),
            summary_max: summary.saturating_sub(excess),
            memory_max: self.memory.saturating_sub(excess.saturating_sub(summary)),
        })
    }
}

fn instructions(messages: &[Message]) -> Tokens {
    messages.iter().filter(|message| message.role.is_instruction()).map(|message| message.size).sum()
}

/// Returns the indices of the history: everything before the open turn but instructions and the last user turn.
fn history(messages: &[Message]) -> impl DoubleEndedIterator<Item = usize> {
    let request = last_user_turn(messages);
    (0..open_turn_from(messages))
        .filter(move |&index| !messages[index].role.is_instruction() && Some(index) != request)
}

/// Returns the size of the covered messages that stay next to the summary.
fn left_over(messages: &[Message], folded: &Folded) -> Tokens {
    let stays = |index: &usize| *index < folded.upto && folded.removed.binary_search(index).is_err();
    history(messages).filter(stays).map(|index| messages[index].size).sum()
}

/// Returns the first index from `at` to `floor` where the conversation can be cut. If a call with its results spans all of
/// them, it stays whole, and the result is the last legal index before it.
fn cut(messages: &[Message], at: usize, floor: usize) -> Option<usize> {
    let end = unresolved_from(messages).min(floor);
    let is_legal = |index: &usize| !messages[*index].joined;
    (at..=end).find(is_legal).or_else(|| (0..=end.min(at)).rev().find(is_legal))
}
