//! Anthropic's messages, managed like chat completions.

mod answers;
mod folding;
mod forwarded;
mod native;
mod refusals;
mod rescue;
mod streaming;
mod thinking;

use crate::support::client::{exchange, post};
use crate::support::reply::Reply;
use crate::support::tidegate::Tidegate;
use tidegate_testkit::{Answer, MockUpstream};

pub(crate) const MESSAGES: &str = "/v1/messages";

/// The headers that Anthropic's SDKs send.
pub(crate) const HEADERS: [(&str, &str); 3] = [
    ("x-api-key", "sk-ant-1"),
    ("anthropic-version", "2023-06-01"),
    ("anthropic-beta", "context-1m-2025-08-07"),
];

/// An upstream that always says "ok", without usage figures that would calibrate token counts.
pub(crate) async fn upstream() -> MockUpstream {
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::json(
        200,
        r#"{"id":"m","type":"message","role":"assistant","model":"claude","content":[{"type":"text","text":"ok"}],"stop_reason":"end_turn"}"#,
    ));
    upstream
}

/// Sends a request. Returns the response and the body that reached the upstream.
pub(crate) async fn send(tidegate: &Tidegate, upstream: &MockUpstream, body: &str) -> (Reply, String) {
    let reply = exchange(tidegate.address, post(MESSAGES, &HEADERS, body)).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let arrived = upstream.next_request().await;
    (reply, String::from_utf8(arrived.body).unwrap())
}

/// An agent's conversation in which every step makes two calls. Unusual spelling, so that a reserialized body differs. The results of
/// the steps before `masked` have the placeholder as their content.
pub(crate) fn conversation(steps: usize, masked: usize) -> String {
    let mut messages = vec![
        r#"{"role":"user","content":[ {"type":"text","text":"Fix the bug, \u00e9t c\u00e6tera."} ]}"#
            .to_owned(),
    ];
    for step in 0..steps {
        messages.push(format!(
            r#"{{"role":"assistant","content":[{{"type":"thinking","thinking":"hm\u002e","signature":"c2ln{step}"}},
              {{"type":"redacted_thinking","data":"AAAA"}}, {{"type":"text","text":"I look."}},
              {{"type":"tool_use","id":"a{step}","name":"shell","input":{{"n": 1.50e3}}}},{{"type":"tool_use","id":"b{step}","name":"read","input":{{}}}},
              {{"type":"x_new","x":[1e999]}}]}}"#
        ));
        let output = |number: usize| {
            let text = serde_json::json!(
                format!("result {number}: \u{1f30a} ") + &"a line of the output\n".repeat(40)
            );
            match (step < masked, number % 2) {
                (true, _) => format!("\"{}\"", crate::support::agent::PLACEHOLDER),
                (false, 0) => text.to_string(),
                (false, _) => format!(r#"[ {{"type":"text","text":{text}}} ]"#),
            }
        };
        messages.push(format!(
            r#"{{ "content" : [{{"type":"tool_result","content":{},"tool_use_id":"a{step}","is_error" : true}},
              {{"cache_control":{{"type":"ephemeral"}},"type":"tool_result","tool_use_id":"b{step}","content" : {} }},
              {{"type":"text","text":"<system-reminder>Be brief.</system-reminder>"}}], "role":"user"}}"#,
            output(2 * step),
            output(2 * step + 1),
        ));
    }
    format!(
        "{{\"max_tokens\":1000,\"system\":[{{\"type\":\"text\",\"text\":\"You are careful.\"}}], \"model\":\"claude-sonnet-4-5\",\n\
         \"messages\":[ {} ],\"x\":2e9, \"temperature\":1.0}}",
        messages.join(" ,\n ")
    )
}
