use super::canonical::Canonical;
use super::content::read_content;
use super::item::Item;
use crate::cursor::{Value, check_text, run_of_objects};
use crate::{Bond, Content, FunctionCall, MAX_DEPTH, MessageView, Part, ToolCall, ToolResult, Unreadable};
use std::borrow::Cow;

/// Outputs shorter than this stay when a result has several: a placeholder would be longer.
const SHORT_OUTPUT: usize = 80;

/// Reads an item, a run of the model's items, or a text.
pub(crate) fn read_message(raw: &[u8]) -> Result<MessageView<'_>, Unreadable> {
    check_text(raw)?;
    let mut view = MessageView::default();
    let mut canonical = Canonical::new();
    if raw.first() == Some(&b'"') {
        let text = Value::whole(raw, MAX_DEPTH);
        view.role = Some("user".into());
        view.content = read_content(text, &mut view.breakpoint)?;
        view.content_span = Some(text.span());
        canonical.message("user", Some(text))?;
    } else {
        let mut has_reasoning = false;
        let mut is_named = false;
        run_of_objects(raw, |value| {
            let item = Item::read(value)?;
            has_reasoning |= item.kind() == "reasoning";
            is_named |= item.id.is_some();
            canonical.item(&item)?;
            read_item(item, &mut view)
        })?;
        let is_model = view.role.as_deref() == Some("assistant");
        view.bond = match view.bond {
            Bond::None if has_reasoning => Bond::Reasons,
            Bond::None if is_model && is_named => Bond::MayRestOnReasons,
            bond => bond,
        };
    }
    view.canonical = Some(canonical.finish());
    Ok(view)
}

fn read_item<'a>(item: Item<'a>, view: &mut MessageView<'a>) -> Result<(), Unreadable> {
    let kind = item.kind().to_owned();
    view.depends_on.extend(item.caller.clone());
    match &*kind {
        "message" => read_words(item, view),
        "additional_tools" => {
            view.role = item.role.clone().or(Some("developer".into()));
            keep(&item, view)
        }
        "reasoning" => {
            view.role = Some("assistant".into());
            read_reasoning(&item, view)
        }
        "compaction" | "compaction_summary" | "context_compaction" | "compaction_trigger" => {
            view.role = Some("assistant".into());
            view.is_native = true;
            view.bond = Bond::Opaque;
            keep(&item, view)
        }
        "mcp_approval_response" => {
            view.role = Some("tool".into());
            view.tool_call_id = item.approval.clone();
            keep(&item, view)
        }
        "mcp_call" => read_served_call(item, view),
        result if result.ends_with("_output") => read_result(item, view),
        call if is_call(call) => {
            item.check_rest()?;
            view.role = Some("assistant".into());
            read_call(&item, view)
        }
        "image_generation_call" => {
            item.check_rest()?;
            view.role = Some("assistant".into());
            add(view, [Part::Image { url: "".into(), detail: None }]);
            Ok(())
        }
        other => {
            view.role = Some("assistant".into());
            if !is_known(other) {
                view.bond = Bond::Opaque;
            }
            keep(&item, view)
        }
    }
}

/// Calls that the client answers.
fn is_call(kind: &str) -> bool {
    matches!(
        kind,
        "function_call"
            | "custom_tool_call"
            | "local_shell_call"
            | "shell_call"
            | "apply_patch_call"
            | "computer_call"
            | "tool_search_call"
            | "mcp_approval_request"
            | "program"
    )
}

/// What the provider does on its own, and reports whole.
fn is_known(kind: &str) -> bool {
    matches!(kind, "web_search_call" | "file_search_call" | "code_interpreter_call" | "mcp_list_tools")
}

/// A message with a role.
fn read_words<'a>(item: Item<'a>, view: &mut MessageView<'a>) -> Result<(), Unreadable> {
    for rest in [item.output, item.summary].into_iter().flatten() {
        rest.check()?;
    }
    let is_model = item.role.as_deref() == Some("assistant");
    let content = match item.content {
        Some(value) => read_content(value, &mut view.breakpoint)?,
        None => Content::Absent,
    };
    if is_model {
        view.role = Some("assistant".into());
        match content {
            Content::Text(text) => add(view, [Part::Text(text)]),
            Content::Parts(parts) => add(view, parts),
            Content::Absent | Content::Null => {}
            Content::Unexpected(raw) => add(view, [Part::Other(raw)]),
        }
        return Ok(());
    }
    view.role = item.role;
    view.content_span = item.content.map(Value::span);
    view.content = content;
    Ok(())
}

/// The model does not see what it thought in clear and encrypted both.
fn read_reasoning<'a>(item: &Item<'a>, view: &mut MessageView<'a>) -> Result<(), Unreadable> {
    item.output.map_or(Ok(()), Value::check)?;
    let mut parts = Vec::new();
    for value in [item.content, item.summary].into_iter().flatten() {
        match read_content(value, &mut None)? {
            Content::Parts(new) => parts.extend(new),
            Content::Text(text) => parts.push(Part::Text(text)),
            Content::Absent | Content::Null | Content::Unexpected(_) => {}
        }
    }
    if item.encrypted > "null".len() {
        view.unknown_bytes += item.encrypted / 4 * 3;
        return Ok(());
    }
    let length = |part: &Part<'_>| match part {
        Part::Text(text) => text.len(),
        _ => 0,
    };
    view.unknown_bytes += parts.iter().map(length).sum::<usize>();
    Ok(())
}

