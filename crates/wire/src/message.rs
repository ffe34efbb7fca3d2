use crate::content::{Content, read_content};
use crate::cursor::{Member, Value, once};
use crate::tool_call::{FunctionCall, ToolCall, read_call, read_function};
use crate::{MAX_DEPTH, Span, Unreadable};
use std::borrow::Cow;

/// The name of the extension member that marks a message as an observation.
const TAG: &str = "observation";

/// One message, read in full, its texts borrowed from the client's bytes where nothing is escaped in them.
///
/// Spans count from the message's own first byte.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageView<'a> {
    pub role: Option<Cow<'a, str>>,
    pub name: Option<Cow<'a, str>>,
    pub content: Content<'a>,
    /// The value of `content`, whatever it is.
    pub content_span: Option<Span>,
    pub refusal: Option<Cow<'a, str>>,
    pub tool_calls: Vec<ToolCall<'a>>,
    /// The call of an old client, from the time before calls had ids.
    pub function_call: Option<FunctionCall<'a>>,
    pub tool_call_id: Option<Cow<'a, str>>,
    /// What to cut out to remove the member `"observation": {"type": "tool_output"}` with its comma. Without that tag,
    /// nothing.
    pub tag: Option<Span>,
    /// Bytes in values of members that we do not know, such as `reasoning_content`.
    pub unknown_bytes: usize,
    /// Values of members that we know, but of a type that we do not expect there.
    pub odd: Vec<(&'static str, &'a [u8])>,
}

/// Reads one message that [`split`](crate::split) has cut out, and checks every byte of it.
///
/// ```
/// use tidegate_wire::{Content, read_message};
/// let view = read_message(br#"{"role":"tool","tool_call_id":"c1","content":"42"}"#).unwrap();
/// assert_eq!(view.tool_call_id.as_deref(), Some("c1"));
/// assert_eq!(view.content, Content::Text("42".into()));
/// ```
pub fn read_message(raw: &[u8]) -> Result<MessageView<'_>, Unreadable> {
    if u32::try_from(raw.len()).is_err() {
        return Err(Unreadable::TooLarge);
    }
    if simdutf8::basic::from_utf8(raw).is_err() {
        return Err(Unreadable::NotUtf8);
    }
    if raw.first() != Some(&b'{') {
        return Err(Unreadable::NotJson { at: 0 });
    }
    let mut reader = Reader::default();
    // The body and its array of messages are open around every message.
    Value::whole(raw, MAX_DEPTH - 2).members(|member| reader.take(member))?;
    Ok(reader.finish())
}

/// The view in the making. The options say whether a member has occurred, even if its value was not usable.
#[derive(Default)]
struct Reader<'a> {
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

/// Where the tag's member is, until it is known what stands behind it.
struct Tag {
    previous_end: Option<usize>,
    key_at: usize,
    end: usize,
    next_key_at: Option<usize>,
}

impl<'a> Reader<'a> {
    fn take(&mut self, member: Member<'a>) -> Result<(), Unreadable> {
        let Member { key, key_at, value } = member;
        if let Some(tag) = &mut self.tag {
            tag.next_key_at.get_or_insert(key_at);
        }
        let end = value.span().range().end;
        let view = &mut self.view;
        match &*key {
            "role" => {
                once(&mut self.role, (), "role")?;
                view.role = take_text(value, "role", &mut view.odd)?;
            }
            "name" => {
                once(&mut self.name, (), "name")?;
                view.name = take_text(value, "name", &mut view.odd)?;
            }
            "refusal" => {
                once(&mut self.refusal, (), "refusal")?;
                view.refusal = take_text(value, "refusal", &mut view.odd)?;
            }
            "tool_call_id" => {
                once(&mut self.tool_call_id, (), "tool_call_id")?;
                view.tool_call_id = take_text(value, "tool_call_id", &mut view.odd)?;
            }
            "content" => {
                once(&mut self.content, (), "content")?;
                view.content = read_content(value)?;
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
                    take_odd(value, "function_call", &mut view.odd)?;
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
            _ => {
                value.check()?;
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

type Odd<'a> = Vec<(&'static str, &'a [u8])>;

fn take_text<'a>(
    value: Value<'a>,
    key: &'static str,
    odd: &mut Odd<'a>,
) -> Result<Option<Cow<'a, str>>, Unreadable> {
    match value.text()? {
        Some(text) => Ok(Some(text)),
        None => take_odd(value, key, odd).map(|()| None),
    }
}

/// SDKs write `null` for members that are not set: it is the same as none.
fn take_odd<'a>(value: Value<'a>, key: &'static str, odd: &mut Odd<'a>) -> Result<(), Unreadable> {
    value.check()?;
    if value.raw() != b"null" {
        odd.push((key, value.raw()));
    }
    Ok(())
}

fn read_calls<'a>(value: Value<'a>, view: &mut MessageView<'a>) -> Result<(), Unreadable> {
    if value.first() != Some(b'[') {
        return take_odd(value, "tool_calls", &mut view.odd);
    }
    value.elements(|element| {
        if element.first() == Some(b'{') {
            view.tool_calls.push(read_call(element)?);
            Ok(())
        } else {
            element.check()?;
            view.odd.push(("tool_calls", element.raw()));
            Ok(())
        }
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

    #[test]
    fn an_assistant_message_with_parallel_calls() {
        let view = read_message(
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
        assert_eq!(view.odd, []);
    }

    #[test]
    fn removing_the_tag_leaves_valid_json() {
        for (raw, rest) in [
            (r#"{"observation":{"type":"tool_output"}}"#, "{}"),
            (r#"{ "observation" : {"type":"tool_output"} , "role":"user"}"#, r#"{ "role":"user"}"#),
            (r#"{"role":"user" , "observation":{"type":"tool_output","x":[1]} }"#, r#"{"role":"user" }"#),
            (r#"{"a":1,"observation":{"type":"tool_output"},"b":2,"c":3}"#, r#"{"a":1,"b":2,"c":3}"#),
        ] {
            let span = read_message(raw.as_bytes()).unwrap().tag.unwrap().range();
            assert_eq!(format!("{}{}", &raw[..span.start], &raw[span.end..]), rest);
        }
        for other in
            [r#"{"observation":{"type":"x"}}"#, r#"{"observation":"tool_output"}"#, r#"{"observation":{}}"#]
        {
            assert_eq!(read_message(other.as_bytes()).unwrap().tag, None);
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
            assert_eq!(read_message(raw.as_bytes()), Err(Unreadable::Ambiguous(key)), "{raw}");
        }
        assert!(read_message(br#"{"x":1,"x":2}"#).is_ok());
        assert_eq!(read_message(br#"{"x":1}{}"#), Err(Unreadable::NotJson { at: 7 }));
    }

    #[test]
    fn odd_types_are_kept_and_lone_surrogates_read() {
        let raw = br#"{"role":5,"name":null,"tool_calls":"x","content":"a\ud800"}"#;
        let view = read_message(raw).unwrap();
        assert_eq!(view.odd, [("role", &b"5"[..]), ("tool_calls", b"\"x\"")]);
        assert_eq!(view.content, Content::Text("a\u{fffd}".into()));
        assert_eq!(view.content_span.unwrap().of(raw), br#""a\ud800""#);
    }
}
