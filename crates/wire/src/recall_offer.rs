//! Whether a request can be given the tool by which its model asks for what was shortened.

use crate::{Dialect, ExtraKind, Outline};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::HashMap;

/// The name of the tool.
pub const RECALL_TOOL: &str = "tidegate_recall";

/// What our MCP server calls it.
const MCP_RECALL: &str = "recall";

/// The most tools that OpenAI's API takes in a request.
const MAX_TOOLS: usize = 128;

/// How the model of a request can ask for the original of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecallOffer {
    /// With a tool of ours. Its definition goes to this byte of the body, behind the client's last tool.
    Tool { at: usize },
    /// With the tool of our MCP server, which the client has among its own.
    Mcp,
}

/// Whether this is a name of the tool: ours, or that of our MCP server's. Clients put the name of the server before that of the tool,
/// each in its own way.
fn recalls(tool: &str) -> bool {
    tool == RECALL_TOOL || (tool.contains("tidegate") && tool.ends_with(MCP_RECALL))
}

impl RecallOffer {
    /// Whether the calls of a tool by this name are answered with what was shortened. In a namespace of its own, the tool of the MCP
    /// server has no name before its own.
    #[must_use]
    pub fn is_answered_by(self, tool: &str) -> bool {
        recalls(tool) || (self == RecallOffer::Mcp && tool == MCP_RECALL)
    }

    /// `None` if the model has no tools or already all that providers take, if its calls are bound to a form, or if there are several answers.
    ///
    /// What decides is the same throughout a conversation, so that the tools, with which every prompt begins, stay the same, too. A client
    /// may force a call or forbid calls in one request, or ask for a form of the answer: our tool does no harm there.
    #[must_use]
    pub fn of(body: &[u8], outline: &Outline) -> Option<RecallOffer> {
        let mut tools = outline.extras.iter().filter(|extra| extra.kind == ExtraKind::Tools);
        let (Some(only), None) = (tools.next(), tools.next()) else { return None };
        let named: Vec<Tool> = serde_json::from_slice(only.span.of(body)).ok()?;
        let names = || named.iter().filter_map(Tool::name);
        let is_of_mcp = |name: &str| recalls(name) && name != RECALL_TOOL;
        if names().any(is_of_mcp) || named.iter().any(Tool::is_namespace_with_recall) {
            return Some(RecallOffer::Mcp);
        }
        let array = outline.array.range();
        let (before, after) = (body.get(..array.start)?, body.get(array.end..)?);
        let envelope: Envelope = serde_json::from_slice(&[before, b"[]", after].concat()).ok()?;
        let is_ours = names().any(|name| name == RECALL_TOOL);
        let is_bound = named.iter().any(Tool::is_strict) || envelope.is_bound();
        let has_room = (1..MAX_TOOLS).contains(&named.len());
        let can_take = outline.dialect == Dialect::Chat && has_room && !is_ours && !is_bound;
        can_take.then(|| RecallOffer::Tool { at: only.span.range().end - 1 })
    }
}

