use crate::Unreadable;
use crate::cursor::{Value, once};
use std::borrow::Cow;

/// A call of a tool by the assistant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolCall<'a> {
    pub id: Option<Cow<'a, str>>,
    /// `function` where the client does not say.
    pub kind: Option<Cow<'a, str>>,
    pub function: FunctionCall<'a>,
}

/// What is called, and with which arguments (JSON as text, as the model wrote it). A custom tool's input counts as its
/// arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionCall<'a> {
    pub name: Cow<'a, str>,
    pub arguments: Cow<'a, str>,
}

pub(crate) fn read_call<'a>(value: Value<'a>) -> Result<ToolCall<'a>, Unreadable> {
    let (mut id, mut kind, mut function, mut custom) = (None, None, None, None);
    value.members(|member| match (&*member.key, member.value.first()) {
        ("id", _) => once(&mut id, member.value.text()?, "id"),
        ("type", _) => once(&mut kind, member.value.text()?, "type"),
        ("function", Some(b'{')) => {
            once(&mut function, read_function(member.value, "arguments")?, "function")
        }
        ("custom", Some(b'{')) => once(&mut custom, read_function(member.value, "input")?, "custom"),
        _ => member.value.check(),
    })?;
    Ok(ToolCall { id: id.flatten(), kind: kind.flatten(), function: function.or(custom).unwrap_or_default() })
}

/// Arguments that are not a string (some servers send the object itself) are taken as they are written.
pub(crate) fn read_function<'a>(
    value: Value<'a>,
    arguments_key: &'static str,
) -> Result<FunctionCall<'a>, Unreadable> {
    let (mut name, mut arguments) = (None, None);
    value.members(|member| {
        if member.key == "name" {
            once(&mut name, member.value.text()?, "name")
        } else if member.key == arguments_key {
            let text = match member.value.text()? {
                Some(text) => text,
                None => String::from_utf8_lossy(member.value.raw()),
            };
            once(&mut arguments, text, arguments_key)
        } else {
            member.value.check()
        }
    })?;
    Ok(FunctionCall { name: name.flatten().unwrap_or_default(), arguments: arguments.unwrap_or_default() })
}
