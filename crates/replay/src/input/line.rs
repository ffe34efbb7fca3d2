//! One line: a conversation, or a request.

use super::members::Members;
use super::recorded::Recorded;
use super::time::{NAMES, milliseconds};
use super::{FORMS, InputError, Unread};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// What a line does not say.
#[derive(Clone, Debug, Default)]
pub struct Defaults {
    /// The model of every conversation, whatever the file says.
    pub model: Option<String>,
}

/// What the lines of a file are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Conversations,
    Requests,
}

/// A request of a log, with what stands beside it.
#[derive(Debug)]
pub(super) struct Logged {
    pub(super) line: Unread,
    pub(super) body: Bytes,
    pub(super) conversation: Option<String>,
    pub(super) at: Option<u64>,
}

/// A line that is a conversation. Only what a provider bills or the proxy looks at goes into its requests.
#[derive(Deserialize)]
struct Whole<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    model: Option<Cow<'a, str>>,
    memory: Option<Cow<'a, str>>,
    messages: Option<Vec<&'a RawValue>>,
    /// When each message was recorded, as an export says it. There every message was part of a request.
    times: Option<Vec<u64>>,
    tools: Option<&'a RawValue>,
    functions: Option<&'a RawValue>,
    tool_choice: Option<&'a RawValue>,
    response_format: Option<&'a RawValue>,
    max_tokens: Option<&'a RawValue>,
    max_completion_tokens: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Spoken<'a> {
    #[serde(borrow)]
    role: Option<Cow<'a, str>>,
}

/// A line of a log around a request.
#[derive(Deserialize)]
struct Wrapped<'a> {
    #[serde(borrow)]
    body: Option<&'a RawValue>,
    request: Option<&'a RawValue>,
    headers: Option<&'a RawValue>,
    conversation_id: Option<&'a RawValue>,
}

impl Unread {
    /// What the lines of a file are that begins with this one.
    pub(super) fn form(&self) -> Result<Form, InputError> {
        let members = self.members(&self.text)?;
        let has = |name: &str| members.iter().any(|(member, _)| member == name);
        if !has("messages") {
            if has("body") || has("request") {
                return Ok(Form::Requests);
            }
            return Err(self.wrong("there are no `messages` in it", FORMS));
        }
        if has("id") {
            return Ok(Form::Conversations);
        }
        // Without a name it is a conversation only if the assistant has the last word: no request ends like that.
        let whole = self.whole()?;
        let last = whole.messages.and_then(|messages| messages.last().copied());
        let role = last.and_then(|last| serde_json::from_str::<Spoken<'_>>(last.get()).ok()?.role);
        Ok(if role.as_deref() == Some("assistant") { Form::Conversations } else { Form::Requests })
    }

    /// The conversation that the line is.
    pub fn conversation(&self, defaults: &Defaults) -> Result<Recorded, InputError> {
        let whole = self.whole()?;
        let Some(messages) = whole.messages else {
            return Err(self.wrong("there are no `messages` in it", FORMS));
        };
        if whole.times.as_ref().is_some_and(|times| times.len() != messages.len()) {
            return Err(self.wrong("`times` are not as many as `messages`", "remove `times` from the line"));
        }
        let mut text = vec![b'{'];
        let model = defaults
            .model
            .as_deref()
            .or(whole.model.as_deref())
            .map(|name| serde_json::json!(name).to_string());
        let others = [
            ("model", model.as_deref()),
            ("max_tokens", whole.max_tokens.map(RawValue::get)),
            ("max_completion_tokens", whole.max_completion_tokens.map(RawValue::get)),
            ("tools", whole.tools.map(RawValue::get)),
            ("functions", whole.functions.map(RawValue::get)),
            ("tool_choice", whole.tool_choice.map(RawValue::get)),
            ("response_format", whole.response_format.map(RawValue::get)),
        ];
        for (name, value) in others.into_iter().filter_map(|(name, value)| Some((name, value?))) {
            text.extend_from_slice(format!("\"{name}\":{value},").as_bytes());
        }
        text.extend_from_slice(b"\"messages\":[");
        let (mut ends, mut times, mut latest, mut is_open) = (Vec::new(), Vec::new(), None, false);
        for (number, message) in messages.iter().enumerate() {
            let (role, at) = self.spoken(number, message)?;
            is_open = role != "assistant";
            if !is_open && number > 0 {
                ends.push(text.len());
                times.push(std::mem::take(&mut latest));
            }
            if number > 0 {
                text.push(b',');
            }
            self.write(&mut text, message, at.is_some())?;
            let at = whole.times.as_ref().map_or(at, |times| Some(times[number]));
            latest = latest.max(at);
        }
        // Where every message came with a request, the last ones did too. So they did where nobody ever answered.
        if is_open && (whole.times.is_some() || ends.is_empty()) {
            ends.push(text.len());
            times.push(latest);
        }
        let id = whole.id.map_or_else(|| format!("{}:{}", self.file, self.line), named);
        let memory = whole.memory.map(|memory| memory.as_ref().into());
        Ok(Recorded::of_prefixes(id, memory, text, ends, times))
    }

    /// The request that the line is or holds.
    pub(super) fn request(self, defaults: &Defaults) -> Result<Logged, InputError> {
        let members = self.members(&self.text)?;
        let at = members
            .iter()
            .filter(|(name, _)| NAMES.contains(&name.as_ref()))
            .find_map(|(_, at)| milliseconds(at));
        let is_plain = members.iter().any(|(name, _)| name == "messages");
        let (body, conversation) = if is_plain {
            (Bytes::copy_from_slice(self.text.trim_ascii()), None)
        } else {
            let wrapped: Wrapped<'_> =
                serde_json::from_slice(&self.text).map_err(|error| self.wrong(error.to_string(), FORMS))?;
            let Some(body) = wrapped.body.or(wrapped.request) else {
                return Err(self.wrong("there are neither `messages` nor a `body` in it", FORMS));
            };
            let conversation = wrapped.conversation_id.map(named).or_else(|| header(wrapped.headers?));
            // Loggers often write the body as a text.
            let text: Option<String> = serde_json::from_str(body.get()).ok();
            (Bytes::from(text.unwrap_or_else(|| body.get().to_owned())), conversation)
        };
        let body = match &defaults.model {
            Some(model) => self.with_model(&body, model)?,
            None => body,
        };
        Ok(Logged { line: self, body, conversation, at })
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

    fn whole(&self) -> Result<Whole<'_>, InputError> {
        serde_json::from_slice(&self.text).map_err(|error| self.wrong(error.to_string(), FORMS))
    }

    fn members<'a>(&self, text: &'a [u8]) -> Result<Vec<(Cow<'a, str>, &'a RawValue)>, InputError> {
        let members: Result<Members<'_>, _> = serde_json::from_slice(text);
        members
            .map(|members| members.0)
            .map_err(|error| self.wrong(format!("it is no JSON object: {error}"), FORMS))
    }

