//! Requests of an agent, with unusual white space, numbers and unknown members, so that a reserialized body differs from
//! the original.

use super::client::{CHAT, exchange, post};
use super::reply::Reply;
use super::tidegate::Tidegate;
use tidegate_testkit::MockUpstream;

pub(crate) const PLACEHOLDER: &str = "[OMITTED_OBSERVATION: too old; available in memory store]";

/// Masks results older than two turns at every turn.
pub(crate) const EVERY_TURN: &str = "[context.mask]\nkeep = { turns = 2 }\npace = \"every_turn\"\n";

/// A message, split around its content.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) before: String,
    pub(crate) content: String,
    pub(crate) behind: String,
}

impl Message {
    pub(crate) fn new(before: &str, content: &str, behind: &str) -> Message {
        let content = serde_json::to_string(content).unwrap();
        Message { before: before.to_owned(), content, behind: behind.to_owned() }
    }

    pub(crate) fn user(text: &str) -> Message {
        Message::new("{\"role\":\"user\",\"content\":", text, "}")
    }

    pub(crate) fn assistant(text: &str) -> Message {
        Message::new("{\"role\":\"assistant\",\"content\":", text, "}")
    }

    fn call(number: usize, tool: &str) -> Message {
        let call = format!(
            "{{\"id\":\"call_{number}\",\"type\":\"function\",\"function\":{{\"name\":\"{tool}\",\"arguments\":\"{{}}\"}}}}"
        );
        Message {
            before: "{\"role\" : \"assistant\",\"content\":".to_owned(),
            content: "null".to_owned(),
            behind: format!(",\"reasoning_content\":\"hm\\u002e\",\"tool_calls\":[{call}]}}"),
        }
    }

    fn result(number: usize, text: &str) -> Message {
        Message::new(
            &format!("{{ \"tool_call_id\":\"call_{number}\", \"x_n\":1.50e3, \"content\":"),
            text,
            " ,\"role\":\"tool\"}",
        )
    }

    fn written(&self, masked: bool) -> String {
        let placeholder = format!("\"{PLACEHOLDER}\"");
        let content = if masked { &placeholder } else { &self.content };
        format!("{}{content}{}", self.before, self.behind)
    }
}

/// A conversation of this many turns, each a call and its result. The result of turn `n` has index `3 + 2 × n`.
pub(crate) fn conversation(turns: usize) -> Vec<Message> {
    conversation_with(turns, |_| "shell")
}

pub(crate) fn conversation_with(turns: usize, tool: impl Fn(usize) -> &'static str) -> Vec<Message> {
    let mut messages = vec![
        Message::new("{\"role\":\"system\",\"content\":", "You are a careful agent.", "}"),
        Message::user("Fix the bug, \u{e9}t c\u{e6}tera."),
    ];
    for number in 0..turns {
        messages.push(Message::call(number, tool(number)));
        messages.push(Message::result(number, &output(number)));
    }
    messages
}

/// Tool output of a few hundred tokens.
pub(crate) fn output(number: usize) -> String {
    format!("result {number}: \u{1f30a} ") + &"a line of the output\n".repeat(40)
}

/// The indexes of the results of these turns.
pub(crate) fn results(turns: std::ops::Range<usize>) -> Vec<usize> {
    turns.map(|turn| 3 + 2 * turn).collect()
}

/// A request body with the messages at the indexes `masked` masked.
pub(crate) fn body(model: &str, messages: &[Message], masked: &[usize]) -> String {
    let messages: Vec<String> = messages
        .iter()
        .enumerate()
        .map(|(index, message)| message.written(masked.contains(&index)))
        .collect();
    format!(
        "{{\"seed\":123456789012345678901234567890, \"model\":\"{model}\",\"messages\":[ {} ],\n\"top_p\":1.0,\"x\":2e9}}",
        messages.join(" ,\n ")
    )
}

/// Requests a chat completion. Returns the response and the body that reached the upstream.
pub(crate) async fn send(
    tidegate: &Tidegate,
    upstream: &MockUpstream,
    headers: &[(&str, &str)],
    body: &str,
) -> (Reply, String) {
    let reply = exchange(tidegate.address, post(CHAT, headers, body)).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let arrived = upstream.next_request().await;
    (reply, String::from_utf8(arrived.body).unwrap())
}
