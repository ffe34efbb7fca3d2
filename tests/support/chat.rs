//! Conversations as lists of JSON texts with unusual white space and unknown members, so that a reserialized message differs from the
//! original.

use serde_json::json;

pub(crate) const CONSTRAINT: &str =
    "Never touch the production database. \u{26a0} Answer in metric units only.";

pub(crate) fn system(text: &str) -> String {
    format!("{{\"role\":\"system\", \"content\":{}}}", json!(text))
}

pub(crate) fn user(text: &str) -> String {
    format!("{{ \"role\":\"user\",\"content\":{}}}", json!(text))
}

pub(crate) fn assistant(text: &str) -> String {
    format!("{{\"content\":{} , \"role\":\"assistant\"}}", json!(text))
}

/// An assistant message with one tool call per id.
pub(crate) fn calls(ids: &[String]) -> String {
    let call = |id: &String| {
        format!(
            "{{\"id\":\"{id}\",\"type\":\"function\",\"function\":{{\"name\":\"shell\",\"arguments\":\"{{\\\"of\\\":\\\"{id}\\\"}}\"}}}}"
        )
    };
    let calls: Vec<String> = ids.iter().map(call).collect();
    format!(
        "{{\"role\":\"assistant\",\"content\":null,\"reasoning_content\":\"hm\\u002e\",\"tool_calls\":[{}]}}",
        calls.join(" ,")
    )
}

pub(crate) fn result(id: &str, text: &str) -> String {
    format!("{{\"tool_call_id\":\"{id}\", \"x_n\":1.50e3, \"content\":{} ,\"role\":\"tool\"}}", json!(text))
}

/// Tool output of a few hundred tokens.
pub(crate) fn output(number: usize) -> String {
    format!("result {number}: \u{1f30a} ") + &"a line of the output of the build\n".repeat(30)
}

/// A conversation that ends with a question. Each earlier question was answered after one tool call, or two parallel ones for every
/// second question.
pub(crate) fn chat(questions: usize) -> Vec<String> {
    let mut messages = vec![system(CONSTRAINT)];
    for number in 0..questions {
        messages
            .push(user(&format!("Question {number}: why does crates/harbour/src/pier_{number}.rs fail?")));
        if number + 1 < questions {
            messages.extend(answered(number));
        }
    }
    messages
}

/// The messages between one question and the next.
pub(crate) fn answered(number: usize) -> Vec<String> {
    let ids: Vec<String> = (0..=number % 2).map(|which| format!("call_{number}_{which}")).collect();
    let mut messages = vec![calls(&ids)];
    messages.extend(ids.iter().map(|id| result(id, &output(number))));
    messages.push(assistant(&format!(
        "Because pier {number} has no bollard. We decided to use bollard-{number}."
    )));
    messages
}

/// The index of a question in [`chat`].
pub(crate) fn question(number: usize) -> usize {
    1 + (0..number).map(|number| 1 + answered(number).len()).sum::<usize>()
}

/// A request with these messages.
pub(crate) fn body(messages: &[String]) -> String {
    body_for("gpt-4o", messages)
}

pub(crate) fn body_for(model: &str, messages: &[String]) -> String {
    let messages = messages.join(" ,\n ");
    format!(
        "{{\"seed\":123456789012345678901234567890, \"model\":\"{model}\",\"messages\":[ {messages} ],\n\"top_p\":1.0,\"x\":2e9}}"
    )
}
