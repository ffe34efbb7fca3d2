//! The recorded run in the words of another API.

use serde_json::{Value, json};
use tidegate_wire::Dialect;

/// The recording, a line of chat completions, as a line of this dialect.
pub(super) fn recording(dialect: Dialect, recording: &str) -> anyhow::Result<String> {
    if dialect == Dialect::Chat {
        return Ok(recording.to_owned());
    }
    let chat: Value = serde_json::from_str(recording)?;
    let mut line =
        json!({ "id": chat["id"], "model": chat["model"], "tools": tools(dialect, &chat["tools"]) });
    if !chat["cache_control"].is_null() {
        line["cache_control"] = chat["cache_control"].clone();
    }
    let mut all = Vec::new();
    for message in chat["messages"].as_array().into_iter().flatten() {
        if message["role"] != "system" {
            all.extend(elements(dialect, message));
            continue;
        }
        let instructions = match dialect {
            Dialect::Messages => "system",
            Dialect::Chat | Dialect::Responses => "instructions",
        };
        line[instructions] = message["content"].clone();
    }
    line[dialect.messages_key()] = all.into();
    Ok(line.to_string() + "\n")
}

/// A message of the agent or of its client as the elements of a conversation.
fn elements(dialect: Dialect, message: &Value) -> Vec<Value> {
    let (text, calls) = (&message["content"], message["tool_calls"].as_array().into_iter().flatten());
    match (dialect, message["role"].as_str()) {
        (Dialect::Chat, _) => vec![message.clone()],
        (Dialect::Messages, Some("assistant")) => {
            let mut blocks: Vec<Value> =
                text.as_str().map(|text| json!({ "type": "text", "text": text })).into_iter().collect();
            blocks.extend(calls.map(|call| {
                let arguments = call["function"]["arguments"].as_str().unwrap_or("{}");
                let input: Value = serde_json::from_str(arguments).unwrap_or_else(|_| json!({}));
                json!({ "type": "tool_use", "id": call["id"], "name": call["function"]["name"], "input": input })
            }));
            vec![json!({ "role": "assistant", "content": blocks })]
        }
        (Dialect::Messages, Some("tool")) => {
            let result =
                json!({ "type": "tool_result", "tool_use_id": message["tool_call_id"], "content": text });
            vec![json!({ "role": "user", "content": [result] })]
        }
        (Dialect::Responses, Some("assistant")) => {
            let words = |text: &str| json!({ "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": text }] });
            let mut items: Vec<Value> = text.as_str().map(words).into_iter().collect();
            items.extend(calls.map(|call| {
                let function = &call["function"];
                json!({ "type": "function_call", "call_id": call["id"], "name": function["name"], "arguments": function["arguments"] })
            }));
            items
        }
        (Dialect::Responses, Some("tool")) => {
            vec![
                json!({ "type": "function_call_output", "call_id": message["tool_call_id"], "output": text }),
            ]
        }
        (Dialect::Messages | Dialect::Responses, _) => vec![json!({ "role": "user", "content": text })],
    }
}

fn tools(dialect: Dialect, tools: &Value) -> Value {
    let tool = |tool: &Value| {
        let function = &tool["function"];
        match dialect {
            Dialect::Chat => tool.clone(),
            Dialect::Messages => json!({ "name": function["name"], "description": function["description"],
                "input_schema": function["parameters"] }),
            Dialect::Responses => json!({ "type": "function", "name": function["name"],
                "description": function["description"], "parameters": function["parameters"] }),
        }
    };
    tools.as_array().into_iter().flatten().map(tool).collect()
}

/// What an upstream reports of the tokens of a request.
pub(super) struct Usage {
    pub(super) prompt: u64,
    pub(super) cached: u64,
    pub(super) completion: u64,
}

/// An upstream's response with this message of the agent.
pub(super) fn response(
    dialect: Dialect,
    number: usize,
    model: &str,
    message: &Value,
    usage: &Usage,
) -> Value {
    let Usage { prompt, cached, completion } = *usage;
    let has_calls = message["tool_calls"].as_array().is_some_and(|calls| !calls.is_empty());
    match dialect {
        Dialect::Chat => json!({
            "id": format!("chatcmpl-demo-{number}"),
            "object": "chat.completion",
            "model": model,
            "choices": [{ "index": 0, "message": message, "finish_reason": if has_calls { "tool_calls" } else { "stop" } }],
            "usage": {
                "prompt_tokens": prompt,
                "completion_tokens": completion,
                "total_tokens": prompt + completion,
                "prompt_tokens_details": { "cached_tokens": cached },
            },
        }),
        Dialect::Messages => json!({
            "id": format!("msg_demo_{number}"),
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": elements(dialect, message)[0]["content"],
            "stop_reason": if has_calls { "tool_use" } else { "end_turn" },
            "usage": {
                "input_tokens": prompt - cached,
                "cache_read_input_tokens": cached,
                "cache_creation_input_tokens": 0,
                "output_tokens": completion,
            },
        }),
        Dialect::Responses => json!({
            "id": format!("resp_demo_{number}"),
            "object": "response",
            "status": "completed",
            "model": model,
            "output": elements(dialect, message),
            "usage": {
                "input_tokens": prompt,
                "input_tokens_details": { "cached_tokens": cached },
                "output_tokens": completion,
                "output_tokens_details": { "reasoning_tokens": 0 },
                "total_tokens": prompt + completion,
            },
        }),
    }
}
