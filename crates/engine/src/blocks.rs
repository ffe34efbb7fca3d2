//! The block pass: how much of the history may stay where a context is made of blocks with limits of their own.

use crate::turns::{open_from, unresolved_from};
use crate::{Message, Tokens};

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

/// How large each block is, and what the limits leave of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockFigures {
    pub memory: Tokens,
    pub summary: Tokens,
    pub history: Tokens,
    /// What the total leaves for the summary and the notes once the history is as short as it may get.
    pub summary_max: Tokens,
    pub memory_max: Tokens,
}

impl BlockPolicy {
    fn is_bounded(&self) -> bool {
        self.history_max.is_some() || self.total_max.is_some()
    }

    /// Where the history has to begin so that it fits, recent messages first; none if it fits as it is. Only what begins at
    /// `from` or behind it is still there to be cut.
    pub(crate) fn edge(&self, messages: &[Message], from: usize, summary: Tokens) -> Option<usize> {
        if !self.is_bounded() {
            return None;
        }
        let open = open_from(messages);
        let room = self.history_room(messages, summary);
        let talk = messages[..open].iter().enumerate().skip(from);
        let talk = talk.filter(|(_, message)| !message.role.is_instruction());
        let (mut used, mut count) = (Tokens::ZERO, 0);
        for (index, message) in talk.rev() {
            used += message.size;
            if used > room && count >= self.min_recent {
                let wanted = behind(messages, index + 1);
                return (wanted > from).then_some(wanted);
            }
            count += 1;
        }
        None
    }

    /// What the history may take: its own limit, and what the total leaves.
    fn history_room(&self, messages: &[Message], summary: Tokens) -> Tokens {
        let fixed = instructions(messages) + self.memory + summary;
        let left = self.total_max.map(|total| total.saturating_sub(fixed));
        self.history_max.into_iter().chain(left).min().unwrap_or(Tokens(u64::MAX))
    }

    /// The figures of a request as planned. The total takes from the summary what the history could not give, and then
    /// from the notes.
    pub(crate) fn figures(&self, messages: &[Message], from: usize, summary: Tokens) -> Option<BlockFigures> {
        if !self.is_bounded() {
            return None;
        }
        let open = open_from(messages).max(from);
        let history: Tokens = talk_size(&messages[from..open]);
        let used = instructions(messages) + self.memory + summary + history;
        let excess = self.total_max.map_or(Tokens::ZERO, |total| used.saturating_sub(total));
        let summary_max = summary.saturating_sub(excess);
        let memory_max = self.memory.saturating_sub(excess.saturating_sub(summary));
        Some(BlockFigures { memory: self.memory, summary, history, summary_max, memory_max })
    }
}

fn instructions(messages: &[Message]) -> Tokens {
    messages.iter().filter(|message| message.role.is_instruction()).map(|message| message.size).sum()
}

fn talk_size(messages: &[Message]) -> Tokens {
    messages.iter().filter(|message| !message.role.is_instruction()).map(|message| message.size).sum()
}

/// The first place at or behind `at` where a conversation can be cut; before it if there is none that leaves the unresolved end
/// alone.
fn behind(messages: &[Message], at: usize) -> usize {
    let end = unresolved_from(messages);
    let legal = |index: &usize| !messages.get(*index).is_some_and(|message| message.joined);
    let last = (0..=end.min(at)).rev().find(legal).unwrap_or(0);
    (at..=end).find(legal).unwrap_or(last)
}
