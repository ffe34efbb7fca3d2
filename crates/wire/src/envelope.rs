use crate::cursor::{Value, once};
use crate::{Outline, Span, Unreadable};

/// The members that mean something to us, each with room for "seen, but of another type".
#[derive(Default)]
pub(crate) struct Envelope {
    pub(crate) not_an_array: bool,
    model: Option<Option<String>>,
    stream: Option<bool>,
    max_tokens: Option<Option<u64>>,
    max_completion_tokens: Option<Option<u64>>,
    n: Option<Option<u64>>,
    tools: Option<Span>,
    functions: Option<Span>,
    tool_choice: Option<Span>,
    response_format: Option<Span>,
    stream_options: Option<Span>,
}

impl Envelope {
    /// Whether the value has been read in full.
    pub(crate) fn take(&mut self, key: &str, value: Value<'_>) -> Result<bool, Unreadable> {
        match key {
            "model" => {
                let text = value.text()?.map(|text| text.into_owned());
                once(&mut self.model, text, "model")?;
            }
            "stream" => {
                value.check()?;
                once(&mut self.stream, value.raw() == b"true", "stream")?;
            }
            "max_tokens" => once(&mut self.max_tokens, value.integer()?, "max_tokens")?,
            "max_completion_tokens" => {
                once(&mut self.max_completion_tokens, value.integer()?, "max_completion_tokens")?;
            }
            "n" => once(&mut self.n, value.integer()?, "n")?,
            "tools" => return once(&mut self.tools, value.span(), "tools").map(|()| false),
            "functions" => return once(&mut self.functions, value.span(), "functions").map(|()| false),
            "tool_choice" => return once(&mut self.tool_choice, value.span(), "tool_choice").map(|()| false),
            "response_format" => {
                return once(&mut self.response_format, value.span(), "response_format").map(|()| false);
            }
            "stream_options" => {
                return once(&mut self.stream_options, value.span(), "stream_options").map(|()| false);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    pub(crate) fn finish(self, outline: Outline) -> Result<Outline, Unreadable> {
        if self.not_an_array {
            return Err(Unreadable::MessagesNotAnArray);
        }
        Ok(Outline {
            model: self.model.flatten(),
            stream: self.stream.unwrap_or(false),
            max_tokens: self.max_tokens.flatten(),
            max_completion_tokens: self.max_completion_tokens.flatten(),
            n: self.n.flatten(),
            tools: self.tools,
            functions: self.functions,
            tool_choice: self.tool_choice,
            response_format: self.response_format,
            stream_options: self.stream_options,
            ..outline
        })
    }
}
