use super::block::{Block, Signs, read_block};
use super::canonical::canonical_hash;
use crate::cursor::{Value, once};
use crate::{Content, MessageView, Part, Unreadable};

pub(crate) fn read_message(message: Value<'_>) -> Result<MessageView<'_>, Unreadable> {
    let mut view = MessageView::default();
    let (mut role, mut content) = (None, None);
    message.members(|member| {
        match &*member.key {
            "role" => once(&mut role, member.value, "role")?,
            "content" => once(&mut content, member.value, "content")?,
            _ => {
                member.value.check()?;
                view.unknown_bytes += member.value.raw().len();
            }
        }
        Ok(())
    })?;
    if let Some(value) = role {
        view.role = value.text()?;
        if view.role.is_none() {
            view.unexpected.push(("role", value.raw()));
        }
    }
    if let Some(value) = content {
        view.content_span = Some(value.span());
        read_content(value, &mut view)?;
    }
    view.canonical = Some(canonical_hash(view.role.as_deref(), content)?);
    Ok(view)
}

fn read_content<'a>(value: Value<'a>, view: &mut MessageView<'a>) -> Result<(), Unreadable> {
    if value.first() != Some(b'[') {
        view.content = match value.text()? {
            Some(text) => Content::Text(text),
            None if value.raw() == b"null" => Content::Null,
            None => Content::Unexpected(value.raw()),
        };
        return Ok(());
    }
    let (mut parts, mut signs) = (Vec::new(), Signs::default());
    value.elements(|element| {
        match read_block(element, &mut signs)? {
            Block::Part(part) => parts.push(part),
            Block::Call(call) => view.tool_calls.push(call),
            Block::Result(result) => view.results.push(result),
            Block::Compaction(raw) => {
                view.is_native = true;
                parts.push(Part::Other(raw));
            }
        }
        Ok(())
    })?;
    view.content = Content::Parts(parts);
    view.breakpoint = signs.breakpoint;
    view.is_signed = signs.is_signed;
    (view.call_aliases, view.depends_on) = (signs.server_calls, signs.depends_on);
    Ok(())
}