/// The same request, whose answer can only be in words. Its tools stay, and with them what the provider has cached of it. `None` if its client
/// has chosen what can be called, or it cannot be read.
#[must_use]
pub fn forbid_calls(body: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(body).ok()?;
    let members: HashMap<String, &RawValue> = serde_json::from_str(text).ok()?;
    let (span, new) = match members.get("tool_choice").map(|choice| choice.get()) {
        Some(chosen) if !["\"auto\"", "null"].contains(&chosen) => return None,
        Some(known) => {
            let start = known.as_ptr() as usize - text.as_ptr() as usize;
            (start..start + known.len(), r#""none""#)
        }
        None => {
            let end = text.rfind('}')?;
            (end..end, r#","tool_choice":"none""#)
        }
    };
    Some([&body[..span.start], new.as_bytes(), &body[span.end..]].concat())
}

#[derive(Deserialize)]
struct Tool {
    name: Option<String>,
    strict: Option<Value>,
    function: Option<Function>,
    /// The tools of a namespace, which is named instead of them.
    tools: Option<Value>,
}

#[derive(Deserialize)]
struct Function {
    name: Option<String>,
    strict: Option<Value>,
}

impl Tool {
    fn name(&self) -> Option<&str> {
        self.function.as_ref().and_then(|function| function.name.as_deref()).or(self.name.as_deref())
    }

    fn is_namespace_with_recall(&self) -> bool {
        let is_ours = self.name.as_deref().is_some_and(|name| name.contains("tidegate"));
        let tools = self.tools.iter().filter_map(Value::as_array).flatten();
        let mut names = tools.filter_map(|tool| tool["name"].as_str().or(tool["function"]["name"].as_str()));
        is_ours && names.any(|name| name.ends_with(MCP_RECALL))
    }

    fn is_strict(&self) -> bool {
        let strict = self.function.as_ref().and_then(|function| function.strict.as_ref());
        strict.or(self.strict.as_ref()) == Some(&Value::Bool(true))
    }
}

#[derive(Deserialize)]
struct Envelope {
    n: Option<Value>,
    functions: Option<Value>,
}

impl Envelope {
    fn is_bound(&self) -> bool {
        let is_one = self.n.as_ref().is_none_or(|n| *n == 1);
        !is_one || self.functions.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::split;

    fn offer(rest: &str) -> Option<RecallOffer> {
        let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":"hi"}}],{rest}}}"#);
        RecallOffer::of(body.as_bytes(), &split(Dialect::Chat, body.as_bytes()).unwrap())
    }

    const TOOLS: &str = r#""tools":[{"type":"function","function":{"name":"ls"}}]"#;

    #[test]
    fn a_request_with_tools_gets_another_one() {
        let body = format!(r#"{{"messages":[],{TOOLS} ,"tool_choice":"auto","n":1}}"#);
        let at = body.find("] ,").unwrap();
        let outline = split(Dialect::Chat, body.as_bytes()).unwrap();
        assert_eq!(RecallOffer::of(body.as_bytes(), &outline), Some(RecallOffer::Tool { at }));
        assert_eq!(&body[at..=at], "]");
        let text = format!(r#"{TOOLS},"response_format":{{"type":"text"}},"tool_choice":null"#);
        assert!(offer(&text).is_some());
    }

    #[test]
    fn an_answer_that_is_bound_or_has_no_tools_gets_none() {
        for rest in [
            r#""n":1"#,
            r#""tools":[]"#,
            r#""tools":null"#,
            r#""functions":[{"name":"ls"}]"#,
            r#""tools":[{"type":"function","function":{"name":"ls","strict":true}}]"#,
            r#""tools":[{"type":"function","function":{"name":"tidegate_recall"}}]"#,
        ] {
            assert_eq!(offer(rest), None, "{rest}");
        }
        assert_eq!(offer(&format!(r#"{TOOLS},"n":2"#)), None);
        let tools = |count: usize| {
            let all = vec![r#"{"type":"function","function":{"name":"ls"}}"#; count];
            format!(r#""tools":[{}]"#, all.join(","))
        };
        assert!(offer(&tools(127)).is_some());
        assert_eq!(offer(&tools(128)), None, "no provider takes more");
    }

    #[test]
    fn what_a_client_wants_of_one_answer_changes_no_tools() {
        for more in [
            r#""tool_choice":"required""#,
            r#""tool_choice":"none""#,
            r#""tool_choice":{"type":"function","function":{"name":"ls"}}"#,
            r#""response_format":{"type":"json_schema","json_schema":{}}"#,
        ] {
            assert_eq!(offer(&format!("{TOOLS},{more}")), offer(TOOLS), "{more}");
        }
    }

    #[test]
    fn a_model_can_be_made_to_answer() {
        for (body, expected) in [
            (r#"{"messages":[]}"#, r#"{"messages":[],"tool_choice":"none"}"#),
            (r#"{"tool_choice" : "auto" ,"n":1}"#, r#"{"tool_choice" : "none" ,"n":1}"#),
            (r#"{"tool_choice":null,"n":1}"#, r#"{"tool_choice":"none","n":1}"#),
        ] {
            let forbidden = forbid_calls(body.as_bytes()).unwrap();
            assert_eq!(String::from_utf8(forbidden).unwrap(), expected);
        }
        assert_eq!(forbid_calls(b"[]x"), None);
        assert_eq!(forbid_calls(br#"{"tool_choice":"required"}"#), None);
    }

    #[test]
    fn a_client_of_the_mcp_server_needs_no_other_tool() {
        let tools = r#""tools":[{"type":"function","function":{"name":"mcp__tidegate__recall"}}]"#;
        assert_eq!(offer(tools), Some(RecallOffer::Mcp));
        let namespace = r#""tools":[{"type":"namespace","name":"mcp__tidegate","tools":[{"type":"function","name":"recall"}]}]"#;
        assert_eq!(offer(namespace), Some(RecallOffer::Mcp));
        let other =
            r#""tools":[{"type":"namespace","name":"shop","tools":[{"type":"function","name":"recall"}]}]"#;
        assert_ne!(offer(other), Some(RecallOffer::Mcp));
    }

    #[test]
    fn the_tool_has_a_name_in_every_client() {
        for (offer, tool, is_answered) in [
            (RecallOffer::Mcp, "mcp__tidegate__recall", true),
            (RecallOffer::Mcp, "recall", true),
            (RecallOffer::Mcp, "mcp__tidegate__search_history", false),
            (RecallOffer::Mcp, "mcp__shop__recall", false),
            (RecallOffer::Tool { at: 0 }, RECALL_TOOL, true),
            (RecallOffer::Tool { at: 0 }, "recall", false),
        ] {
            assert_eq!(offer.is_answered_by(tool), is_answered, "{tool}");
        }
    }
}
