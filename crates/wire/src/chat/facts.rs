use super::canonical::canonical_hash;
use crate::{Bond, Call, CallId, Content, MessageFacts, MessageView, Results};
use smallvec::SmallVec;
use tidegate_engine::Role;

pub(crate) fn facts(view: &MessageView<'_>) -> MessageFacts {
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
    let maskable = match view.content {
        Content::Text(_) | Content::Parts(_) => view.content_span,
        Content::Absent | Content::Null | Content::Unexpected(_) => None,
    };
    MessageFacts {
        role,
        canonical: canonical_hash(view),
        maskable: SmallVec::from_iter(maskable),
        extendable: maskable,
        results: Results::None,
        breakpoint: view.breakpoint,
        tag: view.tag,
        calls: calls.chain(legacy).collect(),
        answers: SmallVec::from_iter(answers),
        name: view.name.as_deref().map(Into::into),
        is_native: false,
        is_signed: view.is_signed,
        bond: Bond::None,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dialect;

    fn of(json: &str) -> MessageFacts {
        Dialect::Chat.read_facts(json.as_bytes()).unwrap()
    }

    #[test]
    fn a_result_refers_to_its_call_by_id() {
        let asks = of(r#"{"role":"assistant","tool_calls":[
            {"id":"a","function":{"name":"f","arguments":""}},{"id":"\u0062","function":{"name":"g","arguments":""}}]}"#);
        let answers = of(r#"{"role":"tool","tool_call_id":"b","content":[{"type":"text","text":"x"}]}"#);
        assert_eq!(answers.answers[..], [asks.calls[1].id]);
        assert_eq!(&*asks.calls[1].tool, "g");
        assert_eq!(answers.role, Role::Tool);
        assert_ne!(asks.calls[0].id, asks.calls[1].id);
    }

    #[test]
    fn a_legacy_result_refers_to_its_call_by_name() {
        let asks = of(r#"{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}"#);
        let answers = of(r#"{"role":"function","name":"f","content":"1"}"#);
        assert_eq!(answers.answers[..], [asks.calls[0].id]);
        assert_ne!(CallId::of("f"), CallId::of_function("f"));
    }

    #[test]
    fn an_unknown_role_is_other() {
        assert_eq!(of(r#"{"role":"critic"}"#).role, Role::Other);
        assert_eq!(of(r#"{"role":5}"#).role, Role::Other);
        assert_eq!(of(r#"{"role":"d\u0065veloper","content":[{"type":"x"}]}"#).role, Role::Developer);
    }

    #[test]
    fn only_text_and_parts_can_be_masked() {
        for content in [r#""x""#, r#""""#, "[]", r#"[{"type":"text","text":"x"}]"#, r#"[{"type":"x"}]"#] {
            let json = format!(r#"{{"role":"tool","content":{content}}}"#);
            let maskable = of(&json).maskable;
            assert_eq!(maskable.len(), 1, "{json}");
            assert_eq!(maskable[0].of(json.as_bytes()), content.as_bytes());
        }
        for json in [r#"{"role":"tool"}"#, r#"{"content":null}"#, r#"{"content":5}"#, r#"{"content":{}}"#] {
            assert!(of(json).maskable.is_empty(), "{json}");
        }
    }
}
