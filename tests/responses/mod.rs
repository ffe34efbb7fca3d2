//! OpenAI's responses, managed like chat completions.

mod folding;
mod forwarded;
mod history;
mod native;
mod refusals;
mod rescue;
mod shapes;
mod streaming;

use crate::support::client::{exchange, post};
use crate::support::reply::Reply;
use crate::support::tidegate::Tidegate;
use tidegate_testkit::{Answer, MockUpstream};

pub(crate) const RESPONSES: &str = "/v1/responses";

pub(crate) const HEADERS: [(&str, &str); 2] = [("authorization", "Bearer sk-1"), ("openai-beta", "x")];

/// A response that says this.
pub(crate) fn response(text: &str) -> String {
    format!(
        r#"{{"id":"resp_1","object":"response","status":"completed","model":"gpt-5","error":null,"output":[{{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{{"type":"output_text","text":"{text}","annotations":[]}}]}}]}}"#
    )
}

/// An upstream that always says "ok", without usage figures that would calibrate token counts.
pub(crate) async fn upstream() -> MockUpstream {
    let upstream = MockUpstream::start().await;
    upstream.answer(Answer::json(200, response("ok")));
    upstream
}

/// Sends a request. Returns the response and the body that reached the upstream.
pub(crate) async fn send(tidegate: &Tidegate, upstream: &MockUpstream, body: &str) -> (Reply, String) {
    let reply = exchange(tidegate.address, post(RESPONSES, &HEADERS, body)).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let arrived = upstream.next_request().await;
    (reply, String::from_utf8(arrived.body).unwrap())
}

/// An agent's conversation in which every step thinks, says a word and makes calls of several kinds. Unusual spelling, so that a
/// reserialized body differs. The results of the steps before `masked` have the placeholder as their output.
pub(crate) fn conversation(steps: usize, masked: usize) -> String {
    let mut items = vec![
        r#"{"type":"message","role":"developer","content":[{"type":"input_text","text":"Be exact."}]}"#
            .to_owned(),
        r#"{"role":"user","content":[ {"type":"input_text","text":"Fix the bug, \u00e9t c\u00e6tera."} ]}"#
            .to_owned(),
    ];
    for step in 0..steps {
        items.push(format!(
            r#"{{"id":"rs_{step}","type":"reasoning","summary":[],"encrypted_content":"gAAAA\u002b{step}"}} ,
              {{"type":"message","role":"assistant","content":[{{"type":"output_text","text":"I look.","annotations":[]}}],"phase":"commentary"}},
              {{"arguments":"{{\"n\": 1.50e3}}","call_id":"a{step}","type":"function_call","name":"shell","x":[1e999]}},
              {{"type":"custom_tool_call","call_id":"b{step}","name":"apply","input":"*** Begin"}},
              {{"type":"web_search_call","id":"ws_{step}","status":"completed","action":{{"type":"search","query":"q"}}}}"#
        ));
        let output = |number: usize| {
            let text = serde_json::json!(
                format!("result {number}: \u{1f30a} ") + &"a line of the output\n".repeat(40)
            );
            match (step < masked, number % 2) {
                (true, _) => format!("\"{}\"", crate::support::agent::PLACEHOLDER),
                (false, 0) => text.to_string(),
                (false, _) => format!(r#"[ {{"type":"input_text","text":{text}}} ]"#),
            }
        };
        items.push(format!(
            r#"{{ "output" : {}, "call_id":"a{step}" ,"type":"function_call_output", "status":null}}"#,
            output(2 * step)
        ));
        items.push(format!(
            r#"{{"type":"custom_tool_call_output","call_id":"b{step}","output" : {} }}"#,
            output(2 * step + 1)
        ));
    }
    format!(
        "{{\"max_output_tokens\":1000,\"instructions\":\"You are careful.\", \"model\":\"gpt-5\",\"store\":false,\n\
         \"input\":[ {} ],\"x\":2e9, \"include\":[\"reasoning.encrypted_content\"]}}",
        items.join(" ,\n ")
    )
}

pub(crate) fn edits(masked: usize) -> String {
    format!("masked={masked},folded=0,dropped=0")
}
