use crate::cursor::whole_message;
use crate::envelope::MemberTable;
use crate::{Answer, MessageFacts, MessageView, OwnText, Unreadable, chat};
use bytes::Bytes;

/// An API that clients speak: the JSON shape of its requests, responses and event streams.
///
/// Each method is one exhaustive `match` that calls the dialect's module. To add a dialect, add a variant, list it in `ALL`, and write
/// the functions that the compiler then asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// OpenAI's chat completions, `POST …/chat/completions`.
    Chat,
}

/// The role of a message that Tidegate writes itself: a summary, pinned notes, or a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OwnRole {
    User,
    System,
}

/// Whether a stream goes on after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamState {
    Open,
    Done,
}

impl Dialect {
    const ALL: [Dialect; 1] = [Dialect::Chat];

    /// Returns the dialect of a canonical path (lower case, no trailing slash), or `None` if requests to it are never edited.
    ///
    /// ```
    /// use tidegate_wire::Dialect;
    /// assert_eq!(Dialect::of_path("/v1/chat/completions"), Some(Dialect::Chat));
    /// assert_eq!(Dialect::of_path("/v1/embeddings"), None);
    /// ```
    #[must_use]
    pub fn of_path(path: &str) -> Option<Dialect> {
        Dialect::ALL.into_iter().find(|dialect| path.ends_with(dialect.path_suffix()))
    }

    fn path_suffix(self) -> &'static str {
        match self {
            Dialect::Chat => chat::PATH_SUFFIX,
        }
    }

    /// Returns the member of the body that holds the messages.
    pub(crate) fn messages_key(self) -> &'static str {
        match self {
            Dialect::Chat => chat::MESSAGES_KEY,
        }
    }

    /// Returns the other members of the body that have a meaning for Tidegate.
    pub(crate) fn members(self) -> &'static MemberTable {
        match self {
            Dialect::Chat => &chat::MEMBERS,
        }
    }

    /// Reads one message that [`split`](crate::split) has cut out, and checks every byte of it.
    ///
    /// ```
    /// use tidegate_wire::{Content, Dialect};
    /// let view = Dialect::Chat.read_message(br#"{"role":"tool","tool_call_id":"c1","content":"42"}"#).unwrap();
    /// assert_eq!(view.tool_call_id.as_deref(), Some("c1"));
    /// assert_eq!(view.content, Content::Text("42".into()));
    /// ```
    pub fn read_message(self, raw: &[u8]) -> Result<MessageView<'_>, Unreadable> {
        let message = whole_message(raw)?;
        match self {
            Dialect::Chat => chat::read_message(message),
        }
    }

    /// Extracts the facts that the engine and [`splice`](crate::splice()) need from a message that has been read.
    #[must_use]
    pub fn facts(self, view: &MessageView<'_>) -> MessageFacts {
        match self {
            Dialect::Chat => chat::facts(view),
        }
    }

    /// Reads one message and returns only its facts.
    pub fn read_facts(self, raw: &[u8]) -> Result<MessageFacts, Unreadable> {
        self.read_message(raw).map(|view| self.facts(&view))
    }

    /// Renders a message of our own as a JSON object.
    #[must_use]
    pub fn own_message(self, role: OwnRole, text: &str) -> Bytes {
        match self {
            Dialect::Chat => chat::own_message(role, text),
        }
    }

    /// Returns the text of a user message of our own, to be put into a message of the client's with this cache marker. `None` if
    /// it has another role.
    #[must_use]
    pub fn own_text(self, own: &Bytes, marker: Option<Bytes>) -> Option<OwnText> {
        match self {
            Dialect::Chat => chat::own_text(own, marker),
        }
    }

    /// Joins two messages of our own to one.
    #[must_use]
    pub fn joined(self, first: &Bytes, second: &Bytes) -> Bytes {
        match self {
            Dialect::Chat => chat::joined(first, second),
        }
    }

    /// Adds a cache marker to a message of our own. `marker` is the value of the client's.
    #[must_use]
    pub fn with_breakpoint(self, own: &Bytes, marker: &[u8]) -> Bytes {
        match self {
            Dialect::Chat => chat::with_breakpoint(own, marker),
        }
    }

    /// Reads a response that is one JSON document. Returns `None` if it is not a JSON object.
    #[must_use]
    pub fn read_answer(self, body: &[u8]) -> Option<Answer> {
        let mut answer = Answer::default();
        let is_read = match self {
            Dialect::Chat => chat::read_answer(body, &mut answer),
        };
        is_read.then_some(answer)
    }

    /// Adds the data of one server-sent event to the answer. Data that cannot be read is ignored.
    pub(crate) fn read_event(self, data: &[u8], answer: &mut Answer) -> StreamState {
        match self {
            Dialect::Chat => chat::read_event(data, answer),
        }
    }

    /// Renders an answer as the message that the client will add to its history and send back.
    ///
    /// Returns `None` if the answer failed, is incomplete or is empty.
    #[must_use]
    pub fn answer_message(self, answer: &Answer) -> Option<Vec<u8>> {
        match self {
            Dialect::Chat => chat::answer_message(answer),
        }
    }

    /// Renders an error of our own as a response body. `kind` becomes the member `type`.
    ///
    /// ```
    /// use tidegate_wire::Dialect;
    /// let body = Dialect::Chat.error_body("no such route", "invalid_request_error", None, "not_found");
    /// assert_eq!(
    ///     body,
    ///     br#"{"error":{"message":"no such route","type":"invalid_request_error","param":null,"code":"not_found"}}"#
    /// );
    /// ```
    #[must_use]
    pub fn error_body(self, message: &str, kind: &str, param: Option<&str>, code: &str) -> Vec<u8> {
        match self {
            Dialect::Chat => chat::error_body(message, kind, param, code),
        }
    }

    /// Renders the same error as one server-sent event, for a stream that breaks after it began.
    #[must_use]
    pub fn error_event(self, message: &str, kind: &str, param: Option<&str>, code: &str) -> Vec<u8> {
        match self {
            Dialect::Chat => chat::error_event(message, kind, param, code),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_selects_the_dialect() {
        for path in ["/v1/chat/completions", "/openai/deployments/x/chat/completions", "/chat/completions"] {
            assert_eq!(Dialect::of_path(path), Some(Dialect::Chat), "{path}");
        }
        for path in ["/", "/v1/completions", "/v1/chat/completions/x", "/v1/responses"] {
            assert_eq!(Dialect::of_path(path), None, "{path}");
        }
    }
}
