use crate::fold::at_least_one;
use crate::section::Section;
use crate::value;
use std::num::NonZeroU32;
use tidegate_engine::Tokens;

/// The largest size of each block of a context that is assembled from blocks, in tokens or in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocks {
    pub memory_max: Option<Tokens>,
    pub summary_max: Option<Tokens>,
    pub history_max: Option<Tokens>,
    pub total_max: Option<Tokens>,
    /// Leave out summary lines that the memory already says.
    pub dedupe: bool,
    pub min_recent_messages: NonZeroU32,
}

/// Where a conversation stops.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    pub max_turns: Option<NonZeroU32>,
    pub max_cost_usd: Option<f64>,
    pub plateau_window: Option<NonZeroU32>,
}

impl Blocks {
    pub(crate) fn read(section: &mut Section<'_>) -> Blocks {
        let blocks = Blocks {
            memory_max: section.optional("memory_max", value::some_tokens),
            summary_max: section.optional("summary_max", value::some_tokens),
            history_max: section.optional("history_max", value::some_tokens),
            total_max: section.optional("total_max", value::some_tokens),
            dedupe: section.flag("dedupe", true),
            min_recent_messages: section.count("min_recent_messages", at_least_one(2)),
        };
        if let (Some(total), Some(history)) = (blocks.total_max, blocks.history_max)
            && total < history
        {
            section.blame(
                &["total_max"],
                "must be at least `history_max`",
                "the history is part of the total",
            );
        }
        blocks
    }
}

impl Limits {
    pub(crate) fn read(section: &mut Section<'_>) -> Limits {
        Limits {
            max_turns: section.optional("max_turns", value::count),
            max_cost_usd: section.optional("max_cost_usd", value::cost),
            plateau_window: section.optional("plateau_window", value::count),
        }
    }
}
