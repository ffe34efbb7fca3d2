//! The built-in chat model. It deterministically echoes the last user message, calls tools and fills schemas.

use serde_json::{Value, json};

use crate::answer::{Answer, event_bytes, usage};
use crate::openai::{fingerprint, not_json};
use crate::recorded::Recorded;
use crate::schema;
use crate::step::Step;

pub(crate) fn answer(request: &Recorded) -> Answer {
    let Ok(body) = serde_json::from_slice::<Value>(&request.body) else { return not_json() };
    let Some(messages) = body["messages"].as_array() else {
        return Answer::error(400, "missing_required_parameter", "you must provide a messages parameter");
    };
    let reply = reply(&body, messages);
    let figures = figures(&body, messages, &reply);
    if body["stream"] == true { streamed(&body, &reply, &figures) } else { whole(&body, &reply, &figures) }
}

/// The reply of the model.
enum Reply {
    Text(String),
    ToolCall { id: String, name: String, arguments: String },
}

fn reply(body: &Value, messages: &[Value]) -> Reply {
    let last = messages.iter().rev().find(|message| message["role"] == "user").map_or("", |m| text_of(m));
    if let Some(tool) = wanted_tool(body, messages, last) {
        let function = &tool["function"];
        let name = function["name"].as_str().unwrap_or_default().to_owned();
        let arguments = schema::satisfy(&function["parameters"], last).to_string();
        return Reply::ToolCall {
            id: format!("call_{:016x}", fingerprint(last.as_bytes())),
            name,
            arguments,
        };
    }
    let format = &body["response_format"];
    if format["type"] == "json_schema" {
        return Reply::Text(schema::satisfy(&format["json_schema"]["schema"], last).to_string());
    }
    if format["type"] == "json_object" {
        return Reply::Text(json!({"answer": last}).to_string());
    }
    match messages.last() {
        Some(message) if message["role"] == "tool" => {
            Reply::Text(format!("The tool said: {}", text_of(message)))
        }
        Some(_) | None => Reply::Text(format!("You said: {last}")),
    }
}

fn wanted_tool<'a>(body: &'a Value, messages: &[Value], last_user_text: &str) -> Option<&'a Value> {
    let tools = body["tools"].as_array()?;
    let choice = &body["tool_choice"];
    if let Some(name) = choice["function"]["name"].as_str() {
        return tools.iter().find(|tool| tool["function"]["name"] == name);
    }
    let answered = messages.last().is_some_and(|message| message["role"] == "tool");
    let asked = choice == "required" || (!answered && last_user_text.to_lowercase().contains("weather"));
    if asked && choice != "none" { tools.first() } else { None }
}

/// The text of a message, whose content is a string or a list of parts.
fn text_of(message: &Value) -> &str {
    match &message["content"] {
        Value::String(text) => text,
        Value::Array(parts) => parts.iter().find_map(|part| part["text"].as_str()).unwrap_or_default(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => "",
    }
}

/// Usage at four bytes per token. All but the last message counts as cached, in steps of 128 from 1,024 on, like OpenAI does.
fn figures(body: &Value, messages: &[Value], reply: &Reply) -> Value {
    let size = |message: &Value| message.to_string().len().div_ceil(4);
    let prompt: usize = messages.iter().map(size).sum::<usize>() + size(&body["tools"]);
    let stable = prompt - messages.last().map_or(0, size);
    let cached = if stable >= 1024 { stable / 128 * 128 } else { 0 };
    let completion = match reply {
        Reply::Text(text) => text.len(),
        Reply::ToolCall { arguments, name, .. } => arguments.len() + name.len(),
    };
    usage(prompt, completion.div_ceil(4), cached)
}

fn whole(body: &Value, reply: &Reply, figures: &Value) -> Answer {
    let (message, finish) = match reply {
        Reply::Text(text) => (json!({"role": "assistant", "content": text, "refusal": null}), "stop"),
        Reply::ToolCall { id, name, arguments } => {
            let function = json!({"name": name, "arguments": arguments});
            let calls = json!([{"id": id, "type": "function", "function": function}]);
            (
                json!({"role": "assistant", "content": null, "refusal": null, "tool_calls": calls}),
                "tool_calls",
            )
        }
    };
    let choice = json!({"index": 0, "message": message, "logprobs": null, "finish_reason": finish});
    let mut completion = envelope(body, "chat.completion", json!([choice]));
    completion["usage"] = figures.clone();
    Answer::json(200, completion)
}

fn streamed(body: &Value, reply: &Reply, figures: &Value) -> Answer {
    let include_usage = body.pointer("/stream_options/include_usage") == Some(&Value::Bool(true));
    let chunk = |delta: Value, finish: Option<&str>| {
        let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish});
        let mut chunk = envelope(body, "chat.completion.chunk", json!([choice]));
        if include_usage {
            // OpenAI sends a null usage in every chunk except the last.
            chunk["usage"] = Value::Null;
        }
        chunk.to_string()
    };
    let mut events = Vec::new();
    let finish = match reply {
        Reply::Text(text) => {
            events.push(chunk(json!({"role": "assistant", "content": ""}), None));
            events.extend(text.split_inclusive(' ').map(|word| chunk(json!({"content": word}), None)));
            "stop"
        }
        Reply::ToolCall { id, name, arguments } => {
            let function = json!({"name": name, "arguments": ""});
            let call = json!([{"index": 0, "id": id, "type": "function", "function": function}]);
            events.push(chunk(json!({"role": "assistant", "content": null, "tool_calls": call}), None));
            let letters: Vec<char> = arguments.chars().collect();
            events.extend(letters.chunks(12).map(|piece| {
                let piece: String = piece.iter().collect();
                chunk(json!({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}), None)
            }));
            "tool_calls"
        }
    };
    events.push(chunk(json!({}), Some(finish)));
    let mut closing = envelope(body, "chat.completion.chunk", json!([]));
    closing["usage"] = figures.clone();
    Answer::sse(events).step(Step::UsageChunk(event_bytes(&closing.to_string()))).event("[DONE]")
}

fn envelope(body: &Value, object: &str, choices: Value) -> Value {
    let id = format!("chatcmpl-{:016x}", fingerprint(body.to_string().as_bytes()));
    let model = body["model"].as_str().unwrap_or("mock");
    json!({
        "id": id, "object": object, "created": 1_700_000_000, "model": model, "choices": choices,
        "service_tier": "default", "system_fingerprint": "fp_mock",
    })
}
