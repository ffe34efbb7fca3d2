//! The sizes of a request's blocks, before and after their limits were applied.

use crate::summary_message::size_before_blocks;
use crate::{Assessment, ConversationState, TurnInput};
use serde::{Deserialize, Serialize};
use tidegate_engine::Tokens;

/// The sizes of the blocks of a request, in the unit of their limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BlockSizes {
    pub memory_before: u64,
    pub memory_after: u64,
    pub summary_before: u64,
    pub summary_after: u64,
    pub history_before: u64,
    pub history_after: u64,
    /// Lines of the summary that were removed because the pinned notes say the same.
    pub removed_lines: usize,
    /// Whether words were counted although the route asks for tokens.
    pub fell_back_to_words: bool,
}

impl BlockSizes {
    /// Returns `None` where neither the history nor the total has a limit.
    pub(crate) fn new(
        assessment: &Assessment,
        input: &TurnInput,
        state: &ConversationState,
    ) -> Option<BlockSizes> {
        let plan = &assessment.decision.plan;
        let figures = plan.blocks?;
        let renderer = state.renderer(input);
        let used = plan.folded.as_ref().and_then(|folded| state.fold(folded.covers));
        let (summary_before, removed_lines) = used.map_or((0, 0), |fold| size_before_blocks(fold, &renderer));
        let (memory_after, summary_after) = match &assessment.trimmed {
            None => (figures.memory, figures.summary),
            Some(trimmed) => (
                trimmed.notes.as_ref().map_or(Tokens::ZERO, |notes| notes.size),
                trimmed.summary.as_ref().map_or(Tokens::ZERO, |summary| summary.fold.size),
            ),
        };
        Some(BlockSizes {
            memory_before: renderer.pinned.map_or(0, |text| renderer.size(text).0),
            memory_after: memory_after.0,
            summary_before,
            summary_after: summary_after.0,
            history_before: figures.history_before.0,
            history_after: figures.history.0,
            removed_lines,
            fell_back_to_words: input.falls_back_to_words(),
        })
    }
}
