use crate::content_pieces::PartSpelling;
use crate::cursor::whole_message;
use crate::envelope::MemberTable;
use crate::responses::Side;
use crate::{
    Answer, ExtraKind, MessageFacts, MessageView, Outline, OwnText, Unreadable, chat, messages, responses,
    split,
};
use bytes::Bytes;
use tidegate_engine::Role;

/// An API that clients speak: the JSON shape of its requests, responses and event streams.
///
/// Each method is one exhaustive `match` that calls the dialect's module. To add a dialect, add a variant, list it in `ALL`, and write
/// the functions that the compiler then asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// OpenAI's chat completions, `POST …/chat/completions`.
    Chat,
    /// Anthropic's messages, `POST …/v1/messages`.
    Messages,
    /// OpenAI's responses, `POST …/responses`.
    Responses,
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
    const ALL: [Dialect; 3] = [Dialect::Chat, Dialect::Messages, Dialect::Responses];

    /// Returns the dialect of a canonical path (lower case, no trailing slash), or `None` if requests to it are never edited.
    ///
    /// ```
    /// use tidegate_wire::Dialect;
    /// assert_eq!(Dialect::of_path("/v1/chat/completions"), Some(Dialect::Chat));
    /// assert_eq!(Dialect::of_path("/v1/embeddings"), None);
    /// ```
    #[must_use]
    pub fn of_path(path: &str) -> Option<Dialect> {
        Dialect::ALL
            .into_iter()
            .find(|dialect| dialect.path_suffixes().iter().any(|suffix| path.ends_with(suffix)))
    }

    /// Guesses the dialect of a request whose path is not known. Only responses have `input`. Only Anthropic's messages have
    /// instructions outside the messages, and results that name a `tool_use_id`.
    #[must_use]
    pub fn of_body(body: &[u8]) -> Dialect {
        if split(Dialect::Responses, body).is_ok() {
            return Dialect::Responses;
        }
        let has_instructions = |outline: Outline| {
            outline.extras.iter().any(|extra| extra.kind == ExtraKind::Instructions)
                || outline.messages.iter().any(|message| messages::has_own_blocks(message.of(body)))
        };
        let is_messages = split(Dialect::Messages, body).is_ok_and(has_instructions);
        if is_messages { Dialect::Messages } else { Dialect::Chat }
    }

    /// The dialect with this [name](Dialect::name).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Dialect> {
        Dialect::ALL.into_iter().find(|dialect| dialect.name() == name)
    }

    /// The name in records.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Chat => "chat",
            Dialect::Messages => "messages",
            Dialect::Responses => "responses",
        }
    }

    /// The path that the dialect's own SDKs call.
    #[must_use]
    pub fn path(self) -> &'static str {
        match self {
            Dialect::Chat => "/v1/chat/completions",
            Dialect::Messages => "/v1/messages",
            Dialect::Responses => "/v1/responses",
        }
    }

    fn path_suffixes(self) -> &'static [&'static str] {
        match self {
            Dialect::Chat => chat::PATH_SUFFIXES,
            Dialect::Messages => messages::PATH_SUFFIXES,
            Dialect::Responses => responses::PATH_SUFFIXES,
        }
    }

    /// Whether user and assistant messages must alternate, so that a text of our own is a message only between two answers.
    #[must_use]
    pub fn alternates(self) -> bool {
        match self {
            Dialect::Chat | Dialect::Responses => false,
            Dialect::Messages => true,
        }
    }

    /// Returns the member of the body that holds the messages.
    #[must_use]
    pub fn messages_key(self) -> &'static str {
        match self {
            Dialect::Chat => chat::MESSAGES_KEY,
            Dialect::Messages => messages::MESSAGES_KEY,
            Dialect::Responses => responses::MESSAGES_KEY,
        }
    }

    /// What a request of this API asks for, with an article.
    #[must_use]
    pub fn noun(self) -> &'static str {
        match self {
            Dialect::Chat => "a chat completion",
            Dialect::Messages => "a message",
            Dialect::Responses => "a response",
        }
    }

    /// The member of the body that limits the answer.
    #[must_use]
    pub fn output_limit_key(self) -> &'static str {
        match self {
            Dialect::Chat | Dialect::Messages => "max_tokens",
            Dialect::Responses => "max_output_tokens",
        }
    }

    /// Whether a text can stand in place of the messages: the only one, a user's.
    pub(crate) fn takes_text(self) -> bool {
        match self {
            Dialect::Chat | Dialect::Messages => false,
            Dialect::Responses => true,
        }
    }

    /// Whether an element of the messages is the model's, or part of what is.
    #[must_use]
    pub fn is_answer(self, element: &[u8]) -> bool {
        match self.side(element) {
            Some(side) => side == Side::Model,
            None => self.read_facts(element).is_ok_and(|facts| facts.role == Role::Assistant),
        }
    }

    /// Who has written an element of the messages. `None` if each is a message of its own; otherwise those of the model in a row are
    /// one message.
    pub(crate) fn side(self, element: &[u8]) -> Option<Side> {
        match self {
            Dialect::Chat | Dialect::Messages => None,
            Dialect::Responses => Some(responses::side(element)),
        }
    }

    /// How a part of a content is spelled that is a text of ours.
    pub(crate) fn text_part(self) -> &'static PartSpelling {
        match self {
            Dialect::Chat | Dialect::Messages => &chat::TEXT_PART,
            Dialect::Responses => &responses::TEXT_PART,
        }
    }

    /// Returns a message that was cut out of a request as one JSON value, to be recorded.
    #[must_use]
    pub fn recorded(self, message: Bytes) -> Bytes {
        match self {
            Dialect::Chat | Dialect::Messages => message,
            Dialect::Responses => responses::recorded(message),
        }
    }

    /// Guesses the dialect of a recorded message. Only the items of responses have a type, and only runs of them are arrays.
    #[must_use]
    pub fn of_recorded(message: &[u8]) -> Dialect {
        if responses::is_recorded_item(message) { Dialect::Responses } else { Dialect::Chat }
    }

    /// Returns a recorded message as it stands in a request, where others are before and after it.
    #[must_use]
    pub fn sent(self, recorded: &[u8]) -> &[u8] {
        match self {
            Dialect::Chat | Dialect::Messages => recorded,
            Dialect::Responses => responses::sent(recorded),
        }
    }

    /// Returns the other members of the body that have a meaning for Tidegate.
    pub(crate) fn members(self) -> &'static MemberTable {
        match self {
            Dialect::Chat => &chat::MEMBERS,
            Dialect::Messages => &messages::MEMBERS,
            Dialect::Responses => &responses::MEMBERS,
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
        match self {
            Dialect::Chat => chat::read_message(whole_message(raw)?),
            Dialect::Messages => messages::read_message(whole_message(raw)?),
            Dialect::Responses => responses::read_message(raw),
        }
    }

    /// Extracts the facts that the engine and [`splice`](crate::splice()) need from a message that has been read.
    #[must_use]
    pub fn facts(self, view: &MessageView<'_>) -> MessageFacts {
        match self {
            Dialect::Chat => chat::facts(view),
            Dialect::Messages => messages::facts(view),
            Dialect::Responses => responses::facts(view),
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
            Dialect::Chat | Dialect::Responses => chat::own_message(role, text),
            Dialect::Messages => messages::own_message(role, text),
        }
    }

    /// Returns the text of a user message of our own, to be put into a message of the client's with this cache marker. `None` if
    /// it has another role.
    #[must_use]
    pub fn own_text(self, own: &Bytes, marker: Option<Bytes>) -> Option<OwnText> {
        match self {
            Dialect::Chat | Dialect::Messages | Dialect::Responses => chat::own_text(own, marker),
        }
    }

    /// Joins two messages of our own to one.
    #[must_use]
    pub fn joined(self, first: &Bytes, second: &Bytes) -> Bytes {
        match self {
            Dialect::Chat | Dialect::Messages | Dialect::Responses => chat::joined(first, second),
        }
    }

    /// Adds a cache marker to a message of our own. `marker` is the value of the client's.
    #[must_use]
    pub fn with_breakpoint(self, own: &Bytes, marker: &[u8]) -> Bytes {
        match self {
            Dialect::Chat | Dialect::Messages => chat::with_breakpoint(own, marker),
            Dialect::Responses => responses::with_breakpoint(own, marker),
        }
    }

    /// Reads a response that is one JSON document. Returns `None` if it is not a JSON object.
    #[must_use]
    pub fn read_answer(self, body: &[u8]) -> Option<Answer> {
        let mut answer = Answer::default();
        let is_read = match self.answered_in(body) {
            Dialect::Chat => chat::read_answer(body, &mut answer),
            Dialect::Messages => messages::read_answer(body, &mut answer),
            Dialect::Responses => responses::read_answer(body, &mut answer),
        };
        is_read.then_some(answer)
    }

    /// The dialect of an answer to a request of this one. Gateways that take one API's requests at the other's path answer in either.
    fn answered_in(self, answer: &[u8]) -> Dialect {
        // The members that tell stand at the beginning. In a text of the model's, the quotes would be escaped.
        let start = &answer[..answer.len().min(256)];
        let has = |marks: &[&[u8]]| marks.iter().any(|mark| memchr::memmem::find(start, mark).is_some());
        match self {
            Dialect::Chat if has(responses::ANSWER_MARKS) => Dialect::Responses,
            Dialect::Responses if has(chat::ANSWER_MARKS) => Dialect::Chat,
            Dialect::Chat | Dialect::Responses | Dialect::Messages => self,
        }
    }

    /// Adds the data of one server-sent event to the answer. Data that cannot be read is ignored.
    pub(crate) fn read_event(self, data: &[u8], answer: &mut Answer) -> StreamState {
        match self.answered_in(data) {
            Dialect::Chat => chat::read_event(data, answer),
            Dialect::Messages => messages::read_event(data, answer),
            Dialect::Responses => responses::read_event(data, answer),
        }
    }

    /// Renders an answer as the message that the client will add to its history and send back.
    ///
    /// Returns `None` if the answer failed, is incomplete or is empty.
    #[must_use]
    pub fn answer_message(self, answer: &Answer) -> Option<Vec<u8>> {
        match self {
            Dialect::Chat => chat::answer_message(answer),
            Dialect::Messages => messages::answer_message(answer),
            Dialect::Responses => responses::answer_message(answer),
        }
    }

    /// The same for a history that is kept here: a message that the API takes back, also where the answer has no words, or ends in the
    /// middle of a call. What the API would refuse is left out, and where nothing is left, a text says so.
    ///
    /// Returns `None` if the answer failed or is too long to keep.
    #[must_use]
    pub fn answer_to_keep(self, answer: &Answer) -> Option<Vec<u8>> {
        if answer.failed || answer.truncated {
            return None;
        }
        match self {
            Dialect::Chat => chat::answer_to_keep(answer),
            Dialect::Messages => messages::answer_to_keep(answer),
            Dialect::Responses => responses::answer_to_keep(answer),
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
            Dialect::Chat | Dialect::Responses => chat::error_body(message, kind, param, code),
            Dialect::Messages => messages::error_body(message, kind, code),
        }
    }

    /// Renders the same error as one server-sent event, for a stream that breaks after it began.
    #[must_use]
    pub fn error_event(self, message: &str, kind: &str, param: Option<&str>, code: &str) -> Vec<u8> {
        match self {
            Dialect::Chat => chat::error_event(message, kind, param, code),
            Dialect::Messages => messages::error_event(message, kind, code),
            Dialect::Responses => responses::error_event(message, kind, param, code),
        }
    }
}

