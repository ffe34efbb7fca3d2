//! Parses a line: a conversation or a request.

use super::members::Members;
use super::recorded::Recorded;
use super::time::{TIME_MEMBERS, milliseconds};
use super::{FORMAT_HINT, InputError, InputLine};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use tidegate_wire::Dialect;

/// Overrides for every line.
#[derive(Clone, Debug, Default)]
pub struct Defaults {
    /// The model of every conversation, instead of the one in the file.
    pub model: Option<String>,
}

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Conversations,
    Requests,
}

/// A request of a log, with its metadata.
#[derive(Debug)]
pub(super) struct LoggedRequest {
    pub(super) line: InputLine,
    pub(super) body: Bytes,
    pub(super) conversation: Option<String>,
    pub(super) at: Option<u64>,
}

/// A line that is a conversation, with the members that a provider bills or the proxy reads.
#[derive(Deserialize)]
struct ConversationLine<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    model: Option<Cow<'a, str>>,
    memory: Option<Cow<'a, str>>,
    messages: Option<Vec<&'a RawValue>>,
    /// The items of OpenAI's responses.
    input: Option<Vec<&'a RawValue>>,
    /// When each message was recorded. Only exports have this; in them, every message was part of a request.
    times: Option<Vec<u64>>,
    tools: Option<&'a RawValue>,
    functions: Option<&'a RawValue>,
    tool_choice: Option<&'a RawValue>,
    response_format: Option<&'a RawValue>,
    text: Option<&'a RawValue>,
    system: Option<&'a RawValue>,
    instructions: Option<&'a RawValue>,
    max_output_tokens: Option<&'a RawValue>,
    max_tokens: Option<&'a RawValue>,
    max_completion_tokens: Option<&'a RawValue>,
    cache_control: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct MessageRole<'a> {
    #[serde(borrow)]
    role: Option<Cow<'a, str>>,
}

/// A log line that wraps a request.
#[derive(Deserialize)]
struct WrappedRequest<'a> {
    #[serde(borrow)]
    body: Option<&'a RawValue>,
    request: Option<&'a RawValue>,
    headers: Option<&'a RawValue>,
    conversation_id: Option<&'a RawValue>,
}

impl ConversationLine<'_> {
    fn dialect(&self) -> Dialect {
        if self.input.is_some() { Dialect::Responses } else { Dialect::Chat }
    }
}

impl InputLine {
    /// Detects the format of a file from its first line.
    pub(super) fn detect_format(&self) -> Result<Format, InputError> {
        let members = self.members(&self.text)?;
        let has = |name: &str| members.iter().any(|(member, _)| member == name);
        let has_messages = has("messages") || has("input");
        if !has_messages {
            if has("body") || has("request") {
                return Ok(Format::Requests);
            }
            return Err(self.error("there are no `messages`", FORMAT_HINT));
        }
        if has("id") {
            return Ok(Format::Conversations);
        }
        // Without an id, it is a conversation only if the last message is the assistant's; no request ends
        // like that.
        let Ok(line) = self.parse() else { return Ok(Format::Requests) };
        let (messages, dialect) = (line.messages.as_ref().or(line.input.as_ref()), line.dialect());
        let last = messages.and_then(|messages| messages.last().copied());
        let ends_with_answer = last.is_some_and(|last| dialect.is_answer(last.get().as_bytes()));
        Ok(if ends_with_answer { Format::Conversations } else { Format::Requests })
    }

    /// Parses the line as a conversation.
    pub fn conversation(&self, defaults: &Defaults) -> Result<Recorded, InputError> {
        let line = self.parse()?;
        let dialect = line.dialect();
        let Some(messages) = line.messages.or(line.input) else {
            return Err(self.error("there are no `messages`", FORMAT_HINT));
        };
        if line.times.as_ref().is_some_and(|times| times.len() != messages.len()) {
            return Err(
                self.error("`times` and `messages` have different lengths", "remove `times` from the line")
            );
        }
        let mut text = vec![b'{'];
        let model = defaults
            .model
            .as_deref()
            .or(line.model.as_deref())
            .map(|name| serde_json::json!(name).to_string());
        let others = [
            ("model", model.as_deref()),
            ("max_tokens", line.max_tokens.map(RawValue::get)),
            ("max_completion_tokens", line.max_completion_tokens.map(RawValue::get)),
            ("cache_control", line.cache_control.map(RawValue::get)),
            ("tools", line.tools.map(RawValue::get)),
            ("functions", line.functions.map(RawValue::get)),
            ("tool_choice", line.tool_choice.map(RawValue::get)),
            ("response_format", line.response_format.map(RawValue::get)),
            ("text", line.text.map(RawValue::get)),
            ("system", line.system.map(RawValue::get)),
            ("instructions", line.instructions.map(RawValue::get)),
            ("max_output_tokens", line.max_output_tokens.map(RawValue::get)),
        ];
        for (name, value) in others.into_iter().filter_map(|(name, value)| Some((name, value?))) {
            text.extend_from_slice(format!("\"{name}\":{value},").as_bytes());
        }
        text.extend_from_slice(format!("\"{}\":[", dialect.messages_key()).as_bytes());
        let (mut ends, mut times, mut latest, mut is_open) = (Vec::new(), Vec::new(), None, false);
        let mut follows_answer = false;
        for (number, message) in messages.iter().enumerate() {
            let (is_answer, at) = self.side_and_time(dialect, number, message)?;
            // The items of one answer follow each other.
            let begins = is_answer && !(follows_answer && dialect == Dialect::Responses);
            (is_open, follows_answer) = (!is_answer, is_answer);
            if begins && number > 0 {
                ends.push(text.len());
                times.push(std::mem::take(&mut latest));
            }
            if number > 0 {
                text.push(b',');
            }
            self.write_message(&mut text, message, at.is_some())?;
            let at = line.times.as_ref().map_or(at, |times| Some(times[number]));
            latest = latest.max(at);
        }
        // In an export, the last messages were part of a request too. So they are in a conversation without
        // any response.
        if is_open && (line.times.is_some() || ends.is_empty()) {
            ends.push(text.len());
            times.push(latest);
        }
        let id = line.id.map_or_else(|| format!("{}:{}", self.file, self.line), name_of);
        let memory = line.memory.map(|memory| memory.as_ref().into());
        Ok(Recorded::from_prefixes(id, memory, text, ends, times))
    }

