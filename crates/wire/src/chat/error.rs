use serde::Serialize;

/// OpenAI's error shape, which every SDK knows how to show. A missing `param` is written as `null`, because clients read the key
/// without checking that it exists.
pub(crate) fn error_body(message: &str, kind: &str, param: Option<&str>, code: &str) -> Vec<u8> {
    let mut body = Vec::with_capacity(message.len() + kind.len() + code.len() + 64);
    write_error(&mut body, message, kind, param, code);
    body
}

/// The event has no `event:` line: SDKs look for the error in `data:` and ignore events with an unknown name.
pub(crate) fn error_event(message: &str, kind: &str, param: Option<&str>, code: &str) -> Vec<u8> {
    let mut event = b"data: ".to_vec();
    write_error(&mut event, message, kind, param, code);
    event.extend_from_slice(b"\n\n");
    event
}

fn write_error(out: &mut Vec<u8>, message: &str, kind: &str, param: Option<&str>, code: &str) {
    let body = ErrorBody { error: Detail { message, kind, param, code } };
    // Strings into a `Vec`: neither the serializer nor the writer can fail here.
    let written = serde_json::to_writer(out, &body);
    debug_assert!(written.is_ok());
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    error: Detail<'a>,
}

#[derive(Serialize)]
struct Detail<'a> {
    message: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    param: Option<&'a str>,
    code: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_is_escaped() {
        let body = error_body("a \"b\"\n\u{0}", "t", Some("messages"), "c");
        let value: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(value["error"]["message"], "a \"b\"\n\u{0}");
        assert_eq!(value["error"]["param"], "messages");
    }

    #[test]
    fn an_event_is_one_line_and_a_blank_line() {
        let event = error_event("broken\nhere", "upstream_error", None, "upstream_timeout");
        let text = String::from_utf8(event).unwrap();
        assert!(text.starts_with("data: {\"error\":{"));
        assert!(text.ends_with("}}\n\n"));
        assert_eq!(text.matches('\n').count(), 2);
    }
}
