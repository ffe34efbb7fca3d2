//! How the messages of our own look on a route: whose role they have, what they are measured in, how long they may be.

use std::sync::atomic::{AtomicBool, Ordering};
use tidegate_config::{Blocks, Context, FoldRole, Unit as Counted};
use tidegate_engine::Tokens;
use tidegate_tokens::{Encoding, Model, count};
use tidegate_wire::{Unit, words};
use tracing::warn;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Look<'a> {
    pub(crate) role: FoldRole,
    pub(crate) encoding: Encoding,
    pub(crate) unit: Unit,
    pub(crate) blocks: &'a Blocks,
    /// What is pinned to the conversation, whole.
    pub(crate) pinned: Option<&'a str>,
}

impl<'a> Look<'a> {
    pub(crate) fn of(context: &'a Context, model: &Model, pinned: Option<&'a str>) -> Look<'a> {
        let (role, encoding) = (context.fold.role, model.encoding);
        Look { role, encoding, unit: unit(context, model), blocks: &context.blocks, pinned }
    }

    /// How long a message of our own is in the unit of the limits; nothing where there are none, for counting takes time.
    pub(crate) fn size_of_own(&self, text: &str) -> Tokens {
        let is_bounded = self.blocks.history_max.or(self.blocks.total_max).is_some();
        if is_bounded { self.size(text) } else { Tokens::ZERO }
    }

    /// How long a text is in the unit of the limits.
    pub(crate) fn size(&self, text: &str) -> Tokens {
        match self.unit {
            Unit::Tokens => count(self.encoding, text),
            Unit::Words => words(text),
        }
    }
}

/// What sizes are counted in on a route: words where it says so, and where there is no tokenizer to count anything else with.
pub(crate) fn unit(context: &Context, model: &Model) -> Unit {
    static WARNED: AtomicBool = AtomicBool::new(false);
    let Blocks { memory_max, summary_max, history_max, total_max, .. } = context.blocks;
    let is_bounded = memory_max.or(summary_max).or(history_max).or(total_max).is_some();
    match context.unit {
        Counted::Words => Unit::Words,
        Counted::Tokens if is_bounded && model.encoding == Encoding::Estimate => {
            if !WARNED.swap(true, Ordering::Relaxed) {
                warn!("there is no tokenizer for a model, so the limits of its blocks are counted in words");
            }
            Unit::Words
        }
        Counted::Tokens => Unit::Tokens,
    }
}

/// The longest beginning of a text within `most`, cut behind a word.
pub(crate) fn shortened(text: &str, most: Tokens, size: impl Fn(&str) -> Tokens) -> &str {
    if size(text) <= most {
        return text;
    }
    // Where each word ends.
    let mut ends: Vec<usize> = Vec::new();
    for word in text.split_whitespace() {
        // A word is a part of the text that it was split from.
        ends.push(word.as_ptr() as usize - text.as_ptr() as usize + word.len());
    }
    let fitting = ends.partition_point(|end| size(&text[..*end]) <= most);
    fitting.checked_sub(1).map_or("", |last| &text[..ends[last]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_behind_its_last_word_that_fits() {
        let text = " one  two\nthree four ";
        assert_eq!(shortened(text, Tokens(4), words), text);
        assert_eq!(shortened(text, Tokens(3), words), " one  two\nthree");
        assert_eq!(shortened(text, Tokens(0), words), "");
        assert_eq!(shortened("", Tokens(0), words), "");
    }
}
