use thiserror::Error;

/// Why a request is not taken apart. Such a request is forwarded as it came, except where it is ambiguous.
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
    #[error("the body has no `messages`")]
    NoMessages,
    #[error("`messages` is not an array")]
    MessagesNotAnArray,
    #[error("`messages[{index}]` is not an object")]
    MessageNotAnObject { index: usize },
    /// One parser reads the first, another the last: what we check would not be what the upstream answers.
    #[error("`messages` occurs twice")]
    DuplicateMessages,
    #[error("`{0}` occurs twice")]
    Ambiguous(&'static str),
}

impl Unreadable {
    /// A word for logs and metrics that says nothing of the request's content.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Unreadable::TooLarge => "too_large",
            Unreadable::NotUtf8 => "not_utf8",
            Unreadable::NotJson { .. } => "not_json",
            Unreadable::TooDeep => "too_deep",
            Unreadable::NotAnObject => "not_an_object",
            Unreadable::NoMessages => "no_messages",
            Unreadable::MessagesNotAnArray => "messages_not_an_array",
            Unreadable::MessageNotAnObject { .. } => "message_not_an_object",
            Unreadable::DuplicateMessages => "duplicate_messages",
            Unreadable::Ambiguous(_) => "ambiguous",
        }
    }
}
