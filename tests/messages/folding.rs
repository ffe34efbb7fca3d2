//! Summaries and markers: what is forwarded stays a request that the API accepts.

use super::{send, upstream};
use crate::support::tidegate::{Setup, Tidegate};
use serde_json::{Value, json};
use tidegate_testkit::MockUpstream;
use tidegate_testkit::messages_api::{assert_valid, breakpoints};

async fn start(settings: &str, upstream: &MockUpstream) -> Tidegate {
    let settings = format!("[store]\nurl = \"memory:\"\n{settings}");
    Setup::new(&settings).before(upstream).start().await
}

/// A conversation in which a question comes at every third step, twice beside a result. The last two messages have markers.
fn request(steps: usize) -> String {
    let mut messages = vec![json!({"role": "user", "content": "Question 0: how long is pier 0?"})];
    for step in 0..steps {
        if step % 3 == 2 {
            messages.push(json!({"role": "assistant", "content": format!("Pier {step} is long. ") + &"More of it. ".repeat(30)}));
            messages.push(json!({"role": "user", "content": format!("Question {step}: and the next one?")}));
            continue;
        }
        messages.push(json!({"role": "assistant", "content": [
            {"type": "text", "text": "I measure it."},
            {"type": "tool_use", "id": format!("t{step}"), "name": "measure", "input": {"pier": step}}]}));
        let result = json!({"type": "tool_result", "tool_use_id": format!("t{step}"),
            "content": format!("pier {step}: ") + &"nine metres and a bit\n".repeat(30)});
        let mut content = vec![result];
        if step % 3 == 1 {
            content.push(json!({"type": "text", "text": format!("Also say why, {step}.")}));
        }
        messages.push(json!({"role": "user", "content": content}));
    }
    let last = messages.len();
    for index in [last - 1, last.saturating_sub(3)] {
        if let Some(block) = messages[index]["content"].as_array_mut().and_then(|blocks| blocks.last_mut()) {
            block["cache_control"] = json!({"type": "ephemeral"});
        }
    }
    json!({"model": "claude-sonnet-4-5", "max_tokens": 500, "system": [{"type": "text", "text": "Be exact.",
        "cache_control": {"type": "ephemeral"}}], "messages": messages})
    .to_string()
}

/// The same with instructions among the messages, and with calls that the provider makes itself: at every fourth step it pauses between
/// such a call and its result, and at every fifth, code that it runs calls the client's tool.
fn request_with_more(steps: usize) -> String {
    let mut request: Value = serde_json::from_str(&request(steps)).unwrap();
    let Value::Array(messages) = request["messages"].take() else { panic!("no messages") };
    let last = messages.len() - 1;
    let mut all: Vec<Value> = Vec::new();
    let mut code = None;
    for (index, mut message) in messages.into_iter().enumerate() {
        let is_user = message["role"] == "user";
        if !is_user && let Some(result) = code.take() {
            message["content"] = match message["content"].take() {
                Value::Array(blocks) => [vec![result], blocks].concat().into(),
                text => json!([result, {"type": "text", "text": text}]),
            };
        }
        if !is_user && index % 10 == 5 && message["content"][1]["type"] == "tool_use" && index + 2 < last {
            let id = format!("x{index}");
            let call = json!({"type": "server_tool_use", "id": id, "name": "code_execution", "input": {"code": "go()"}});
            message["content"].as_array_mut().unwrap().insert(1, call);
            message["content"][2]["caller"] = json!({"type": "code_execution_20250825", "tool_id": id});
            code = Some(
                json!({"type": "code_execution_tool_result", "tool_use_id": id, "content": {"stdout": "ran ".repeat(40)}}),
            );
        }
        if !is_user && index % 8 == 3 {
            let id = format!("s{index}");
            let call = json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": {"query": "piers"}});
            let result = json!({"type": "web_search_tool_result", "tool_use_id": id, "content": [{"type": "web_search_result",
                "title": "Piers", "url": "https://example.org", "encrypted_content": "AAAA".repeat(40)}]});
            all.push(json!({"role": "assistant", "content": [call]}));
            message["content"] = match message["content"].take() {
                Value::Array(blocks) => [vec![result], blocks].concat().into(),
                text => json!([result, {"type": "text", "text": text}]),
            };
        }
        all.push(message);
        if is_user && index % 6 == 2 {
            all.push(json!({"role": "system", "content": [{"type": "text", "text": format!("Note {index}: be brief.")}]}));
        }
    }
    request["messages"] = all.into();
    request.to_string()
}

async fn grow(settings: &str, removes: &str) {
    grow_with(request, settings, removes).await;
    grow_with(request_with_more, &settings.replace("max_input = 1500", "max_input = 4000"), removes).await;
}

async fn grow_with(request: impl Fn(usize) -> String, settings: &str, removes: &str) {
    let upstream = upstream().await;
    let tidegate = start(settings, &upstream).await;
    let mut was_shortened = false;
    for steps in 1..24 {
        let sent = request(steps);
        let (reply, arrived) = send(&tidegate, &upstream, &sent).await;
        let (before, after): (Value, Value) =
            (serde_json::from_str(&sent).unwrap(), serde_json::from_str(&arrived).unwrap());
        assert_valid(&before);
        assert_valid(&after);
        assert!(breakpoints(&after) <= breakpoints(&before));
        let edits = reply.header("x-tidegate-edits").unwrap();
        was_shortened |= !edits.contains(&format!("{removes}=0"));
        // The end of the conversation stays as it is.
        let end = |request: &Value| request["messages"].as_array().unwrap().last().unwrap().clone();
        if edits == "masked=0,folded=0,dropped=0" {
            assert_eq!(arrived, sent);
        } else if after["messages"].as_array().unwrap().len() > 2 {
            assert_eq!(end(&after), end(&before), "{steps} steps");
        }
    }
    assert!(was_shortened, "nothing was {removes}");
}

#[tokio::test]
async fn a_folded_conversation_stays_valid() {
    grow(
        "[context]\nstrategy = \"summarization\"\n[context.recall]\nauto = false\n[context.fold]\nmode = \"inline\"\nwhen = { user_turns = 4 }\nkeep = { user_turns = 2 }\n",
        "folded",
    )
    .await;
}

#[tokio::test]
async fn a_conversation_folded_under_pressure_stays_valid() {
    grow(
        "[context]\nstrategy = \"hybrid\"\n[context.recall]\nauto = false\n[context.fold]\nmode = \"inline\"\n[context.budget]\nmax_input = 1500\n",
        "folded",
    )
    .await;
}

#[tokio::test]
async fn a_conversation_without_its_middle_stays_valid() {
    grow("[context]\nstrategy = \"window\"\n[context.recall]\nauto = false\n[context.budget]\nmax_input = 1500\n", "dropped").await;
}
