use std::borrow::Cow;

use crate::MessageRef;

/// One message to fold.
#[derive(Clone, Debug)]
pub struct Source<'a> {
    pub number: MessageRef,
    pub speaker: Speaker<'a>,
    pub text: Cow<'a, str>,
    /// The tool calls of an assistant message.
    pub calls: Vec<Call<'a>>,
}

/// The author of a message. Summarizers trust users more than assistants, and both more than observations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker<'a> {
    User,
    Assistant,
    /// The result of an action, with the tool's name if it is known.
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
