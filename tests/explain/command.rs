//! Runs `tidegate explain`, and builds requests for it.

use crate::support::command::{Output, blocking_command};
use serde_json::{Value, json};
use std::io::Write;
use std::process::Stdio;
use tempfile::TempDir;

/// Keeps the last turn and masks everything before it.
pub(crate) const ONE_TURN: &str = "[context.mask]\nkeep = { turns = 1 }\n";

/// Runs `tidegate explain request.json` with this configuration and body.
pub(crate) fn explain(config: &str, body: &str, args: &[&str]) -> Output {
    let directory = TempDir::new().unwrap();
    std::fs::write(directory.path().join("request.json"), body).unwrap();
    run(&directory, config, "", &[&["request.json"], args].concat())
}

pub(crate) fn run(directory: &TempDir, config: &str, input: &str, args: &[&str]) -> Output {
    std::fs::write(directory.path().join("proxy.toml"), config).unwrap();
    let mut command = blocking_command(directory.path());
    command.arg("explain").args(args);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A command that fails early does not read its input.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap().into()
}

pub(crate) fn call(id: &str, tool: &str) -> Value {
    let function = json!({"name": tool, "arguments": "{}"});
    json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function", "function": function}]})
}

pub(crate) fn result(id: &str, content: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": content})
}

pub(crate) fn request(messages: &[Value]) -> String {
    json!({"model": "gpt-4o-2024-08-06", "messages": messages}).to_string()
}

/// A conversation that ends with a question. Each earlier question was answered after a tool call.
pub(crate) fn chat(questions: usize) -> String {
    let mut messages = vec![json!({"role": "system", "content": "Be brief."})];
    for number in 0..questions {
        messages.push(
            json!({"role": "user", "content": format!("Question {number}: why does pier {number} fail?")}),
        );
        if number + 1 < questions {
            let id = format!("c{number}");
            messages.extend([call(&id, "read_file"), result(&id, &"one line of output\n".repeat(40))]);
            let text = format!("We decided to use bollard-{number} for it.");
            messages.push(json!({"role": "assistant", "content": text}));
        }
    }
    request(&messages)
}

/// An agent with long messages that has read four files for one task.
pub(crate) fn worker() -> String {
    let mut messages = vec![
        json!({"role": "system", "content": "Be brief."}),
        json!({"role": "user", "content": "Why does the build fail?"}),
    ];
    for number in 0..4 {
        let id = format!("c{number}");
        let text = format!("I read the file of pier {number} and see what it says about its bollards. ");
        let mut call = call(&id, "read_file");
        call["content"] = text.repeat(5).into();
        messages.extend([call, result(&id, "ok")]);
    }
    request(&messages)
}

/// An agent that has used two tools, one of them twice.
pub(crate) fn agent() -> String {
    let output = "one line of output\n".repeat(40);
    request(&[
        json!({"role": "system", "content": "Be brief."}),
        json!({"role": "user", "content": "Why does the build fail?"}),
        call("a", "read_file"),
        result("a", &output),
        call("b", "list"),
        result("b", "src"),
        call("c", "read_file"),
        result("c", &output),
    ])
}
