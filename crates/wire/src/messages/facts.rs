use crate::{Bond, Call, CallId, Content, MessageFacts, MessageView, Part, Results};
use smallvec::SmallVec;
use tidegate_engine::Role;

/// How the texts begin that coding agents put beside tool results. They are not the user's words.
const REMINDER: &str = "<system-reminder>";

pub(crate) fn facts(view: &MessageView<'_>) -> MessageFacts {
    let role = match view.role.as_deref() {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("system") => Role::System,
        Some(_) | None => Role::Other,
    };
    let results = match (view.results.is_empty(), has_speech(&view.content)) {
        (true, _) => Results::None,
        (false, false) => Results::Only,
        (false, true) => Results::BesideSpeech,
    };
    let content = match &view.content {
        Content::Text(_) | Content::Parts(_) => view.content_span,
        Content::Absent | Content::Null | Content::Unexpected(_) => None,
    };
    let maskable: SmallVec<[_; 1]> = match results {
        Results::None if is_opaque(&view.content) => SmallVec::new(),
        Results::None => content.into_iter().collect(),
        Results::Only | Results::BesideSpeech => {
            view.results.iter().filter_map(|result| result.maskable).collect()
        }
    };
    let id = |id: Option<&str>| CallId::of(id.unwrap_or_default());
    let call = |call: &crate::ToolCall<'_>| Call {
        id: id(call.id.as_deref()),
        tool: call.function.name.as_ref().into(),
    };
    // What the provider calls itself, and the results of that.
    let server_calls = view
        .call_aliases
        .iter()
        .map(|(server, tool)| Call { id: id(Some(server)), tool: tool.as_ref().into() });
    let is_earlier =
        |call: &&std::borrow::Cow<'_, str>| !view.call_aliases.iter().any(|(own, _)| own == *call);
    let server_results = view.depends_on.iter().filter(is_earlier).map(|call| id(Some(call)));
    MessageFacts {
        role,
        canonical: view.canonical.unwrap_or_default(),
        maskable,
        extendable: content,
        results,
        breakpoint: view.breakpoint,
        tag: None,
        calls: view.tool_calls.iter().map(call).chain(server_calls).collect(),
        answers: view.results.iter().map(|result| id(result.id.as_deref())).chain(server_results).collect(),
        name: None,
        is_native: view.is_native,
        is_signed: view.is_signed,
        bond: Bond::None,
    }
}

/// Whether a content has blocks of a kind that a placeholder must not replace.
fn is_opaque(content: &Content<'_>) -> bool {
    matches!(content, Content::Parts(parts) if parts.iter().any(|part| matches!(part, Part::Other(_))))
}

/// Whether there is anything of the user's own beside the results.
fn has_speech(content: &Content<'_>) -> bool {
    match content {
        Content::Parts(parts) => parts.iter().any(|part| match part {
            Part::Text(text) => {
                let text = text.trim_start();
                !text.is_empty() && !text.starts_with(REMINDER)
            }
            Part::Image { .. }
            | Part::Audio { .. }
            | Part::File { .. }
            | Part::Refusal(_)
            | Part::Other(_) => true,
        }),
        Content::Text(_) => true,
        Content::Absent | Content::Null | Content::Unexpected(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dialect;

    fn of(json: &str) -> MessageFacts {
        Dialect::Messages.read_facts(json.as_bytes()).unwrap()
    }

    #[test]
    fn results_refer_to_their_calls() {
        let asks = of(
            r#"{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"ok"},
            {"type":"tool_use","id":"a","name":"f","input":{}},{"type":"tool_use","id":"b","name":"g","input":{"x":1}}]}"#,
        );
        let json = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"x"}]},
            {"type":"tool_result","tool_use_id":"a","content":"y","is_error":true}]}"#;
        let answers = of(json);
        assert_eq!(answers.answers[..], [asks.calls[1].id, asks.calls[0].id]);
        assert_eq!(&*asks.calls[1].tool, "g");
        assert_eq!(answers.results, Results::Only);
        let masked: Vec<&[u8]> = answers.maskable.iter().map(|span| span.of(json.as_bytes())).collect();
        assert_eq!(masked, [&br#"[{"type":"text","text":"x"}]"#[..], br#""y""#]);
    }

    #[test]
    fn what_the_provider_calls_itself_is_answered_in_a_later_message_too() {
        let paused = of(
            r#"{"role":"assistant","content":[{"type":"server_tool_use","id":"s1","name":"web_search","input":{}},
            {"type":"web_search_tool_result","tool_use_id":"s1","content":[]},
            {"type":"mcp_tool_use","id":"m1","name":"ask","server_name":"x","input":{}},
            {"type":"tool_use","id":"t1","name":"f","input":{},"caller":{"type":"code_execution_20250825","tool_id":"s0"}}]}"#,
        );
        let tools: Vec<&str> = paused.calls.iter().map(|call| &*call.tool).collect();
        assert_eq!(tools, ["f", "web_search", "ask"]);
        assert_eq!(paused.answers[..], [CallId::of("s0")], "the first is answered at once");
        let resumed = of(
            r#"{"role":"assistant","content":[{"type":"mcp_tool_result","tool_use_id":"m1","content":[{"type":"text","text":"x"}]}]}"#,
        );
        assert_eq!(resumed.answers[..], [paused.calls[2].id]);
        assert_eq!((resumed.results, resumed.maskable.len()), (Results::None, 0));
    }

    #[test]
    fn only_reasoning_with_a_signature_is_signed() {
        for (block, is_signed) in [
            (r#"{"type":"thinking","thinking":"hm","signature":"c2ln"}"#, true),
            (r#"{"type":"thinking","thinking":"","signature":"c2ln"}"#, true),
            (r#"{"type":"redacted_thinking","data":"AAAA"}"#, true),
            (r#"{"type":"thinking","thinking":"hm","signature":""}"#, false),
            (r#"{"type":"thinking","thinking":"hm"}"#, false),
            (r#"{"type":"text","text":"hm","signature":"c2ln"}"#, false),
        ] {
            let message = of(&format!(r#"{{"role":"assistant","content":[{block}]}}"#));
            assert_eq!(message.is_signed, is_signed, "{block}");
        }
    }

    #[test]
    fn reminders_are_not_the_users_words() {
        let beside = |block: &str| {
            of(&format!(
                r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"a","content":"x"}},{block}]}}"#
            ))
            .results
        };
        assert_eq!(beside(r#"{"type":"text","text":"<system-reminder>x</system-reminder>"}"#), Results::Only);
        assert_eq!(beside(r#"{"type":"text","text":"stop that"}"#), Results::BesideSpeech);
        assert_eq!(
            beside(r#"{"type":"image","source":{"type":"url","url":"http://x"}}"#),
            Results::BesideSpeech
        );
        assert_eq!(of(r#"{"role":"user","content":"hi"}"#).results, Results::None);
    }

    #[test]
    fn only_texts_images_and_documents_can_be_masked() {
        for (content, maskable) in [
            (r#""x""#, 1),
            ("[]", 1),
            (r#"[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}]"#, 1),
            (r#"[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"x"}}]"#, 1),
            (r#"[{"type":"tool_reference","tool_name":"f"}]"#, 0),
            (r#"[{"type":"text","text":"x"},{"type":"search_result"}]"#, 0),
            ("null", 0),
            ("5", 0),
        ] {
            let json = format!(
                r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"a","content":{content}}}]}}"#
            );
            assert_eq!(of(&json).maskable.len(), maskable, "{content}");
        }
    }
}
