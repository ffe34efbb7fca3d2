use super::CACHE_CONTROL;
use crate::cursor::{Value, once};
use crate::{Content, FunctionCall, Part, Span, ToolCall, ToolResult, Unreadable};
use std::borrow::Cow;

/// A block of a message's content.
#[derive(Debug)]
pub(super) enum Block<'a> {
    Part(Part<'a>),
    Call(ToolCall<'a>),
    Result(ToolResult<'a>),
    /// A summary that the provider has put in place of earlier messages.
    Compaction(&'a [u8]),
}

/// What the blocks of a content say of the message.
#[derive(Debug, Default)]
pub(super) struct Signs<'a> {
    /// The value of the last cache marker.
    pub(super) breakpoint: Option<Span>,
    /// Whether there is reasoning that the provider has signed.
    pub(super) is_signed: bool,
    /// The calls that the provider makes itself, each with its id and the tool.
    pub(super) server_calls: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// The ids of such calls that a block answers, or comes from.
    pub(super) depends_on: Vec<Cow<'a, str>>,
}

/// As much of an image's data as it takes to find its size.
const IMAGE_HEAD: usize = 64 << 10;

/// Reads a block, and adds to `signs` what it says of the message.
pub(super) fn read_block<'a>(value: Value<'a>, signs: &mut Signs<'a>) -> Result<Block<'a>, Unreadable> {
    if value.first() != Some(b'{') {
        return value.check().map(|()| Block::Part(Part::Other(value.raw())));
    }
    let mut read = Members::default();
    value.members(|member| read.read(&member.key, member.value))?;
    // In the content of a tool result there are blocks again, which may have markers of their own.
    let result = match (read.kind.as_deref(), read.content) {
        (Some("tool_result"), content) => Some(read_result(&read, content, signs)?),
        (_, Some(content)) => content.check().map(|()| None)?,
        (_, None) => None,
    };
    signs.breakpoint = read.marker.or(signs.breakpoint);
    if let Some(result) = result {
        return Ok(Block::Result(result));
    }
    read.tell(signs);
    let Members { kind, text, thinking, id, name, input, source, title, .. } = read;
    let part = match kind.as_deref() {
        Some("tool_use") => {
            let arguments = String::from_utf8_lossy(input.unwrap_or(b"{}"));
            let function = FunctionCall { name: name.unwrap_or_default(), arguments };
            return Ok(Block::Call(ToolCall { id, kind: None, function }));
        }
        Some("compaction") => return Ok(Block::Compaction(value.raw())),
        Some("text") => text.map(Part::Text),
        // The signature is not for the model.
        Some("thinking") => thinking.map(Part::Other),
        Some("image") => source.and_then(Source::image),
        Some("document") => source.map(|source| source.document(title)),
        Some(_) | None => None,
    };
    Ok(Block::Part(part.unwrap_or(Part::Other(value.raw()))))
}

fn read_result<'a>(
    block: &Members<'a>,
    content: Option<Value<'a>>,
    signs: &mut Signs<'a>,
) -> Result<ToolResult<'a>, Unreadable> {
    let id = block.tool_use_id.clone();
    let Some(value) = content else { return Ok(ToolResult { id, content: Content::Absent, maskable: None }) };
    let mut is_plain = true;
    let content = match value.first() {
        Some(b'[') => {
            let mut parts = Vec::new();
            value.elements(|element| {
                match read_block(element, signs)? {
                    // References to tools, for example, are not for the model alone.
                    Block::Part(part) => {
                        is_plain &= !matches!(part, Part::Other(_));
                        parts.push(part);
                    }
                    Block::Call(_) | Block::Result(_) | Block::Compaction(_) => {
                        is_plain = false;
                        parts.push(Part::Other(element.raw()));
                    }
                }
                Ok(())
            })?;
            Content::Parts(parts)
        }
        _ => match value.text()? {
            Some(text) => Content::Text(text),
            None if value.raw() == b"null" => Content::Null,
            None => Content::Unexpected(value.raw()),
        },
    };
    let is_maskable = is_plain && matches!(content, Content::Text(_) | Content::Parts(_));
    Ok(ToolResult { id, content, maskable: is_maskable.then(|| value.span()) })
}

/// The members of a block that have a meaning here. Each of those that decide anything may occur once.
#[derive(Debug, Default)]
struct Members<'a> {
    kind: Option<Cow<'a, str>>,
    text: Option<Cow<'a, str>>,
    /// A JSON string.
    thinking: Option<&'a [u8]>,
    id: Option<Cow<'a, str>>,
    name: Option<Cow<'a, str>>,
    input: Option<&'a [u8]>,
    tool_use_id: Option<Cow<'a, str>>,
    content: Option<Value<'a>>,
    source: Option<Source<'a>>,
    title: Option<Cow<'a, str>>,
    marker: Option<Span>,
    /// Whether there is a signature, or reasoning that only the provider can read.
    is_signed: bool,
    /// The call of the provider's from which this one comes.
    caller: Option<Cow<'a, str>>,
}

