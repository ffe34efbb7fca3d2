use crate::cursor::Value;
use crate::session::{self, Session};
use crate::{Dialect, MAX_DEPTH, Span, Unreadable};

/// The meaning of a member of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    Model,
    Stream,
    /// A name by which the client groups requests.
    Session,
    /// What the client notes for itself. It may name a session.
    Metadata,
    /// The client's limit on output tokens. If several are set, the first in the table wins.
    OutputLimit,
    /// A value that costs prompt tokens.
    Extra(ExtraKind),
    /// How the provider is to manage the context itself.
    Native,
    /// Where the provider finds the messages before those of the request.
    Upstream,
    /// A template of the provider's, which may hold all messages.
    Template,
    /// How much the model is to think: a word, or an object with one under `effort`.
    Reasoning,
    /// Has the provider set cache breakpoints itself.
    Breakpoints,
    /// Not used, but refused if it occurs twice.
    Unused,
}

/// The members that a dialect gives a meaning. Each may occur once: parsers disagree on which of two values counts, so we might
/// act on another than the upstream does.
pub(crate) struct MemberTable(&'static [(&'static str, Meaning)]);

/// The maximum number of entries in a [`MemberTable`].
const MAX_MEMBERS: usize = 17;

impl MemberTable {
    pub(crate) const fn new(members: &'static [(&'static str, Meaning)]) -> MemberTable {
        assert!(members.len() <= MAX_MEMBERS);
        MemberTable(members)
    }
}

/// A value of the envelope that the model reads besides the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extra {
    pub kind: ExtraKind,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExtraKind {
    /// Definitions of tools.
    Tools,
    /// Instructions that stand outside the messages: a text, or a list of text blocks.
    Instructions,
    /// The format or schema that the answer must have.
    ResponseFormat,
}

/// The words of instructions that stand outside the messages.
pub(crate) fn instruction_text(raw: &[u8]) -> String {
    let value = Value::whole(raw, MAX_DEPTH);
    let mut texts = Vec::new();
    let read = match value.first() {
        Some(b'[') => value.elements(|block| {
            block.members_of_object(|key, value| {
                if key == "text" {
                    texts.extend(value.text()?.map(|text| text.into_owned()));
                }
                Ok(())
            })
        }),
        _ => value.text().map(|text| texts.extend(text.map(|text| text.into_owned()))),
    };
    // Blocks that cannot be read are counted as they are.
    if read.is_ok() { texts.join("\n") } else { String::from_utf8_lossy(raw).into_owned() }
}

/// Finds the block of instructions in which Claude Code says who pays. It holds a hash that is another one in every request, so as a
/// part of the prompt's head it would make every cache look cold. Anthropic takes it out of the prompt.
pub(crate) fn attribution(raw: &[u8]) -> Option<Span> {
    const START: &str = "x-anthropic-billing-header:";
    memchr::memmem::find(raw, START.as_bytes())?;
    let blocks = Some(Value::whole(raw, MAX_DEPTH)).filter(|value| value.first() == Some(b'['))?;
    let mut found = None;
    let read = blocks.elements(|block| {
        block.members_of_object(|key, value| {
            if key == "text" && value.text()?.is_some_and(|text| text.starts_with(START)) {
                found.get_or_insert(block.span());
            }
            Ok(())
        })
    });
    found.filter(|_| read.is_ok())
}

/// The list without this element of it.
pub(crate) fn without(list: &[u8], element: Span) -> Vec<u8> {
    let (before, after) = (&list[..element.range().start], &list[element.range().end..]);
    let rest = after.trim_ascii_start();
    match (rest.strip_prefix(b","), before.trim_ascii_end().strip_suffix(b",")) {
        (Some(rest), _) => [before, rest].concat(),
        (None, Some(before)) => [before, rest].concat(),
        (None, None) => [before, after].concat(),
    }
}

/// Whether a cache marker asks for the longer of the two lives that there are.
#[must_use]
pub fn lives_an_hour(marker: &[u8]) -> bool {
    memchr::memmem::find(marker, b"\"1h\"").is_some()
}

/// Whether the provider is asked to take parts of the conversation away. What it keeps of earlier thinking is no such part: Claude Code
/// says that in every request.
fn asks_native(value: Value<'_>) -> Result<bool, Unreadable> {
    if value.first() != Some(b'{') {
        return Ok(!matches!(value.raw(), b"null" | b"[]"));
    }
    let mut asks = false;
    value.members_of_object(|key, value| {
        if key != "edits" || value.first() != Some(b'[') {
            asks |= value.raw() != b"null";
            return Ok(());
        }
        value.elements(|edit| {
            let mut is_of_thinking = false;
            edit.members_of_object(|key, value| {
                if key == "type" {
                    let kind = value.text()?;
                    is_of_thinking = kind.is_some_and(|kind| kind.starts_with("clear_thinking_"));
                }
                Ok(())
            })?;
            asks |= !is_of_thinking;
            Ok(())
        })
    })?;
    Ok(asks)
}

