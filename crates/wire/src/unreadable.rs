use thiserror::Error;

/// Why a body cannot be read. Such a request is forwarded untouched, except if its messages are ambiguous.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unreadable {
    #[error("the body is 4 GiB or larger")]
    TooLarge,
    #[error("the body is not valid UTF-8")]
    NotUtf8,
    #[error("the body is not valid JSON at byte {at}")]
    NotJson { at: usize },
    #[error("the body nests deeper than {} levels", crate::MAX_DEPTH)]
    TooDeep,
    #[error("the body is not a JSON object")]
    NotAnObject,
    /// `key` is the member that holds the messages in the request's dialect.
    #[error("the body has no `{key}`")]
    NoMessages { key: &'static str },
    #[error("`{key}` is not an array")]
    MessagesNotAnArray { key: &'static str },
    #[error("`{key}[{index}]` is not an object")]
    MessageNotAnObject { key: &'static str, index: usize },
    /// Some parsers take the first value, others the last: we might check one and the upstream answer the other.
    #[error("`{key}` occurs twice")]
    DuplicateMessages { key: &'static str },
    #[error("`{0}` occurs twice")]
    Ambiguous(&'static str),
}

impl Unreadable {
    /// A label for logs and metrics that reveals nothing of the request's content.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Unreadable::TooLarge => "too_large",
            Unreadable::NotUtf8 => "not_utf8",
            Unreadable::NotJson { .. } => "not_json",
            Unreadable::TooDeep => "too_deep",
            Unreadable::NotAnObject => "not_an_object",
            Unreadable::NoMessages { .. } => "no_messages",
            Unreadable::MessagesNotAnArray { .. } => "messages_not_an_array",
            Unreadable::MessageNotAnObject { .. } => "message_not_an_object",
            Unreadable::DuplicateMessages { .. } => "duplicate_messages",
            Unreadable::Ambiguous(_) => "ambiguous",
        }
    }
}
