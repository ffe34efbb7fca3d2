//! What a phrasebook holds.

/// Everything that can be said in the conversations of one sort of people.
pub(crate) struct Book {
    pub(crate) name: &'static str,
    pub(crate) tasks: &'static [&'static str],
    pub(crate) facts: &'static [Fact],
    pub(crate) changes: &'static [Change],
    pub(crate) twins: &'static [Twins],
    /// What an assistant answers when something was settled: `{v}` is the value.
    pub(crate) echoes: &'static [&'static str],
    pub(crate) user_filler: &'static [&'static str],
    pub(crate) assistant_filler: &'static [&'static str],
    pub(crate) tool_filler: &'static [&'static str],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    User,
    Assistant,
    Tool,
}

/// Something said once, with `{v}` for its value, and the word that a summary must show beside the value.
#[derive(Clone, Copy)]
pub(crate) struct Fact {
    pub(crate) by: By,
    pub(crate) text: &'static str,
    pub(crate) beside: &'static str,
    pub(crate) values: &'static [&'static str],
}

/// Something settled and later settled otherwise: `{v}` is the value of the statement, `{o}` the one before.
/// A statement that begins with `assistant>` is the assistant's.
#[derive(Clone, Copy)]
pub(crate) struct Change {
    pub(crate) settled: &'static [&'static str],
    pub(crate) revised: &'static [&'static str],
    pub(crate) values: &'static [&'static str],
    pub(crate) reach: Reach,
}

/// How soon something is taken back. Who says only `make that 40` says it soon.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    Near,
    Far,
}

/// Two statements that look alike and are about different things: both with the word that must survive.
#[derive(Clone, Copy)]
pub(crate) struct Twins {
    pub(crate) first: (&'static str, &'static str),
    pub(crate) second: (&'static str, &'static str),
}

pub(crate) const fn user(text: &'static str, beside: &'static str, values: &'static [&'static str]) -> Fact {
    Fact { by: By::User, text, beside, values }
}

pub(crate) const fn assistant(
    text: &'static str,
    beside: &'static str,
    values: &'static [&'static str],
) -> Fact {
    Fact { by: By::Assistant, text, beside, values }
}

pub(crate) const fn tool(text: &'static str, beside: &'static str, values: &'static [&'static str]) -> Fact {
    Fact { by: By::Tool, text, beside, values }
}

pub(crate) const fn twins(
    first: &'static str,
    first_value: &'static str,
    second: &'static str,
    second_value: &'static str,
) -> Twins {
    Twins { first: (first, first_value), second: (second, second_value) }
}