fn reasoning_level(value: Value<'_>) -> Result<Option<String>, Unreadable> {
    if value.first() != Some(b'{') {
        return Ok(value.text()?.map(|level| shortened(&level)));
    }
    let mut level = None;
    value.members_of_object(|key, value| {
        if key == "effort" {
            level = value.text()?.map(|level| shortened(&level));
        }
        Ok(())
    })?;
    Ok(level)
}

/// What is only reported must not grow with the request.
fn shortened(text: &str) -> String {
    const LONGEST: usize = 128;
    text.chars().take(LONGEST).collect()
}

/// The client's limit on output tokens, and the member that sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputLimit {
    pub key: &'static str,
    pub tokens: u64,
}

/// The members of a body's envelope that have been read so far.
pub(crate) struct Envelope {
    members: &'static [(&'static str, Meaning)],
    /// The value of each member, by its position in the table.
    values: [Option<Span>; MAX_MEMBERS],
    pub(crate) model: Option<String>,
    pub(crate) stream: bool,
    pub(crate) asks_native: bool,
    pub(crate) continues_upstream: bool,
    pub(crate) names_template: bool,
    pub(crate) previous_response: Option<String>,
    pub(crate) reasoning_level: Option<String>,
    /// The names of sessions, each with its position in the table.
    sessions: Vec<(usize, String)>,
    pub(crate) sets_breakpoints: bool,
    pub(crate) sets_long_breakpoints: bool,
    /// The limit, with its position in the table.
    output_limit: Option<(usize, u64)>,
}

impl Envelope {
    pub(crate) fn new(dialect: Dialect) -> Envelope {
        Envelope {
            members: dialect.members().0,
            values: [None; MAX_MEMBERS],
            model: None,
            stream: false,
            asks_native: false,
            continues_upstream: false,
            names_template: false,
            previous_response: None,
            reasoning_level: None,
            sessions: Vec::new(),
            sets_breakpoints: false,
            sets_long_breakpoints: false,
            output_limit: None,
        }
    }

    /// Reads a member if it has a meaning. Returns whether its value has been checked in full.
    pub(crate) fn read(&mut self, key: &str, value: Value<'_>) -> Result<bool, Unreadable> {
        let Some(position) = self.members.iter().position(|(known, _)| *known == key) else {
            return Ok(false);
        };
        let (key, meaning) = self.members[position];
        let is_checked = match meaning {
            Meaning::Model => {
                self.model = value.text()?.map(|text| text.into_owned());
                true
            }
            Meaning::Session => {
                let name = value.text()?.filter(|name| !name.is_empty());
                self.sessions.extend(name.map(|name| (position, name.into_owned())));
                true
            }
            Meaning::Metadata => {
                self.sessions.extend(session::of_metadata(value)?.map(|name| (position, name)));
                false
            }
            Meaning::Stream => {
                value.check()?;
                self.stream = value.raw() == b"true";
                true
            }
            Meaning::Breakpoints => {
                value.check()?;
                self.sets_breakpoints = value.raw() != b"null";
                self.sets_long_breakpoints = lives_an_hour(value.raw());
                true
            }
            Meaning::OutputLimit => {
                let limit = value.integer()?.map(|tokens| (position, tokens));
                self.output_limit = [self.output_limit, limit].into_iter().flatten().min();
                true
            }
            Meaning::Native => {
                self.asks_native |= asks_native(value)?;
                false
            }
            Meaning::Upstream => {
                value.check()?;
                self.continues_upstream |= value.raw().len() > 2 && value.raw() != b"null";
                if key == "previous_response_id" {
                    self.previous_response = value.text()?.map(|id| shortened(&id));
                }
                true
            }
            Meaning::Template => {
                self.names_template = value.first() == Some(b'{');
                false
            }
            Meaning::Reasoning => {
                self.reasoning_level = reasoning_level(value)?.or(self.reasoning_level.take());
                // It is only reported, so which of two counts is the provider's to say.
                return Ok(false);
            }
            Meaning::Extra(_) | Meaning::Unused => false,
        };
        match self.values[position].replace(value.span()) {
            None => Ok(is_checked),
            Some(_) => Err(Unreadable::Ambiguous(key)),
        }
    }

