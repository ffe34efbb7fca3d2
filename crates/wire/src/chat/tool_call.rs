use crate::cursor::{Value, once};
use crate::{FunctionCall, ToolCall, Unreadable};

pub(super) fn read_call<'a>(value: Value<'a>) -> Result<ToolCall<'a>, Unreadable> {
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

/// Arguments that are not a string are kept as raw JSON: some servers send the object itself.
pub(super) fn read_function<'a>(
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
