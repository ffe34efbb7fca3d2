//! The rules of the Messages API for a request, from its public reference.

use serde_json::Value;

/// Asserts that a request follows the API's rules: it begins with the user, each call is answered in the next turn before any text, no
/// result is without its call, no text is empty, thinking stands before the call that it led to, instructions among the messages stand
/// behind the user and before the model or at the end, what the provider calls itself has its result, and there are at most four cache
/// breakpoints. Messages of one role in a row are one turn, as the API reads them.
#[track_caller]
pub fn assert_valid(request: &Value) {
    let messages = request["messages"].as_array().unwrap();
    assert_eq!(messages[0]["role"], "user", "the first message is not the user's");
    let mut calls: Vec<&str> = Vec::new();
    let turns: Vec<&[Value]> = messages.chunk_by(|one, next| one["role"] == next["role"]).collect();
    assert_instructions(&turns);
    assert_server_calls(messages);
    for (index, turn) in turns.into_iter().enumerate() {
        let blocks: Vec<&Value> =
            turn.iter().flat_map(|message| message["content"].as_array().into_iter().flatten()).collect();
        for message in turn {
            let is_empty = message["content"].as_array().map_or(message["content"] == "", Vec::is_empty);
            assert!(!is_empty, "an empty message in turn {index}");
        }
        let of = |kind: &str, member: &str| -> Vec<&str> {
            let blocks = blocks.iter().filter(|block| block["type"] == kind);
            blocks.map(|block| block[member].as_str().unwrap()).collect()
        };
        let mut results = of("tool_result", "tool_use_id");
        let first = blocks.iter().take_while(|block| block["type"] == "tool_result").count();
        assert_eq!(first, results.len(), "a block stands before a result in turn {index}");
        assert!(
            results.is_empty() || turn[0]["content"].is_array(),
            "a text stands before a result in turn {index}"
        );
        results.sort_unstable();
        calls.sort_unstable();
        assert_eq!(results, calls, "calls and results differ in turn {index}");
        assert!(of("text", "text").iter().all(|text| !text.is_empty()), "an empty text in turn {index}");
        let position = |kind: &str| blocks.iter().position(|block| block["type"] == kind);
        if let (Some(thinking), Some(call)) = (position("thinking"), position("tool_use")) {
            assert!(thinking < call, "thinking stands behind a call in turn {index}");
        }
        calls = of("tool_use", "id");
    }
    assert!(breakpoints(request) <= 4, "too many breakpoints");
}

fn assert_instructions(turns: &[&[Value]]) {
    for (index, turn) in turns.iter().enumerate().filter(|(_, turn)| turn[0]["role"] == "system") {
        let before = index.checked_sub(1).and_then(|before| turns[before].last());
        let before = before.unwrap_or_else(|| panic!("instructions stand first: {turn:?}"));
        let last = before["content"].as_array().and_then(|blocks| blocks.last());
        let is_server_result = last.is_some_and(is_server_result);
        assert!(
            before["role"] == "user" || is_server_result,
            "instructions stand behind an answer: {turn:?}"
        );
        let after = turns.get(index + 1).map(|turn| &turn[0]["role"]);
        assert!(
            after.is_none_or(|after| after == "assistant"),
            "instructions stand before the user: {turn:?}"
        );
    }
}

/// A call of the provider's may only be open in the last answer: where it has paused, the result stands in the answer after.
fn assert_server_calls(messages: &[Value]) {
    let (mut open, mut known): (Vec<&Value>, Vec<&Value>) = (Vec::new(), Vec::new());
    let last = messages.iter().rposition(|message| message["role"] == "assistant");
    for (index, message) in messages.iter().enumerate() {
        for block in message["content"].as_array().into_iter().flatten() {
            match block["type"].as_str() {
                Some("server_tool_use" | "mcp_tool_use") if Some(index) != last => open.push(&block["id"]),
                _ => {}
            }
            match block["type"].as_str() {
                Some("server_tool_use" | "mcp_tool_use") => known.push(&block["id"]),
                _ if is_server_result(block) => {
                    let id = &block["tool_use_id"];
                    assert!(known.contains(&id), "a result without its call: {block}");
                    open.retain(|call| *call != id);
                }
                _ => {}
            }
            if let Some(caller) = block.pointer("/caller/tool_id") {
                assert!(known.contains(&caller), "a call without the one that it comes from: {block}");
            }
        }
    }
    assert!(open.is_empty(), "calls without their results: {open:?}");
}

fn is_server_result(block: &Value) -> bool {
    block["type"].as_str().is_some_and(|kind| kind.ends_with("_tool_result"))
}

/// The number of cache breakpoints in a request.
#[must_use]
pub fn breakpoints(value: &Value) -> usize {
    match value {
        Value::Object(members) => {
            let own = usize::from(members.get("cache_control").is_some_and(|marker| !marker.is_null()));
            own + members.values().map(breakpoints).sum::<usize>()
        }
        Value::Array(elements) => elements.iter().map(breakpoints).sum(),
        _ => 0,
    }
}
