use crate::section::Section;
use crate::value;
use std::num::NonZeroU32;

/// When a conversation is stopped.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    pub max_turns: Option<NonZeroU32>,
    pub max_cost_usd: Option<f64>,
    /// Hint at stopping after this many turns without progress.
    pub plateau_window: Option<NonZeroU32>,
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
