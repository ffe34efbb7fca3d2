use serde::Serialize;

/// Anthropic's error shape. `code` is an addition that its SDKs keep and show: `type` has only a few values.
pub(crate) fn error_body(message: &str, kind: &str, code: &str) -> Vec<u8> {
    let error = Detail { kind: error_type(kind, code), message, code };
    // Strings: the serializer has no way to fail here.
    let written = serde_json::to_vec(&ErrorBody { kind: "error", error });
    debug_assert!(written.is_ok());
    written.unwrap_or_default()
}

/// The event is named: SDKs recognise an error by its name.
pub(crate) fn error_event(message: &str, kind: &str, code: &str) -> Vec<u8> {
    [b"event: error\ndata: ", &error_body(message, kind, code)[..], b"\n\n"].concat()
}

/// The nearest of the types that Anthropic documents.
fn error_type(kind: &str, code: &str) -> &'static str {
    match (code, kind) {
        ("request_too_large", _) => "request_too_large",
        ("credentials_required", _) => "authentication_error",
        ("host_not_allowed" | "origin_not_allowed", _) => "permission_error",
        ("not_found", _) => "not_found_error",
        ("overloaded", _) => "overloaded_error",
        ("upstream_timeout" | "request_timeout", _) => "timeout_error",
        (_, "invalid_request_error") => "invalid_request_error",
        _ => "api_error",
    }
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    error: Detail<'a>,
}

#[derive(Serialize)]
struct Detail<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    message: &'a str,
    code: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shape_is_anthropics() {
        assert_eq!(
            String::from_utf8(error_event("no \"x\"", "upstream_error", "upstream_timeout")).unwrap(),
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"timeout_error\",\"message\":\"no \\\"x\\\"\",\
             \"code\":\"upstream_timeout\"}}\n\n"
        );
        for (kind, code, expected) in [
            ("invalid_request_error", "context_budget_exceeded", "invalid_request_error"),
            ("invalid_request_error", "request_too_large", "request_too_large"),
            ("server_error", "store_unavailable", "api_error"),
        ] {
            assert_eq!(error_type(kind, code), expected, "{code}");
        }
    }
}