    /// Parses the line as a request, alone or wrapped.
    pub(super) fn request(self, defaults: &Defaults) -> Result<LoggedRequest, InputError> {
        let members = self.members(&self.text)?;
        let at = members
            .iter()
            .filter(|(name, _)| TIME_MEMBERS.contains(&name.as_ref()))
            .find_map(|(_, at)| milliseconds(at));
        let is_plain = members.iter().any(|(name, _)| name == "messages" || name == "input");
        let (body, conversation) = if is_plain {
            (Bytes::copy_from_slice(self.text.trim_ascii()), None)
        } else {
            let wrapped: WrappedRequest<'_> = serde_json::from_slice(&self.text)
                .map_err(|error| self.error(error.to_string(), FORMAT_HINT))?;
            let Some(body) = wrapped.body.or(wrapped.request) else {
                return Err(self.error("there are neither `messages` nor a `body`", FORMAT_HINT));
            };
            let conversation =
                wrapped.conversation_id.map(name_of).or_else(|| conversation_header(wrapped.headers?));
            // Loggers often write the body as a string.
            let text: Option<String> = serde_json::from_str(body.get()).ok();
            (Bytes::from(text.unwrap_or_else(|| body.get().to_owned())), conversation)
        };
        let body = match &defaults.model {
            Some(model) => self.with_model(&body, model)?,
            None => body,
        };
        Ok(LoggedRequest { line: self, body, conversation, at })
    }

    /// The same request for another model.
    fn with_model(&self, body: &[u8], model: &str) -> Result<Bytes, InputError> {
        let members = self.members(body)?;
        let model = format!("\"model\":{}", serde_json::json!(model));
        let others = members.iter().filter(|(name, _)| name != "model");
        let others = others.map(|(name, value)| format!("{}:{}", serde_json::json!(name), value.get()));
        let all: Vec<String> = std::iter::once(model).chain(others).collect();
        Ok(format!("{{{}}}", all.join(",")).into())
    }

    fn parse(&self) -> Result<ConversationLine<'_>, InputError> {
        serde_json::from_slice(&self.text).map_err(|error| self.error(error.to_string(), FORMAT_HINT))
    }

    fn members<'a>(&self, text: &'a [u8]) -> Result<Vec<(Cow<'a, str>, &'a RawValue)>, InputError> {
        let members: Result<Members<'_>, _> = serde_json::from_slice(text);
        members
            .map(|members| members.0)
            .map_err(|error| self.error(format!("not a JSON object: {error}"), FORMAT_HINT))
    }

    /// Whether a message is an answer of the model's, and its time.
    fn side_and_time(
        &self,
        dialect: Dialect,
        number: usize,
        message: &RawValue,
    ) -> Result<(bool, Option<u64>), InputError> {
        let bytes = message.get().as_bytes();
        let parsed: Result<MessageRole<'_>, _> = serde_json::from_str(message.get());
        if dialect != Dialect::Responses && parsed.ok().and_then(|message| message.role).is_none() {
            return Err(self.error(
                format!("message {number} has no `role`"),
                "a message is an object with `role` and `content`",
            ));
        }
        let is_answer = dialect.is_answer(bytes);
        if !mentions_time(bytes) {
            return Ok((is_answer, None));
        }
        let members = self.members(bytes)?;
        let mut times = members.iter().filter(|(name, _)| TIME_MEMBERS.contains(&name.as_ref()));
        Ok((is_answer, times.find_map(|(_, at)| milliseconds(at))))
    }

    /// Writes a message as the client sent it, without the time that the recorder added.
    fn write_message(
        &self,
        text: &mut Vec<u8>,
        message: &RawValue,
        is_timed: bool,
    ) -> Result<(), InputError> {
        if !is_timed {
            text.extend_from_slice(message.get().as_bytes());
            return Ok(());
        }
        let members = self.members(message.get().as_bytes())?;
        text.push(b'{');
        let kept = members.iter().filter(|(name, _)| !TIME_MEMBERS.contains(&name.as_ref()));
        for (index, (name, value)) in kept.enumerate() {
            if index > 0 {
                text.push(b',');
            }
            text.extend_from_slice(format!("{}:{}", serde_json::json!(name), value.get()).as_bytes());
        }
        text.push(b'}');
        Ok(())
    }
}

/// A quick check for a time member. Quotes inside strings are escaped, so string content cannot match.
fn mentions_time(message: &[u8]) -> bool {
    let starts: [&[u8]; 3] = [b"\"tim", b"\"cre", b"\"ts\""];
    starts.iter().any(|start| memchr::memmem::find(message, start).is_some())
}

/// The value as a name: a string without its quotes.
fn name_of(value: &RawValue) -> String {
    serde_json::from_str::<String>(value.get()).unwrap_or_else(|_| value.get().to_owned())
}

/// The conversation named by the headers of a request.
fn conversation_header(headers: &RawValue) -> Option<String> {
    let Members(headers) = serde_json::from_str(headers.get()).ok()?;
    let header = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("x-conversation-id"));
    header.map(|(_, value)| name_of(value))
}