    pub(crate) fn output_limit(&self) -> Option<OutputLimit> {
        self.output_limit.map(|(position, tokens)| OutputLimit { key: self.members[position].0, tokens })
    }

    /// The names of sessions, in the order of the table.
    pub(crate) fn sessions(&mut self) -> Vec<Session> {
        let mut sessions = std::mem::take(&mut self.sessions);
        sessions.sort_unstable();
        let named = |(position, id): (usize, String)| Session { member: self.members[position].0, id };
        sessions.into_iter().map(named).collect()
    }

    /// The values that cost prompt tokens, in the order of the table, whatever their order in the body.
    pub(crate) fn extras(&self) -> Vec<Extra> {
        let members = self.members.iter().zip(self.values);
        members
            .filter_map(|((_, meaning), span)| match meaning {
                Meaning::Extra(kind) => Some(Extra { kind: *kind, span: span? }),
                Meaning::Model
                | Meaning::Stream
                | Meaning::Session
                | Meaning::Metadata
                | Meaning::OutputLimit
                | Meaning::Native
                | Meaning::Upstream
                | Meaning::Template
                | Meaning::Reasoning
                | Meaning::Breakpoints
                | Meaning::Unused => None,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{attribution, without};
    use crate::{Dialect, split};

    #[test]
    fn the_attribution_is_a_text_block_that_begins_with_its_name() {
        let rest = |raw: &str| {
            let block = attribution(raw.as_bytes())?;
            Some(String::from_utf8(without(raw.as_bytes(), block)).unwrap())
        };
        let block = r#"{"type":"text","text":"x-anthropic-billing-header: cc_version=2.1; cch=0a1b2;"}"#;
        let brief = r#"{"text":"Be brief."}"#;
        assert_eq!(rest(&format!("[{block} , {brief}]")).unwrap(), format!("[ {brief}]"));
        assert_eq!(rest(&format!("[{brief}, {block} ]")).unwrap(), format!("[{brief}]"));
        assert_eq!(rest(&format!("[{brief},{block},{brief}]")).unwrap(), format!("[{brief},{brief}]"));
        assert_eq!(rest(&format!("[{block}]")).unwrap(), "[]");
        for other in [
            r#""x-anthropic-billing-header: cch=0a1b2;""#,
            r#"[{"type":"text","text":"Mind the x-anthropic-billing-header: it is secret."}]"#,
            r#"[{"type":"text","name":"x-anthropic-billing-header: a"}]"#,
            r#"["x-anthropic-billing-header: a"]"#,
            "[]",
        ] {
            assert_eq!(rest(other), None, "{other}");
        }
    }

    #[test]
    fn the_level_of_reasoning_and_the_previous_response_are_read() {
        let read = |dialect, body: &str| {
            let outline = split(dialect, body.as_bytes()).unwrap();
            (outline.reasoning_level, outline.previous_response)
        };
        let some = |text: &str| Some(text.to_owned());
        let asked =
            r#"{"input":"a","reasoning":{"summary":"auto","effort":"high"},"previous_response_id":"resp_1"}"#;
        assert_eq!(read(Dialect::Responses, asked), (some("high"), some("resp_1")));
        let neither = r#"{"input":"a","reasoning":null,"previous_response_id":null,"conversation":"c"}"#;
        assert_eq!(read(Dialect::Responses, neither), (None, None));
        assert_eq!(read(Dialect::Chat, r#"{"messages":[],"reasoning_effort":"low"}"#), (some("low"), None));
        // Refusing what only a report would name would be worse than not naming it.
        assert_eq!(
            read(Dialect::Chat, r#"{"messages":[],"reasoning_effort":5,"reasoning_effort":"low"}"#).0,
            some("low")
        );
    }

    #[test]
    fn only_what_takes_something_away_is_asked_of_the_provider() {
        let asks = |value: &str| {
            let body = format!(r#"{{"messages":[],"context_management":{value}}}"#);
            split(Dialect::Messages, body.as_bytes()).unwrap().asks_native
        };
        for value in [
            "null",
            "{}",
            "[]",
            r#"{"edits":[]}"#,
            r#"{"edits":null}"#,
            r#"{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]}"#,
        ] {
            assert!(!asks(value), "{value}");
        }
        for value in [
            r#"{"edits":[{"type":"clear_thinking_20251015"},{"type":"clear_tool_uses_20250919"}]}"#,
            r#"{"edits":[{"type":"compact_20260112"}]}"#,
            r#"{"edits":[5]}"#,
            r#"{"new":1}"#,
            r#"[{"type":"compaction"}]"#,
            "5",
        ] {
            assert!(asks(value), "{value}");
        }
    }
}
