use super::content::read_content;
use super::tool_call::{read_call, read_function};
use crate::cursor::{Member, Value, once};
use crate::{MessageView, Span, Unreadable};
use std::borrow::Cow;

/// The extension member that marks a message as an observation.
const TAG: &str = "observation";

/// The member that marks a cache breakpoint, in a message or in a part of its content.
pub(super) const CACHE_CONTROL: &str = "cache_control";

/// The members in which gateways to Claude pass on reasoning with its signatures.
const SIGNED_REASONING: [&str; 2] = ["reasoning_details", "thinking_blocks"];

/// The length of `null`; an empty list is shorter.
const EMPTY: usize = 4;

pub(crate) fn read_message(message: Value<'_>) -> Result<MessageView<'_>, Unreadable> {
    let mut builder = ViewBuilder::default();
    message.members(|member| builder.read(member))?;
    Ok(builder.finish())
}

/// A view under construction. Each `Option<()>` is set once its member has occurred, even if the value was not usable.
#[derive(Default)]
struct ViewBuilder<'a> {
    view: MessageView<'a>,
    role: Option<()>,
    name: Option<()>,
    content: Option<()>,
    refusal: Option<()>,
    tool_calls: Option<()>,
    function_call: Option<()>,
    tool_call_id: Option<()>,
    observation: Option<()>,
    tag: Option<Tag>,
    previous_end: Option<usize>,
}

/// The position of the tag's member. The member after it decides which comma goes with it.
struct Tag {
    previous_end: Option<usize>,
    key_at: usize,
    end: usize,
    next_key_at: Option<usize>,
}

impl<'a> ViewBuilder<'a> {
    fn read(&mut self, member: Member<'a>) -> Result<(), Unreadable> {
        let Member { key, key_at, value } = member;
        if let Some(tag) = &mut self.tag {
            tag.next_key_at.get_or_insert(key_at);
        }
        let end = value.span().range().end;
        let view = &mut self.view;
        match &*key {
            "role" => {
                once(&mut self.role, (), "role")?;
                view.role = read_text(value, "role", &mut view.unexpected)?;
            }
            "name" => {
                once(&mut self.name, (), "name")?;
                view.name = read_text(value, "name", &mut view.unexpected)?;
            }
            "refusal" => {
                once(&mut self.refusal, (), "refusal")?;
                view.refusal = read_text(value, "refusal", &mut view.unexpected)?;
            }
            "tool_call_id" => {
                once(&mut self.tool_call_id, (), "tool_call_id")?;
                view.tool_call_id = read_text(value, "tool_call_id", &mut view.unexpected)?;
            }
            "content" => {
                once(&mut self.content, (), "content")?;
                let (content, breakpoint) = read_content(value)?;
                view.content = content;
                view.breakpoint = breakpoint.or(view.breakpoint);
                view.content_span = Some(value.span());
            }
            "tool_calls" => {
                once(&mut self.tool_calls, (), "tool_calls")?;
                read_calls(value, view)?;
            }
            "function_call" => {
                once(&mut self.function_call, (), "function_call")?;
                if value.first() == Some(b'{') {
                    view.function_call = Some(read_function(value, "arguments")?);
                } else {
                    keep_unexpected(value, "function_call", &mut view.unexpected)?;
                }
            }
            TAG => {
                once(&mut self.observation, (), TAG)?;
                if is_tool_output(value)? {
                    self.tag = Some(Tag { previous_end: self.previous_end, key_at, end, next_key_at: None });
                } else {
                    view.unknown_bytes += value.raw().len();
                }
            }
            // A marker for the provider's cache, which the model does not see.
            CACHE_CONTROL => {
                value.check()?;
                let is_marker = value.first() == Some(b'{');
                view.breakpoint = view.breakpoint.or(is_marker.then(|| value.span()));
            }
            key => {
                value.check()?;
                view.is_signed |= SIGNED_REASONING.contains(&key) && value.raw().len() > EMPTY;
                view.unknown_bytes += value.raw().len();
            }
        }
        self.previous_end = Some(end);
        Ok(())
    }

    fn finish(mut self) -> MessageView<'a> {
        self.view.tag = self.tag.map(|tag| match (tag.next_key_at, tag.previous_end) {
            (Some(next), _) => Span::new(tag.key_at, next),
            (None, Some(previous)) => Span::new(previous, tag.end),
            (None, None) => Span::new(tag.key_at, tag.end),
        });
        self.view
    }
}

type Unexpected<'a> = Vec<(&'static str, &'a [u8])>;

fn read_text<'a>(
    value: Value<'a>,
    key: &'static str,
    unexpected: &mut Unexpected<'a>,
) -> Result<Option<Cow<'a, str>>, Unreadable> {
    match value.text()? {
        Some(text) => Ok(Some(text)),
        None => keep_unexpected(value, key, unexpected).map(|()| None),
    }
}

