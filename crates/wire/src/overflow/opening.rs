//! Reads the opening of a stream of events: some servers have answered `200` when they find a request too long.

use super::{Overflow, read_error};
use serde_json::Value;

/// How a stream begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opening {
    /// There is nothing yet but signs of life.
    Undecided,
    /// With an answer, or with another error.
    Answer,
    Overflow(Overflow),
}

/// The types of events that come before any content.
const PRELUDE: [&str; 5] =
    ["response.created", "response.queued", "response.in_progress", "message_start", "ping"];

/// Reads what has arrived of a stream of server-sent events so far.
///
/// ```
/// use tidegate_wire::{Opening, read_opening};
/// let created = "data: {\"type\":\"response.created\",\"response\":{}}\n\n";
/// assert_eq!(read_opening(created.as_bytes()), Opening::Undecided);
/// let error = r#"{"type":"error","code":"context_length_exceeded","message":"Too long."}"#;
/// let stream = format!("{created}event: error\ndata: {error}\n\n");
/// assert!(matches!(read_opening(stream.as_bytes()), Opening::Overflow(_)));
/// ```
#[must_use]
pub fn read_opening(stream: &[u8]) -> Opening {
    // A line without an end is not complete.
    let complete = stream.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let lines = stream[..complete].split(|byte| *byte == b'\n');
    for data in lines.filter_map(|line| line.strip_prefix(b"data:")) {
        let Ok(event) = serde_json::from_slice::<Value>(data) else { return Opening::Answer };
        let kind = event.get("type").and_then(Value::as_str);
        if kind.is_some_and(|kind| PRELUDE.contains(&kind)) {
            continue;
        }
        let is_named = kind == Some("error") || event.get("object").is_some_and(|object| object == "error");
        let is_error = is_named || event.get("error").is_some_and(|error| !error.is_null());
        let error = match (kind, event.get("response")) {
            (Some("response.failed"), Some(response)) => read_error(response),
            _ if is_error => read_error(&event),
            _ => None,
        };
        return error.map_or(Opening::Answer, Opening::Overflow);
    }
    Opening::Undecided
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: &str =
        "This model's maximum context length is 4096 tokens. However, your messages resulted in 5000 tokens.";

    fn event(json: &str) -> String {
        format!("event: x\r\ndata: {}\r\n\r\n", json.replace("MESSAGE", MESSAGE))
    }

    #[test]
    fn an_overflow_is_read_in_every_api() {
        let created = event(r#"{"type":"response.created","response":{"id":"r","error":null}}"#);
        for stream in [
            event(r#"{"error":{"message":"MESSAGE","code":"context_length_exceeded"}}"#),
            event(r#"{"object":"error","message":"MESSAGE","type":"BadRequestError","code":400}"#),
            event(r#"{"type":"error","error":{"type":"invalid_request_error","message":"MESSAGE"}}"#),
            format!(
                ": a comment\n\n{created}{}",
                event(r#"{"type":"error","code":"x","message":"MESSAGE","param":null}"#)
            ),
            created.clone()
                + &event(
                    r#"{"type":"response.failed","response":{"error":{"code":"context_length_exceeded","message":"MESSAGE"}}}"#,
                ),
        ] {
            let Opening::Overflow(overflow) = read_opening(stream.as_bytes()) else { panic!("{stream}") };
            assert_eq!(overflow.limit, Some(4_096), "{stream}");
            // Until the line is complete, there may be anything.
            let data = stream.rfind("data:").unwrap();
            for end in data..stream.rfind("\r\n\r\n").unwrap() {
                assert_eq!(read_opening(&stream.as_bytes()[..end]), Opening::Undecided, "{}", &stream[..end]);
            }
        }
    }

    #[test]
    fn an_answer_is_not_held_back() {
        for json in [
            r#"{"choices":[{"delta":{"role":"assistant","content":""}}]}"#,
            r#"{"choices":[{"delta":{"content":"prompt is too long: 5000 tokens > 4096 maximum"}}],"error":null}"#,
            r#"{"type":"response.output_item.added","item":{}}"#,
            r#"{"type":"content_block_start","index":0}"#,
            r#"{"error":{"message":"The server is overloaded.","code":503}}"#,
            r#"{"type":"response.failed","response":{"error":{"code":"server_error","message":"Sorry."}}}"#,
            "[DONE]",
        ] {
            assert_eq!(read_opening(event(json).as_bytes()), Opening::Answer, "{json}");
        }
        for nothing in
            ["", "\n\n", ": OPENROUTER PROCESSING\n\n", "event: ping\ndata: {\"type\": \"ping\"}\n\n"]
        {
            assert_eq!(read_opening(nothing.as_bytes()), Opening::Undecided, "{nothing}");
        }
    }
}
