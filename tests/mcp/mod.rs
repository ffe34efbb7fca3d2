//! The MCP endpoint: agents recall what was shortened, and search their conversation.

mod access;

use crate::support::agent::{EVERY_TURN, body, conversation, output, send};
use crate::support::client::{exchange, post};
use crate::support::reply::Reply;
use crate::support::tidegate::Tidegate;
use serde_json::{Value, json};
use std::net::SocketAddr;
use tidegate_testkit::{Answer, MockUpstream};

const MCP: &str = "/tidegate/mcp";
const ADA: (&str, &str) = ("authorization", "Bearer ada");
const NAMED: (&str, &str) = ("x-conversation-id", "build-7");

async fn rpc(address: SocketAddr, headers: &[(&str, &str)], method: &str, params: Value) -> Reply {
    let message = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
    exchange(address, post(MCP, headers, message.to_string())).await
}

/// The text that a tool returns, and whether it is an error.
async fn call(address: SocketAddr, headers: &[(&str, &str)], tool: &str, arguments: Value) -> (String, bool) {
    let params = json!({ "name": tool, "arguments": arguments });
    let reply = rpc(address, headers, "tools/call", params).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let result = reply.json()["result"].clone();
    assert_eq!(result["content"][0]["type"], "text", "{result}");
    (result["content"][0]["text"].as_str().unwrap().to_owned(), result["isError"] == true)
}

/// The reference of the first message that a search finds.
async fn reference(address: SocketAddr, headers: &[(&str, &str)], query: &str) -> String {
    let (found, is_error) = call(address, headers, "search_history", json!({ "query": query })).await;
    assert!(found.starts_with("[ref ") && !is_error, "{found}");
    found[5..13].to_owned()
}

/// An agent's run of four turns, the oldest two results masked.
async fn scene(config: &str) -> (MockUpstream, Tidegate) {
    let upstream = MockUpstream::start().await;
    let tidegate =
        Tidegate::start(&format!("[store]\nurl = \"memory:\"\n{config}{EVERY_TURN}"), &upstream).await;
    for turns in 1..=4 {
        let sent = body("gpt-4o", &conversation(turns), &[]);
        send(&tidegate, &upstream, &[ADA, NAMED], &sent).await;
    }
    (upstream, tidegate)
}

#[tokio::test]
async fn both_tools_are_listed_and_answer() {
    let (_upstream, tidegate) = scene("").await;
    let (address, who) = (tidegate.address, [ADA, NAMED]);
    let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let reply = rpc(address, &who, "initialize", hello).await.json();
    assert_eq!((&reply["id"], &reply["result"]["protocolVersion"]), (&json!(7), &json!("2025-06-18")));
    assert!(
        reply["result"]["capabilities"]["tools"].is_object()
            && reply["result"]["serverInfo"]["name"] == "tidegate"
    );
    let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let accepted = exchange(address, post(MCP, &who, ready)).await;
    assert_eq!((accepted.status, accepted.text().as_str()), (202, ""));

    let tools = rpc(address, &who, "tools/list", json!({})).await.json()["result"]["tools"].clone();
    let names: Vec<&str> =
        tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["recall", "search_history"]);
    assert!(tools[0]["inputSchema"]["properties"]["ref"].is_object(), "{tools}");

    let reference = reference(address, &who, "result 1: what did it say?").await;
    let (whole, is_error) = call(address, &who, "recall", json!({ "ref": reference })).await;
    assert_eq!(
        (whole.trim_end(), is_error),
        (output(1).trim_end(), false),
        "the original of a masked result"
    );
    let (lines, _) =
        call(address, &who, "recall", json!({ "ref": format!("ref {reference}"), "lines": "2-3" })).await;
    assert_eq!(lines, "a line of the output\na line of the output");
    let (found, _) = call(address, &who, "recall", json!({ "ref": reference, "query": "result 1" })).await;
    assert!(found.contains("result 1: "), "{found}");
}

#[tokio::test]
async fn what_cannot_be_answered_is_explained_to_the_model() {
    let (_upstream, tidegate) = scene("").await;
    let (address, who) = (tidegate.address, [ADA, NAMED]);
    let none = call(address, &who, "recall", json!({ "ref": "00000000" })).await;
    assert!(none.1 && none.0.contains("00000000"), "{none:?}");
    let nameless = call(address, &[ADA], "recall", json!({ "ref": "00000000" })).await;
    assert!(nameless.1 && nameless.0.contains("x-conversation-id"), "{nameless:?}");
    for (tool, arguments) in
        [("recall", json!({})), ("recall", json!(null)), ("search_history", json!({ "query": " " }))]
    {
        let (text, is_error) = call(address, &who, tool, arguments).await;
        assert!(is_error, "{text}");
    }
    let (nothing, is_error) = call(address, &who, "search_history", json!({ "query": "zebra" })).await;
    assert!(nothing.contains("zebra") && !is_error, "{nothing}");
    for (method, params, code) in
        [("tools/call", json!({ "name": "rm" }), -32602), ("resources/list", json!({}), -32601)]
    {
        let reply = rpc(address, &who, method, params).await;
        assert_eq!((reply.status, &reply.json()["error"]["code"]), (200, &json!(code)), "{method}");
    }
}

#[tokio::test]
async fn a_client_that_needs_no_handshake_is_served() {
    let (_upstream, tidegate) = scene("").await;
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} });
    let ask = async |method: &str, version: &str| {
        let headers = [ADA, NAMED, ("mcp-protocol-version", version), ("mcp-method", method)];
        rpc(tidegate.address, &headers, method, json!({ "_meta": meta })).await
    };
    let known = ask("server/discover", "2026-07-28").await.json()["result"].clone();
    assert!(known["supportedVersions"].as_array().unwrap().contains(&json!("2026-07-28")), "{known}");
    assert_eq!(known["resultType"], "complete");
    let tools = ask("tools/list", "2026-07-28").await.json()["result"].clone();
    assert_eq!((tools["tools"].as_array().unwrap().len(), &tools["resultType"]), (2, &json!("complete")));
    let contradicting = ask("tools/list", "2025-06-18").await;
    assert_eq!((contradicting.status, &contradicting.json()["error"]["code"]), (400, &json!(-32020)));
}

/// Chat completions and messages are recorded alike.
#[tokio::test]
async fn results_of_anthropics_messages_are_recalled_too() {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("[store]\nurl = \"memory:\"\n", &upstream).await;
    let answer = json!({ "id": "m", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "stop_reason": "end_turn",
        "content": [{ "type": "text", "text": "Done." }], "usage": { "input_tokens": 9, "output_tokens": 1 } });
    upstream.answer(Answer::json(200, answer.to_string()));
    let sent = json!({ "model": "claude-sonnet-4-5", "max_tokens": 9, "messages": [
        { "role": "user", "content": "Look." },
        { "role": "assistant", "content": [{ "type": "tool_use", "id": "t1", "name": "ls", "input": {} }] },
        { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "t1", "content": "swordfish.txt\nplan.txt" }] },
    ] });
    let key = ("x-api-key", "k");
    let reply = exchange(tidegate.address, post("/v1/messages", &[key, NAMED], sent.to_string())).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let reference = reference(tidegate.address, &[key, NAMED], "swordfish").await;
    let (whole, _) = call(tidegate.address, &[key, NAMED], "recall", json!({ "ref": reference })).await;
    assert_eq!(whole, "swordfish.txt\nplan.txt");
}
