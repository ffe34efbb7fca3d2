use crate::Span;
use bytes::Bytes;
use std::ops::Range;
use thiserror::Error;

/// A change to the messages of a request. Indexes refer to the client's messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Replaces the message's content with the placeholder and keeps its other members.
    Mask { message: usize, placeholder: Placeholder },
    /// Replaces values inside the message with a text each, in order: whole results, or texts in them. The values are counted from
    /// the message's first byte.
    Shorten { message: usize, texts: Vec<(Span, Placeholder)> },
    /// Removes the message's `observation` tag.
    Untag { message: usize },
    /// Adds texts of our own to the message's content, each as a part of its own: before what the client wrote, or after it.
    Extend { message: usize, texts: Vec<OwnText>, side: Side },
    /// Replaces a run of messages with one message, a JSON object.
    Replace { messages: Range<usize>, with: Bytes },
    /// Removes a run of messages.
    Remove { messages: Range<usize> },
    /// Inserts a message, a JSON object, before a message of the client. The number of messages as index appends it.
    Insert { before: usize, with: Bytes },
}

/// A text as a JSON string, rendered once and shared by all messages that it masks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placeholder(pub(crate) Bytes);

impl Placeholder {
    #[must_use]
    pub fn new(text: &str) -> Placeholder {
        Placeholder(serde_json::Value::from(text).to_string().into())
    }

    /// Its length as a JSON string.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// Where texts are added to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Front,
    Back,
}

/// A text of our own, rendered once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnText {
    pub(crate) json: Placeholder,
    /// The value of a cache marker of the client's to put on it.
    pub(crate) breakpoint: Option<Bytes>,
}

impl OwnText {
    #[must_use]
    pub fn new(text: &str, breakpoint: Option<Bytes>) -> OwnText {
        OwnText { json: Placeholder::new(text), breakpoint }
    }

    #[must_use]
    pub fn text(&self) -> String {
        serde_json::from_slice(&self.json.0).unwrap_or_default()
    }

    /// The value of the cache marker that it carries.
    #[must_use]
    pub fn breakpoint(&self) -> Option<&Bytes> {
        self.breakpoint.as_ref()
    }
}

/// A piece of the forwarded request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A range of the client's body.
    Client(Range<usize>),
    /// Bytes that an edit has added.
    New(Bytes),
}

/// Why a list of edits cannot be applied. This is always a bug in the plan; the request is then forwarded untouched.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadEdit {
    #[error("edit {edit} names a message that does not exist")]
    NoSuchMessage { edit: usize },
    #[error("edit {edit} is out of order or overlaps the previous one")]
    OutOfOrder { edit: usize },
    #[error("edit {edit} masks or shortens a message without content")]
    NoContent { edit: usize },
    #[error("edit {edit} adds to a message without content")]
    NothingToExtend { edit: usize },
    #[error("edit {edit} removes a tag that is not there")]
    NoTag { edit: usize },
}
