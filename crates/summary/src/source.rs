use std::borrow::Cow;

use crate::MessageRef;

/// One message to fold.
#[derive(Clone, Debug)]
pub struct Source<'a> {
    pub number: MessageRef,
    pub speaker: Speaker<'a>,
    pub text: Cow<'a, str>,
    /// What an assistant message asked its tools to do.
    pub calls: Vec<Call<'a>>,
}

/// Whose message it is. Summarizers believe users more than assistants, and both more than observations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker<'a> {
    User,
    Assistant,
    /// The result of an action, with the tool's name where the request gives it.
    Observation {
        tool: Option<&'a str>,
    },
    /// Any other role, by its own name.
    Other(&'a str),
}

/// One tool call: the tool's name and its arguments as the model wrote them, usually JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call<'a> {
    pub tool: Cow<'a, str>,
    pub arguments: Cow<'a, str>,
}
