//! The model asks for what was shortened, and the client sees one plain answer.

mod bounds;
mod put_back;
mod streamed;
mod whole;

use crate::support::agent::{EVERY_TURN, PLACEHOLDER, body, conversation, output};
use crate::support::client::{CHAT, exchange, post};
use crate::support::reply::Reply;
use crate::support::tidegate::Tidegate;
use serde_json::{Value, json};
use tidegate_testkit::{Answer, MockUpstream};

const RECALL: &str = "[context.recall]\ntool = true\n";
const TOOLS: &str =
    r#""tools" : [ {"type":"function","function":{"name":"shell","parameters":{"type":"object"}}} ],"#;
const TOOL: &str = "tidegate_recall";

/// A request of an agent with tools, after this many turns. The results of all but the last two are masked.
fn request(turns: usize, members: &str) -> String {
    body("gpt-4o", &conversation(turns), &[]).replacen("\"top_p\"", &format!("{members}{TOOLS}\"top_p\""), 1)
}

struct Scene {
    upstream: MockUpstream,
    tidegate: Tidegate,
}

impl Scene {
    async fn start(more: &str) -> Scene {
        let upstream = MockUpstream::start().await;
        let config = format!("[store]\nurl = \"memory:\"\n{EVERY_TURN}{RECALL}{more}");
        let tidegate = Tidegate::start(&config, &upstream).await;
        Scene { upstream, tidegate }
    }

    async fn ask(&self, sent: &str) -> Reply {
        exchange(self.tidegate.address, post(CHAT, &[], sent)).await
    }

    /// What arrives upstream of a request.
    async fn arrived(&self, sent: &str) -> String {
        self.upstream.then(Answer::chat("ok"));
        assert_eq!(self.ask(sent).await.status, 200);
        self.next().await
    }

    async fn next(&self) -> String {
        String::from_utf8(self.upstream.next_request().await.body).unwrap()
    }

    /// The reference in the placeholder of the first result.
    async fn reference(&self) -> String {
        let arrived: Value = serde_json::from_str(&self.arrived(&request(4, "")).await).unwrap();
        let placeholder = arrived["messages"][3]["content"].as_str().unwrap().to_owned();
        assert!(placeholder.starts_with(PLACEHOLDER), "{placeholder}");
        let at = placeholder.find("ref ").unwrap_or_else(|| panic!("no reference: {placeholder}")) + 4;
        placeholder[at..at + 8].to_owned()
    }
}

fn call(id: &str, name: &str, arguments: &Value) -> Value {
    json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments.to_string() } })
}

/// A whole answer with these calls.
fn calling(calls: &[Value]) -> Answer {
    let message = json!({ "role": "assistant", "content": null, "tool_calls": calls });
    Answer::json(
        200,
        json!({ "id": "chatcmpl-call", "object": "chat.completion", "created": 1, "model": "gpt-4o",
        "choices": [{ "index": 0, "message": message, "finish_reason": "tool_calls" }],
        "usage": { "prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010 } }),
    )
}

fn recalling(reference: &str) -> Answer {
    calling(&[call("r1", TOOL, &json!({ "ref": reference }))])
}

/// The last messages of a request.
fn last(request: &str, count: usize) -> Vec<Value> {
    let request: Value = serde_json::from_str(request).unwrap();
    let messages = request["messages"].as_array().unwrap();
    messages[messages.len() - count..].to_vec()
}

#[tokio::test]
async fn the_tool_is_the_last_one_and_nothing_else_changes() {
    let scene = Scene::start("").await;
    let sent = request(1, "");
    let arrived = scene.arrived(&sent).await;
    let end = sent.find("]\n,").or(sent.find("],\"top_p\"")).unwrap();
    let added = arrived.len() - sent.len();
    assert_eq!((&arrived[..end], &arrived[end + added..]), (&sent[..end], &sent[end..]));
    let tools: Value = serde_json::from_str::<Value>(&arrived).unwrap()["tools"].clone();
    assert_eq!((tools.as_array().unwrap().len(), &tools[1]["function"]["name"]), (2, &json!(TOOL)));
    let tool = arrived[end..end + added].to_owned();
    // It stays the same as the conversation goes on.
    assert!(scene.arrived(&request(4, "")).await.contains(&format!("{tool}]")));
}

#[tokio::test]
async fn without_a_way_to_ask_nothing_names_a_reference() {
    let scene = Scene::start("").await;
    for sent in [body("gpt-4o", &conversation(4), &[]), request(4, "\"n\":2,")] {
        let arrived = scene.arrived(&sent).await;
        assert!(
            arrived.contains(PLACEHOLDER) && !arrived.contains(TOOL) && !arrived.contains("ref "),
            "{arrived}"
        );
    }
    // The client has the tool of the MCP server among its own.
    let sent = request(4, "").replace("\"name\":\"shell\"", "\"name\":\"mcp__tidegate__recall\"");
    let arrived = scene.arrived(&sent).await;
    assert!(!arrived.contains(TOOL) && arrived.contains("ref "), "{arrived}");
}

/// The tools stand at the beginning of every prompt: if they changed for one request, the provider would have nothing of it in its cache.
#[tokio::test]
async fn what_a_client_wants_of_one_answer_changes_no_tools() {
    let scene = Scene::start("").await;
    let plain = scene.arrived(&request(4, "")).await;
    for members in [
        "\"tool_choice\":\"none\",",
        "\"tool_choice\":\"required\",",
        "\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":\"shell\"}},",
        "\"response_format\":{\"type\":\"json_object\"},",
    ] {
        let arrived = scene.arrived(&request(4, members)).await;
        assert_eq!(arrived.replacen(members, "", 1), plain, "{members}");
    }
}

fn original() -> String {
    output(0)
}
