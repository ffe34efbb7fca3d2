use crate::{Bond, Call, CallId, Content, MessageFacts, MessageView, Part, Results};
use smallvec::SmallVec;
use tidegate_engine::Role;

pub(crate) fn facts(view: &MessageView<'_>) -> MessageFacts {
    let role = match view.role.as_deref() {
        Some("system") => Role::System,
        Some("developer") => Role::Developer,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool") => Role::Tool,
        Some(_) | None => Role::Other,
    };
    let results = match (view.results.is_empty(), role) {
        (true, _) => Results::None,
        // What the provider has called itself stands among the model's own words.
        (false, Role::Assistant) => Results::BesideSpeech,
        (false, _) => Results::Only,
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
    let calls = view
        .tool_calls
        .iter()
        .map(|call| Call { id: id(call.id.as_deref()), tool: call.function.name.as_ref().into() });
    let aliases = view
        .call_aliases
        .iter()
        .map(|(alias, tool)| Call { id: CallId::of(alias), tool: tool.as_ref().into() });
    let answered = view.results.iter().map(|result| id(result.id.as_deref()));
    let answers = answered
        .chain(view.tool_call_id.as_deref().map(CallId::of))
        .chain(view.depends_on.iter().map(|call| CallId::of(call)));
    MessageFacts {
        role,
        canonical: view.canonical.unwrap_or_default(),
        maskable,
        extendable: content.filter(|_| role == Role::User),
        results,
        breakpoint: view.breakpoint,
        tag: None,
        calls: calls.chain(aliases).collect(),
        answers: answers.collect(),
        name: view.name.as_deref().map(Into::into),
        is_native: view.is_native,
        is_signed: matches!(view.bond, Bond::Reasons | Bond::Opaque),
        bond: view.bond,
    }
}

/// Whether a content has parts of a kind that a placeholder must not replace.
fn is_opaque(content: &Content<'_>) -> bool {
    matches!(content, Content::Parts(parts) if parts.iter().any(|part| matches!(part, Part::Other(_))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dialect;

    fn of(json: &str) -> MessageFacts {
        Dialect::Responses.read_facts(json.as_bytes()).unwrap()
    }

    /// The values that a placeholder would replace.
    fn masked(json: &str) -> Vec<&str> {
        of(json).maskable.iter().map(|span| std::str::from_utf8(span.of(json.as_bytes())).unwrap()).collect()
    }

    #[test]
    fn an_answer_is_one_message_with_all_its_calls() {
        let answer = of(
            r#"{"type":"reasoning","id":"rs_1","summary":[]}, {"type":"message","role":"assistant","content":[{"type":"output_text","text":"ok"}]},
            {"type":"function_call","call_id":"a","name":"f","arguments":"{}"},{"type":"local_shell_call","id":"lsh_1","call_id":"b","action":{"type":"exec"}}"#,
        );
        assert_eq!((answer.role, answer.bond), (Role::Assistant, Bond::Reasons));
        let tools: Vec<&str> = answer.calls.iter().map(|call| &*call.tool).collect();
        assert_eq!(tools, ["f", "local_shell", "local_shell"]);
        let result = of(r#"{"type":"function_call_output","call_id":"a","output":"x"}"#);
        assert_eq!((result.role, result.answers[0]), (Role::Tool, answer.calls[0].id));
        let result = of(r#"{"type":"local_shell_call_output","id":"lsh_1","output":"{}"}"#);
        assert_eq!(result.answers[0], answer.calls[2].id);
    }

    #[test]
    fn the_outputs_of_results_can_be_masked() {
        let long = "x".repeat(90);
        for kind in [
            "function_call_output",
            "custom_tool_call_output",
            "local_shell_call_output",
            "apply_patch_call_output",
        ] {
            for output in
                [r#""x""#, r#"[{"type":"input_text","text":"x"},{"type":"input_image","file_id":"f"}]"#]
            {
                let json = format!(r#"{{"type":"{kind}","call_id":"c","output":{output}}}"#);
                assert_eq!(masked(&json), [output], "{json}");
            }
        }
        let shell = format!(
            r#"{{"type":"shell_call_output","call_id":"c","output":[{{"stdout":"{long}","stderr":"","outcome":{{"type":"exit","exit_code":0}}}}]}}"#
        );
        assert_eq!(masked(&shell), [format!("\"{long}\"")]);
        let served = r#"{"type":"mcp_call","id":"mcp_1","name":"f","arguments":"{}","server_label":"s","output":"x"},{"role":"assistant","content":"ok"}"#;
        assert_eq!(masked(served), [r#""x""#]);
        assert_eq!((of(served).role, of(served).results), (Role::Assistant, Results::BesideSpeech));
        for kept in [
            r#"{"type":"computer_call_output","call_id":"c","output":{"type":"computer_screenshot","image_url":"data:x"}}"#,
            r#"{"type":"tool_search_output","call_id":"c","tools":[]}"#,
            r#"{"type":"new_output","call_id":"c","output":"x"}"#,
            r#"{"type":"function_call_output","call_id":"c","output":[{"type":"new_part"}]}"#,
            r#"{"type":"function_call_output","call_id":"c","output":null}"#,
            r#"{"role":"assistant","content":"x"}"#,
        ] {
            assert!(of(kept).maskable.is_empty(), "{kept}");
        }
    }

    #[test]
    fn what_only_the_provider_understands_is_bound_to_its_neighbours() {
        for (json, bond) in [
            (r#"{"type":"item_reference","id":"rs_1"}"#, Bond::Opaque),
            (r#"{"id":"rs_1"}"#, Bond::Opaque),
            (r#"{"type":"new_thing"},{"type":"reasoning","summary":[]}"#, Bond::Opaque),
            (r#"{"type":"new_output","call_id":"x"}"#, Bond::Opaque),
            (
                r#"{"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":""}"#,
                Bond::MayRestOnReasons,
            ),
            (r#"{"type":"function_call","call_id":"c","name":"f","arguments":""}"#, Bond::None),
            (r#"{"type":"message","id":"msg_1","role":"user","content":"x"}"#, Bond::None),
            (r#"{"type":"web_search_call","action":{}}"#, Bond::None),
        ] {
            assert_eq!(of(json).bond, bond, "{json}");
        }
        assert!(of(r#"{"type":"compaction","encrypted_content":"x"}"#).is_native);
    }

    #[test]
    fn every_byte_of_an_item_is_checked() {
        for json in [
            r#"{"type":"function_call","arguments":"a\q"}"#,
            r#"{"type":"reasoning","summary":[tru]}"#,
            r#"{"type":"x","output":[1,]}"#,
            r#"{"role":"user","content":"x"}{"#,
            r#"{"role":"user","content":"x"},"#,
            r#"{"role":"user","content":"x"},5"#,
            r#"{"role":"user","role":"user"}"#,
            r#""a\q""#,
            r#""a" "#,
        ] {
            assert!(Dialect::Responses.read_message(json.as_bytes()).is_err(), "{json}");
        }
    }
}