/// Whether a member of the body holds the messages in any dialect.
pub(crate) fn is_messages_key(key: &str) -> bool {
    Dialect::ALL.into_iter().any(|dialect| dialect.messages_key() == key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_in_its_own_dialect() {
        let response = br#"{"id":"r","object":"response","status":"completed","usage":{"input_tokens":7,"output_tokens":1,"input_tokens_details":{}}}"#;
        let completion = br#"{"id":"c","object":"chat.completion","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":1}}"#;
        let completed = [br#"{"type":"response.completed","response":"#, &response[..], b"}"].concat();
        let chunk = br#"{"object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":1}}"#;
        for dialect in [Dialect::Chat, Dialect::Responses] {
            for document in [&response[..], completion] {
                let usage = dialect.read_answer(document).unwrap().usage.unwrap();
                assert_eq!(usage.prompt_tokens, 7, "{dialect:?}");
            }
            for event in [&completed[..], chunk] {
                let mut answer = Answer::default();
                dialect.read_event(event, &mut answer);
                assert_eq!(answer.usage.unwrap().prompt_tokens, 7, "{dialect:?}");
            }
        }
        let quoting = br#"{"choices":[{"delta":{"content":"{\"type\":\"response.completed\"}"}}]}"#;
        let mut answer = Answer::default();
        Dialect::Chat.read_event(quoting, &mut answer);
        assert_eq!(answer.content.as_deref(), Some(r#"{"type":"response.completed"}"#));
    }

    #[test]
    fn the_path_selects_the_dialect() {
        for path in ["/v1/chat/completions", "/openai/deployments/x/chat/completions", "/chat/completions"] {
            assert_eq!(Dialect::of_path(path), Some(Dialect::Chat), "{path}");
        }
        for path in ["/v1/messages", "/proxy/v1/messages", "/anthropic/messages"] {
            assert_eq!(Dialect::of_path(path), Some(Dialect::Messages), "{path}");
        }
        for path in ["/v1/responses", "/openai/v1/responses", "/responses"] {
            assert_eq!(Dialect::of_path(path), Some(Dialect::Responses), "{path}");
        }
        for path in [
            "/",
            "/v1/completions",
            "/v1/chat/completions/x",
            "/v1/responses/compact",
            "/v1/responses/resp_1/cancel",
            "/v1/responses/input_tokens",
            "/v1/messages/count_tokens",
            "/v1/messages/batches",
            "/v1/threads/t/messages",
        ] {
            assert_eq!(Dialect::of_path(path), None, "{path}");
        }
    }
}
