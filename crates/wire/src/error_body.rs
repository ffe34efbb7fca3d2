use serde::Serialize;

/// The body of an error answer in OpenAI's shape, so that every SDK shows its message as it shows the provider's own.
///
/// `kind` becomes the field `type`. A missing `param` is written as `null`, because clients read the key unasked.
///
/// ```
/// let body = tidegate_wire::error_body("no such route", "invalid_request_error", None, "not_found");
/// assert_eq!(
///     body,
///     br#"{"error":{"message":"no such route","type":"invalid_request_error","param":null,"code":"not_found"}}"#
/// );
/// ```
#[must_use]
pub fn error_body(message: &str, kind: &str, param: Option<&str>, code: &str) -> Vec<u8> {
    let mut body = Vec::with_capacity(message.len() + kind.len() + code.len() + 64);
    write_error(&mut body, message, kind, param, code);
    body
}

/// The same error as one server-sent event, for a stream that breaks after it began.
///
/// It has no `event:` line: SDKs look for the error inside `data:` and ignore events with a name of their own.
#[must_use]
pub fn error_event(message: &str, kind: &str, param: Option<&str>, code: &str) -> Vec<u8> {
    let mut event = b"data: ".to_vec();
    write_error(&mut event, message, kind, param, code);
    event.extend_from_slice(b"\n\n");
    event
}

fn write_error(out: &mut Vec<u8>, message: &str, kind: &str, param: Option<&str>, code: &str) {
    let envelope = Envelope { error: Detail { message, kind, param, code } };
    // Strings into a Vec: neither the serializer nor the writer has a way to fail here.
    let written = serde_json::to_writer(out, &envelope);
    debug_assert!(written.is_ok());
}

#[derive(Serialize)]
struct Envelope<'a> {
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
    fn quotes_and_line_breaks_stay_inside_the_message() {
        let body = error_body("a \"b\"\n\u{0}", "t", Some("messages"), "c");
        let value: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(value["error"]["message"], "a \"b\"\n\u{0}");
        assert_eq!(value["error"]["param"], "messages");
    }

    #[test]
    fn an_event_is_one_line_and_a_blank_one() {
        let event = error_event("broken\nhere", "upstream_error", None, "upstream_timeout");
        let text = String::from_utf8(event).unwrap();
        assert!(text.starts_with("data: {\"error\":{"));
        assert!(text.ends_with("}}\n\n"));
        assert_eq!(text.matches('\n').count(), 2);
    }
}
