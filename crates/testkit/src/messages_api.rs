//! The rules of the Messages API for a request, from its public reference.

use serde_json::Value;

/// Asserts that a request follows the API's rules: it begins with the user, each call is answered in the next turn before any text, no
/// result is without its call, no text is empty, thinking stands before the call that it led to, and there are at most four cache
/// breakpoints. Messages of one role in a row are one turn, as the API reads them.
#[track_caller]
pub fn assert_valid(request: &Value) {
    let messages = request["messages"].as_array().unwrap();
    assert_eq!(messages[0]["role"], "user", "the first message is not the user's");
    let mut calls: Vec<&str> = Vec::new();
    for (index, turn) in messages.chunk_by(|one, next| one["role"] == next["role"]).enumerate() {
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