/// SDKs write `null` for members that are not set, so `null` equals an absent member.
fn keep_unexpected<'a>(
    value: Value<'a>,
    key: &'static str,
    unexpected: &mut Unexpected<'a>,
) -> Result<(), Unreadable> {
    value.check()?;
    if value.raw() != b"null" {
        unexpected.push((key, value.raw()));
    }
    Ok(())
}

fn read_calls<'a>(value: Value<'a>, view: &mut MessageView<'a>) -> Result<(), Unreadable> {
    if value.first() != Some(b'[') {
        return keep_unexpected(value, "tool_calls", &mut view.unexpected);
    }
    value.elements(|element| {
        if element.first() == Some(b'{') {
            view.tool_calls.push(read_call(element)?);
        } else {
            element.check()?;
            view.unexpected.push(("tool_calls", element.raw()));
        }
        Ok(())
    })
}

fn is_tool_output(value: Value<'_>) -> Result<bool, Unreadable> {
    if value.first() != Some(b'{') {
        return value.check().map(|()| false);
    }
    let mut kind = None;
    value.members(|member| match &*member.key {
        "type" => once(&mut kind, member.value.text()?, "type"),
        _ => member.value.check(),
    })?;
    Ok(kind.flatten().as_deref() == Some("tool_output"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Content, Dialect};

    fn read(raw: &[u8]) -> Result<MessageView<'_>, Unreadable> {
        Dialect::Chat.read_message(raw)
    }

    #[test]
    fn parallel_calls_are_read() {
        let view = read(
            br#"{"content":null,"role":"assistant","refusal":null,"tool_calls":[
                {"id":"a","type":"function","function":{"arguments":"{\"x\":1}","name":"run"}},
                {"id":"b","type":"custom","custom":{"name":"sh","input":"ls"}}, {"function":{"name":"f","arguments":{}}}],
                "reasoning_content":"hm"}"#,
        )
        .unwrap();
        assert_eq!(view.content, Content::Null);
        let call =
            |at: usize| (&*view.tool_calls[at].function.name, &*view.tool_calls[at].function.arguments);
        assert_eq!([call(0), call(1), call(2)], [("run", "{\"x\":1}"), ("sh", "ls"), ("f", "{}")]);
        assert_eq!(view.tool_calls[1].id.as_deref(), Some("b"));
        assert_eq!(view.unknown_bytes, 4);
        assert_eq!(view.unexpected, []);
    }

    #[test]
    fn removing_the_tag_leaves_valid_json() {
        for (raw, rest) in [
            (r#"{"observation":{"type":"tool_output"}}"#, "{}"),
            (r#"{ "observation" : {"type":"tool_output"} , "role":"user"}"#, r#"{ "role":"user"}"#),
            (r#"{"role":"user" , "observation":{"type":"tool_output","x":[1]} }"#, r#"{"role":"user" }"#),
            (r#"{"a":1,"observation":{"type":"tool_output"},"b":2,"c":3}"#, r#"{"a":1,"b":2,"c":3}"#),
        ] {
            let span = read(raw.as_bytes()).unwrap().tag.unwrap().range();
            assert_eq!(format!("{}{}", &raw[..span.start], &raw[span.end..]), rest);
        }
        for other in
            [r#"{"observation":{"type":"x"}}"#, r#"{"observation":"tool_output"}"#, r#"{"observation":{}}"#]
        {
            assert_eq!(read(other.as_bytes()).unwrap().tag, None);
        }
    }

    #[test]
    fn a_member_that_occurs_twice_is_ambiguous() {
        for (raw, key) in [
            (r#"{"role":"user","role":"tool"}"#, "role"),
            (r#"{"content":null,"c\u006fntent":"x"}"#, "content"),
            (r#"{"tool_calls":[],"tool_calls":null}"#, "tool_calls"),
            (r#"{"tool_calls":[{"id":"a","id":"b"}]}"#, "id"),
            (r#"{"observation":1,"observation":{"type":"tool_output"}}"#, "observation"),
        ] {
            assert_eq!(read(raw.as_bytes()), Err(Unreadable::Ambiguous(key)), "{raw}");
        }
        assert!(read(br#"{"x":1,"x":2}"#).is_ok());
        assert_eq!(read(br#"{"x":1}{}"#), Err(Unreadable::NotJson { at: 7 }));
    }

    #[test]
    fn unexpected_types_are_kept_and_lone_surrogates_replaced() {
        let raw = br#"{"role":5,"name":null,"tool_calls":"x","content":"a\ud800"}"#;
        let view = read(raw).unwrap();
        assert_eq!(view.unexpected, [("role", &b"5"[..]), ("tool_calls", b"\"x\"")]);
        assert_eq!(view.content, Content::Text("a\u{fffd}".into()));
        assert_eq!(view.content_span.unwrap().of(raw), br#""a\ud800""#);
    }
}
