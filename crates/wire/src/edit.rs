use bytes::Bytes;
use std::ops::Range;
use thiserror::Error;

/// A change to the messages of a request. Indexes are those of the client's messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// The message's content becomes the placeholder, whatever it was. Everything else of the message stays.
    Mask { message: usize, placeholder: Placeholder },
    /// The message's `observation` tag goes.
    Untag { message: usize },
    /// A run of messages becomes this one message, a JSON object.
    Replace { messages: Range<usize>, with: Bytes },
    /// A run of messages goes.
    Remove { messages: Range<usize> },
    /// This message, a JSON object, comes before the client's; before none if the index is their number.
    Insert { before: usize, with: Bytes },
}

/// A text as a JSON string, made once and shared by every message that it masks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placeholder(pub(crate) Bytes);

impl Placeholder {
    #[must_use]
    pub fn new(text: &str) -> Placeholder {
        Placeholder(serde_json::Value::from(text).to_string().into())
    }
}

/// A piece of the request that goes out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Bytes of the client's body.
    Client(Range<usize>),
    New(Bytes),
}

/// Why a list of edits makes no sense. Always our own mistake: the request then goes out untouched.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadEdit {
    #[error("edit {edit} names a message that does not exist")]
    NoSuchMessage { edit: usize },
    #[error("edit {edit} overlaps the one before, or comes too late")]
    OutOfOrder { edit: usize },
    #[error("edit {edit} masks a message without content")]
    NoContent { edit: usize },
    #[error("edit {edit} removes a tag that is not there")]
    NoTag { edit: usize },
}
