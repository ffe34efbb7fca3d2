use crate::{Bond, Span};
use std::borrow::Cow;

/// One message, read in full. Its texts are borrowed from the client's bytes unless they contain escapes.
///
/// Spans count from the message's first byte.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageView<'a> {
    /// The role as the client spelled it.
    pub role: Option<Cow<'a, str>>,
    pub name: Option<Cow<'a, str>>,
    pub content: Content<'a>,
    /// The value of the content, of whatever type.
    pub content_span: Option<Span>,
    /// The value of the last cache marker in the content, or of the message's own.
    pub breakpoint: Option<Span>,
    pub refusal: Option<Cow<'a, str>>,
    pub tool_calls: Vec<ToolCall<'a>>,
    /// The call in the older format that has no call ids.
    pub function_call: Option<FunctionCall<'a>>,
    /// The id of the call that the message answers.
    pub tool_call_id: Option<Cow<'a, str>>,
    /// The bytes to cut to remove the member `"observation": {"type": "tool_output"}` and its comma. `None` if the message is
    /// not tagged.
    pub tag: Option<Span>,
    /// The results that the message holds as blocks of its content. `content` does not include them.
    pub results: Vec<ToolResult<'a>>,
    /// The hash of what the message says, in dialects that find it while they read.
    pub canonical: Option<[u8; 32]>,
    /// Whether the content holds a summary that the provider has made.
    pub is_native: bool,
    /// Whether it holds reasoning that the provider has signed.
    pub is_signed: bool,
    /// What ties the message to its neighbours, besides calls and results.
    pub bond: Bond,
    /// Ids of further calls that the message depends on.
    pub depends_on: Vec<Cow<'a, str>>,
    /// Further ids of calls of the message, each with the tool.
    pub call_aliases: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// The total size of the values of unknown members, such as `reasoning_content`.
    pub unknown_bytes: usize,
    /// Known members whose value has an unexpected type, each with its raw value.
    pub unexpected: Vec<(&'static str, &'a [u8])>,
}

impl<'a> MessageView<'a> {
    /// Returns all calls of the message, in either format.
    pub fn calls(&self) -> impl Iterator<Item = &FunctionCall<'a>> {
        self.tool_calls.iter().map(|call| &call.function).chain(&self.function_call)
    }

    /// Returns the contents of the results in the message, and then its own.
    pub fn contents(&self) -> impl Iterator<Item = &Content<'a>> {
        self.results.iter().map(|result| &result.content).chain([&self.content])
    }
}

/// The result of a call, as a block of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolResult<'a> {
    /// The id of the call.
    pub id: Option<Cow<'a, str>>,
    pub content: Content<'a>,
    /// The value of the content, if a placeholder can replace it.
    pub maskable: Option<Span>,
}

/// The content of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Content<'a> {
    #[default]
    Absent,
    Null,
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
    /// A number, a boolean or an object. Providers reject it, but that is theirs to do.
    Unexpected(&'a [u8]),
}

/// One part of a multimodal content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    Text(Cow<'a, str>),
    Image {
        url: Cow<'a, str>,
        detail: Option<Cow<'a, str>>,
    },
    Audio {
        data: Cow<'a, str>,
        format: Option<Cow<'a, str>>,
    },
    File {
        id: Option<Cow<'a, str>>,
        name: Option<Cow<'a, str>>,
        data: Option<Cow<'a, str>>,
    },
    Refusal(Cow<'a, str>),
    /// The raw bytes of a part of an unknown kind or shape.
    Other(&'a [u8]),
}

/// A tool call made by the assistant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolCall<'a> {
    pub id: Option<Cow<'a, str>>,
    /// The call's `type`. `None` means `function`.
    pub kind: Option<Cow<'a, str>>,
    pub function: FunctionCall<'a>,
}

/// The tool that is called, and its arguments: JSON as text, as the model wrote it, or the input of a custom tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionCall<'a> {
    pub name: Cow<'a, str>,
    pub arguments: Cow<'a, str>,
}
