//! Renders the messages that Tidegate adds to a request, in the role and unit of its route.

use bytes::Bytes;
use tidegate_config::{Blocks, Context, FoldRole, Unit as ConfiguredUnit};
use tidegate_engine::Tokens;
use tidegate_tokens::chat::message_tokens;
use tidegate_tokens::{Encoding, Model, count};
use tidegate_wire::{Dialect, OwnRole, Unit, words};

/// How a route renders and measures messages of our own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Renderer<'a> {
    pub(crate) dialect: Dialect,
    pub(crate) role: FoldRole,
    pub(crate) encoding: Encoding,
    pub(crate) unit: Unit,
    pub(crate) blocks: &'a Blocks,
    /// The whole text that is pinned to the conversation.
    pub(crate) pinned: Option<&'a str>,
}

impl<'a> Renderer<'a> {
    pub(crate) fn new(
        dialect: Dialect,
        context: &'a Context,
        model: &Model,
        pinned: Option<&'a str>,
    ) -> Renderer<'a> {
        let (role, encoding) = (context.fold.role, model.encoding);
        Renderer { dialect, role, encoding, unit: unit(context, model), blocks: &context.blocks, pinned }
    }

    /// Renders a message of our own as a JSON object.
    pub(crate) fn message(&self, text: &str) -> Bytes {
        let role = match self.role {
            FoldRole::User => OwnRole::User,
            FoldRole::System => OwnRole::System,
        };
        self.dialect.own_message(role, text)
    }

    /// The size of a message of our own in the unit of the limits; zero where there are no limits, because counting takes time.
    pub(crate) fn size_if_bounded(&self, text: &str) -> Tokens {
        let is_bounded = self.blocks.history_max.or(self.blocks.total_max).is_some();
        if is_bounded { self.size(text) } else { Tokens::ZERO }
    }

    /// The size of a text in the unit of the limits.
    pub(crate) fn size(&self, text: &str) -> Tokens {
        match self.unit {
            Unit::Tokens => count(self.encoding, text),
            Unit::Words => words(text),
        }
    }
}

/// The unit of a route's limits. Words where the route says so, and where there is no tokenizer for the model.
pub(crate) fn unit(context: &Context, model: &Model) -> Unit {
    let Blocks { memory_max, summary_max, history_max, total_max, .. } = context.blocks;
    let is_bounded = memory_max.or(summary_max).or(history_max).or(total_max).is_some();
    match context.unit {
        ConfiguredUnit::Words => Unit::Words,
        ConfiguredUnit::Tokens if is_bounded && model.encoding == Encoding::Estimate => Unit::Words,
        ConfiguredUnit::Tokens => Unit::Tokens,
    }
}

/// The cost of a message of our own with this text.
pub(crate) fn tokens(text: &str, role: FoldRole, encoding: Encoding) -> Tokens {
    message_tokens(encoding, role_name(role), None) + count(encoding, text)
}

fn role_name(role: FoldRole) -> &'static str {
    match role {
        FoldRole::User => "user",
        FoldRole::System => "system",
    }
}

/// The longest prefix of a text within `max`, cut after a word.
pub(crate) fn shortened(text: &str, max: Tokens, size: impl Fn(&str) -> Tokens) -> &str {
    if size(text) <= max {
        return text;
    }
    let mut word_ends: Vec<usize> = Vec::new();
    for word in text.split_whitespace() {
        // A word is a slice of the text that it was split from.
        word_ends.push(word.as_ptr() as usize - text.as_ptr() as usize + word.len());
    }
    let fitting = word_ends.partition_point(|end| size(&text[..*end]) <= max);
    fitting.checked_sub(1).map_or("", |last| &text[..word_ends[last]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_after_the_last_word_that_fits() {
        let text = " one  two\nthree four ";
        assert_eq!(shortened(text, Tokens(4), words), text);
        assert_eq!(shortened(text, Tokens(3), words), " one  two\nthree");
        assert_eq!(shortened(text, Tokens(0), words), "");
        assert_eq!(shortened("", Tokens(0), words), "");
    }
}