/// A result that the client has brought.
fn read_result<'a>(item: Item<'a>, view: &mut MessageView<'a>) -> Result<(), Unreadable> {
    for rest in [item.content, item.summary].into_iter().flatten() {
        rest.check()?;
    }
    view.role = Some("tool".into());
    view.name = item.name.clone();
    if !is_known_result(item.kind()) {
        view.bond = Bond::Opaque;
    }
    // The results of the local shell name their call by `id`.
    view.tool_call_id = item.call_id.clone().or_else(|| item.id.clone());
    let Some(output) = item.output else {
        view.unknown_bytes += item.value.raw().len();
        return Ok(());
    };
    match item.kind() {
        "shell_call_output" if output.first() == Some(b'[') => {
            output.elements(|chunk| read_chunk(chunk, view))
        }
        "function_call_output"
        | "custom_tool_call_output"
        | "local_shell_call_output"
        | "apply_patch_call_output" => {
            view.content = read_content(output, &mut view.breakpoint)?;
            view.content_span = Some(output.span());
            Ok(())
        }
        "computer_call_output" => {
            let part = read_content(output, &mut None)?;
            let size = screenshot(output)?;
            view.content = size.map_or(part, |part| Content::Parts(vec![part]));
            Ok(())
        }
        _ => {
            output.check()?;
            view.unknown_bytes += output.raw().len();
            Ok(())
        }
    }
}

/// Results of calls that the client answers, or that the provider has answered for it.
fn is_known_result(kind: &str) -> bool {
    matches!(
        kind,
        "function_call_output"
            | "custom_tool_call_output"
            | "local_shell_call_output"
            | "shell_call_output"
            | "apply_patch_call_output"
            | "computer_call_output"
            | "tool_search_output"
            | "program_output"
    )
}

/// One command's part of what a shell has answered. Its shape must stay, so only the texts in it are masked.
fn read_chunk<'a>(chunk: Value<'a>, view: &mut MessageView<'a>) -> Result<(), Unreadable> {
    chunk.check()?;
    let id = view.tool_call_id.clone();
    chunk.members_of_object(|key, value| {
        if let ("stdout" | "stderr", Some(text)) = (key, value.text()?) {
            let maskable = (value.raw().len() >= SHORT_OUTPUT).then(|| value.span());
            let content = Content::Text(Cow::Owned(text.into_owned()));
            view.results.push(ToolResult { id: id.clone(), content, maskable });
        }
        Ok(())
    })
}

/// The image of a computer's screen. The API takes nothing else in its place.
fn screenshot<'a>(output: Value<'a>) -> Result<Option<Part<'a>>, Unreadable> {
    let mut url = None;
    if output.first() == Some(b'{') {
        output.members(|member| match &*member.key {
            "image_url" => {
                url = member.value.text()?;
                Ok(())
            }
            _ => member.value.check(),
        })?;
    }
    Ok(url.map(|url| Part::Image { url, detail: None }))
}

/// A call that the provider has made itself, with its result in it.
fn read_served_call<'a>(item: Item<'a>, view: &mut MessageView<'a>) -> Result<(), Unreadable> {
    for rest in [item.content, item.summary].into_iter().flatten() {
        rest.check()?;
    }
    view.role = Some("assistant".into());
    read_call(&item, view)?;
    if let Some(output) = item.output {
        let content = read_content(output, &mut None)?;
        let maskable = matches!(content, Content::Text(_)).then(|| output.span());
        view.results.push(ToolResult { id: item.id, content, maskable });
    }
    Ok(())
}

/// A call. One with two ids can be answered under either.
fn read_call<'a>(item: &Item<'a>, view: &mut MessageView<'a>) -> Result<(), Unreadable> {
    let kind = item.kind();
    let name = match &item.name {
        Some(name) => name.clone(),
        None => Cow::Owned(kind.strip_suffix("_call").unwrap_or(kind).to_owned()),
    };
    let arguments = match item.input {
        Some(input) => match input.text()? {
            Some(text) => text,
            None => String::from_utf8_lossy(input.raw()),
        },
        None => "".into(),
    };
    let id = item.call_id.clone().or_else(|| item.id.clone());
    let is_answered_by_id = matches!(kind, "local_shell_call" | "computer_call");
    let other = item.id.clone().filter(|other| is_answered_by_id && Some(other) != id.as_ref());
    view.call_aliases.extend(other.map(|other| (other, name.clone())));
    view.tool_calls.push(ToolCall { id, kind: None, function: FunctionCall { name, arguments } });
    Ok(())
}

/// An item that is kept as it is.
fn keep<'a>(item: &Item<'a>, view: &mut MessageView<'a>) -> Result<(), Unreadable> {
    item.check_rest()?;
    view.unknown_bytes += match item.encrypted {
        0 => item.value.raw().len(),
        encrypted => encrypted / 4 * 3,
    };
    Ok(())
}

fn add<'a>(view: &mut MessageView<'a>, new: impl IntoIterator<Item = Part<'a>>) {
    match &mut view.content {
        Content::Parts(parts) => parts.extend(new),
        content => *content = Content::Parts(new.into_iter().collect()),
    }
}
