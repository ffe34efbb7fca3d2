//! The block pass: how much of the history may stay where a context is made of blocks with limits of their own.

use crate::turns::{open_from, request_at, unresolved_from};
use crate::{Folded, Message, Tokens};

/// The limits of the blocks, in the unit that [`Message::size`] has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockPolicy {
    pub history_max: Option<Tokens>,
    /// Of instructions, pinned notes, summary and history together.
    pub total_max: Option<Tokens>,
    /// So many messages of the history stay, whatever the limits say.
    pub min_recent: usize,
    /// How large the pinned notes are.
    pub memory: Tokens,
}

/// How large each block is, and what the limits leave of it. What the user has asked last is to be answered and is part of no
/// block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockFigures {
    pub memory: Tokens,
    pub summary: Tokens,
    /// What of the history goes out, and what there is of it.
    pub history: Tokens,
    pub history_before: Tokens,
    /// What the total leaves for the summary and the notes once the history is as short as it may get.
    pub summary_max: Tokens,
    pub memory_max: Tokens,
}

impl BlockPolicy {
    pub(crate) fn is_bounded(&self) -> bool {
        self.history_max.is_some() || self.total_max.is_some()
    }

    /// Where the history has to begin so that it fits, recent messages first; none if it fits as it is. Only what begins at
    /// `from` or behind it is still there to be cut.
    pub(crate) fn edge(&self, messages: &[Message], folded: Option<&Folded>, from: usize) -> Option<usize> {
        if !self.is_bounded() {
            return None;
        }
        let room = self.history_room(messages, folded.map_or(Tokens::ZERO, |folded| folded.size));
        let (mut used, mut floor, mut oldest) = (Tokens::ZERO, open_from(messages), None);
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
        // What a summary has left beside it, because it was the question then, goes with the next summary.
        let beside = folded.map_or(Tokens::ZERO, |folded| beside(messages, folded));
        let is_over = used + beside > room && beside > Tokens::ZERO;
        oldest.filter(|_| is_over).and_then(|index| cut(messages, index + 1, floor)).filter(|&cut| cut > from)
    }

    /// What the history may take: its own limit, and what the total leaves.
    fn history_room(&self, messages: &[Message], summary: Tokens) -> Tokens {
        let fixed = instructions(messages) + self.memory + summary;
        let left = self.total_max.map(|total| total.saturating_sub(fixed));
        self.history_max.into_iter().chain(left).min().unwrap_or(Tokens(u64::MAX))
    }

    /// The figures of a request in which these messages stay. The total takes from the summary what the history could not
    /// give, and then from the notes.
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

/// What was said before the question that is to be answered. The question stays whatever happens, so it is no part of it.
fn history(messages: &[Message]) -> impl DoubleEndedIterator<Item = usize> {
    let request = request_at(messages);
    (0..open_from(messages))
        .filter(move |&index| !messages[index].role.is_instruction() && Some(index) != request)
}

/// How much of the history stands beside the summary that covers it.
fn beside(messages: &[Message], folded: &Folded) -> Tokens {
    let stays = |index: &usize| *index < folded.upto && folded.removed.binary_search(index).is_err();
    history(messages).filter(stays).map(|index| messages[index].size).sum()
}

/// The first place from `at` to `floor` where a conversation can be cut. Where a call lies across all of them, it stays whole, and
/// the last place before it is the one.
fn cut(messages: &[Message], at: usize, floor: usize) -> Option<usize> {
    let end = unresolved_from(messages).min(floor);
    let is_legal = |index: &usize| !messages[*index].joined;
    (at..=end).find(is_legal).or_else(|| (0..=end.min(at)).rev().find(is_legal))
}