impl<'a> Members<'a> {
    fn read(&mut self, key: &str, value: Value<'a>) -> Result<(), Unreadable> {
        match key {
            "type" => read_text(&mut self.kind, value, "type"),
            "text" => read_text(&mut self.text, value, "text"),
            "id" => read_text(&mut self.id, value, "id"),
            "name" => read_text(&mut self.name, value, "name"),
            "tool_use_id" => read_text(&mut self.tool_use_id, value, "tool_use_id"),
            "title" => read_text(&mut self.title, value, "title"),
            "content" => once(&mut self.content, value, "content"),
            "thinking" => {
                value.check()?;
                once(&mut self.thinking, value.raw(), "thinking")
            }
            "input" => {
                value.check()?;
                once(&mut self.input, value.raw(), "input")
            }
            "source" => once(&mut self.source, Source::read(value)?, "source"),
            "signature" | "data" => {
                value.check()?;
                self.is_signed |= value.raw().len() > EMPTY_TEXT && value.raw() != b"null";
                Ok(())
            }
            "caller" if value.first() == Some(b'{') => value.members_of_object(|key, value| match key {
                "tool_id" => read_text(&mut self.caller, value, "tool_id"),
                _ => value.check(),
            }),
            CACHE_CONTROL => {
                value.check()?;
                self.marker = (value.first() == Some(b'{')).then(|| value.span());
                Ok(())
            }
            _ => value.check(),
        }
    }
}

impl<'a> Members<'a> {
    /// Tells what the block says of its message.
    fn tell(&self, signs: &mut Signs<'a>) {
        match self.kind.as_deref() {
            Some("thinking" | "redacted_thinking") => signs.is_signed |= self.is_signed,
            Some("server_tool_use" | "mcp_tool_use") => signs
                .server_calls
                .extend(self.id.clone().map(|id| (id, self.name.clone().unwrap_or_default()))),
            // Where the provider has paused its turn, the result stands in a later message than the call.
            Some(kind) if kind.ends_with("_tool_result") => signs.depends_on.extend(self.tool_use_id.clone()),
            Some(_) | None => {}
        }
        signs.depends_on.extend(self.caller.clone());
    }
}

/// The length of `""`.
const EMPTY_TEXT: usize = 2;

fn read_text<'a>(
    slot: &mut Option<Cow<'a, str>>,
    value: Value<'a>,
    key: &'static str,
) -> Result<(), Unreadable> {
    match value.text()? {
        Some(text) => once(slot, text, key),
        None => Ok(()),
    }
}

/// Where an image or a document comes from.
#[derive(Debug, Default)]
struct Source<'a> {
    kind: Option<Cow<'a, str>>,
    media_type: Option<Cow<'a, str>>,
    data: Option<Cow<'a, str>>,
    url: Option<Cow<'a, str>>,
    file_id: Option<Cow<'a, str>>,
}

impl<'a> Source<'a> {
    fn read(value: Value<'a>) -> Result<Source<'a>, Unreadable> {
        let mut source = Source::default();
        if value.first() != Some(b'{') {
            return value.check().map(|()| source);
        }
        value.members_of_object(|key, value| match key {
            "type" => read_text(&mut source.kind, value, "type"),
            "media_type" => read_text(&mut source.media_type, value, "media_type"),
            "data" => read_text(&mut source.data, value, "data"),
            "url" => read_text(&mut source.url, value, "url"),
            "file_id" => read_text(&mut source.file_id, value, "file_id"),
            _ => value.check(),
        })?;
        Ok(source)
    }

    fn image(self) -> Option<Part<'a>> {
        let url = match (self.url, self.data) {
            (Some(url), _) => url,
            (None, Some(data)) => {
                let head = data.get(..IMAGE_HEAD).unwrap_or(&data);
                format!("data:{};base64,{head}", self.media_type.unwrap_or_default()).into()
            }
            (None, None) => return None,
        };
        Some(Part::Image { url, detail: None })
    }

    fn document(self, name: Option<Cow<'a, str>>) -> Part<'a> {
        match (self.kind.as_deref(), self.data) {
            (Some("text"), Some(text)) => Part::Text(text),
            (_, data) => Part::File { id: self.file_id, name, data },
        }
    }
}
