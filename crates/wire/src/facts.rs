use crate::Span;
use crate::content::Content;
use crate::digest::canonical_hash;
use crate::message::MessageView;
use tidegate_engine::Role;
use twox_hash::XxHash3_128;

/// What the engine and the splice need to know of a message. Owned and small, so that it can be kept for as long as
/// clients resend the message; the texts stay behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageFacts {
    pub role: Role,
    /// What [`canonical_hash`] says, for the [`chain`](crate::chain).
    pub canonical: [u8; 32],
    pub content: ContentKind,
    /// The value of `content`, counted from the message's first byte.
    pub content_span: Option<Span>,
    /// What to cut out to remove the `observation` tag; present only in a tagged message.
    pub tag: Option<Span>,
    /// The calls that the message makes, in order.
    pub calls: Box<[Call]>,
    /// The call that the message answers.
    pub answers: Option<CallId>,
    pub name: Option<Box<str>>,
}

/// What kind of value `content` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ContentKind {
    Absent,
    Null,
    Text,
    /// Parts, all of them text.
    TextParts,
    /// Parts, at least one of them something else.
    MixedParts,
    Odd,
}

/// Stands for the id of a tool call. Equal ids have equal hashes in every process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u128);

/// A call of a tool: which one, and under which id its answer will come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub id: CallId,
    pub tool: Box<str>,
}

impl CallId {
    #[must_use]
    pub fn of(id: &str) -> CallId {
        CallId(XxHash3_128::oneshot_with_seed(0, id.as_bytes()))
    }

    /// Old clients answer by the function's name. The other seed keeps such a name apart from an id spelled alike.
    #[must_use]
    pub fn of_function(name: &str) -> CallId {
        CallId(XxHash3_128::oneshot_with_seed(1, name.as_bytes()))
    }
}

/// The facts of a message that has been read.
#[must_use]
pub fn facts(view: &MessageView<'_>) -> MessageFacts {
    let role = role(view.role.as_deref());
    let legacy = view.function_call.as_ref().map(|function| Call {
        id: CallId::of_function(&function.name),
        tool: function.name.as_ref().into(),
    });
    let calls = view.tool_calls.iter().map(|call| Call {
        id: CallId::of(call.id.as_deref().unwrap_or_default()),
        tool: call.function.name.as_ref().into(),
    });
    let answers = match (&view.tool_call_id, role) {
        (Some(id), _) => Some(CallId::of(id)),
        (None, Role::Function) => view.name.as_deref().map(CallId::of_function),
        (None, _) => None,
    };
    MessageFacts {
        role,
        canonical: canonical_hash(view),
        content: content_kind(&view.content),
        content_span: view.content_span,
        tag: view.tag,
        calls: calls.chain(legacy).collect(),
        answers,
        name: view.name.as_deref().map(Into::into),
    }
}

fn role(name: Option<&str>) -> Role {
    match name {
        Some("system") => Role::System,
        Some("developer") => Role::Developer,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool") => Role::Tool,
        Some("function") => Role::Function,
        Some(_) | None => Role::Other,
    }
}

fn content_kind(content: &Content<'_>) -> ContentKind {
    match content {
        Content::Absent => ContentKind::Absent,
        Content::Null => ContentKind::Null,
        Content::Text(_) => ContentKind::Text,
        Content::Parts(parts) if parts.iter().all(|part| matches!(part, crate::Part::Text(_))) => {
            ContentKind::TextParts
        }
        Content::Parts(_) => ContentKind::MixedParts,
        Content::Odd(_) => ContentKind::Odd,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read_message;

    fn of(json: &str) -> MessageFacts {
        facts(&read_message(json.as_bytes()).unwrap())
    }

    #[test]
    fn a_call_and_its_answer_meet() {
        let asks = of(r#"{"role":"assistant","tool_calls":[
            {"id":"a","function":{"name":"f","arguments":""}},{"id":"\u0062","function":{"name":"g","arguments":""}}]}"#);
        let answers = of(r#"{"role":"tool","tool_call_id":"b","content":[{"type":"text","text":"x"}]}"#);
        assert_eq!(answers.answers, Some(asks.calls[1].id));
        assert_eq!(&*asks.calls[1].tool, "g");
        assert_eq!((answers.role, answers.content), (Role::Tool, ContentKind::TextParts));
        assert_ne!(asks.calls[0].id, asks.calls[1].id);
    }

    #[test]
    fn an_old_client_s_call_and_answer_meet_by_name() {
        let asks = of(r#"{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}"#);
        let answers = of(r#"{"role":"function","name":"f","content":"1"}"#);
        assert_eq!(answers.answers, Some(asks.calls[0].id));
        assert_ne!(CallId::of("f"), CallId::of_function("f"));
    }

    #[test]
    fn a_role_that_nobody_knows_is_other() {
        assert_eq!(of(r#"{"role":"critic"}"#).role, Role::Other);
        assert_eq!(of(r#"{"role":5}"#).role, Role::Other);
        assert_eq!(of(r#"{"role":"d\u0065veloper","content":[{"type":"x"}]}"#).role, Role::Developer);
    }
}