    /// Who speaks, and when.
    fn spoken<'a>(
        &self,
        number: usize,
        message: &'a RawValue,
    ) -> Result<(Cow<'a, str>, Option<u64>), InputError> {
        let bytes = message.get().as_bytes();
        let spoken: Result<Spoken<'a>, _> = serde_json::from_str(message.get());
        let role = spoken.ok().and_then(|spoken| spoken.role);
        let role = role.ok_or_else(|| {
            self.wrong(
                format!("message {number} has no `role`"),
                "a message is an object with `role` and `content`",
            )
        })?;
        if !mentions_time(bytes) {
            return Ok((role, None));
        }
        let members = self.members(bytes)?;
        let mut times = members.iter().filter(|(name, _)| NAMES.contains(&name.as_ref()));
        Ok((role, times.find_map(|(_, at)| milliseconds(at))))
    }

    /// A message as a client would have sent it: without the time that the recorder has put there.
    fn write(&self, text: &mut Vec<u8>, message: &RawValue, is_timed: bool) -> Result<(), InputError> {
        if !is_timed {
            text.extend_from_slice(message.get().as_bytes());
            return Ok(());
        }
        let members = self.members(message.get().as_bytes())?;
        text.push(b'{');
        let kept = members.iter().filter(|(name, _)| !NAMES.contains(&name.as_ref()));
        for (place, (name, value)) in kept.enumerate() {
            if place > 0 {
                text.push(b',');
            }
            text.extend_from_slice(format!("{}:{}", serde_json::json!(name), value.get()).as_bytes());
        }
        text.push(b'}');
        Ok(())
    }
}

/// Whether it is worth looking for a time. A quote inside a text is escaped, so that no text looks like this.
fn mentions_time(message: &[u8]) -> bool {
    let starts: [&[u8]; 3] = [b"\"tim", b"\"cre", b"\"ts\""];
    starts.iter().any(|start| memchr::memmem::find(message, start).is_some())
}

/// What a value says as a name.
fn named(value: &RawValue) -> String {
    serde_json::from_str::<String>(value.get()).unwrap_or_else(|_| value.get().to_owned())
}

/// The conversation that the headers of a request name.
fn header(headers: &RawValue) -> Option<String> {
    let Members(headers) = serde_json::from_str(headers.get()).ok()?;
    let named_so = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("x-conversation-id"));
    named_so.map(|(_, value)| named(value))
}
