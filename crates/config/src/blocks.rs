use crate::fold::nonzero;
use crate::section::Section;
use crate::value;
use std::num::NonZeroU32;
use tidegate_engine::Tokens;

/// The maximum size of each block of a context, in tokens or words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// The pinned notes.
    pub memory_max: Option<Tokens>,
    pub summary_max: Option<Tokens>,
    pub history_max: Option<Tokens>,
    /// All blocks together, including the instructions.
    pub total_max: Option<Tokens>,
    /// Whether to remove summary lines that repeat a pinned note.
    pub dedupe: bool,
    /// The number of recent messages that no limit removes.
    pub min_recent_messages: NonZeroU32,
}

impl Blocks {
    pub(crate) fn read(section: &mut Section<'_>) -> Blocks {
        let blocks = Blocks {
            memory_max: section.optional("memory_max", value::positive_tokens),
            summary_max: section.optional("summary_max", value::positive_tokens),
            history_max: section.optional("history_max", value::positive_tokens),
            total_max: section.optional("total_max", value::positive_tokens),
            dedupe: section.flag("dedupe", true),
            min_recent_messages: section.count("min_recent_messages", nonzero(2)),
        };
        if let (Some(total), Some(history)) = (blocks.total_max, blocks.history_max)
            && total < history
        {
            section.reject(
                &["total_max"],
                "must be at least `history_max`",
                "the history is part of the total",
            );
        }
        blocks
    }
}
