use serde::Serialize;

/// The event is named like its type. SDKs raise an error for the member `error`; the other members are those of the documented event.
pub(crate) fn error_event(message: &str, kind: &str, param: Option<&str>, code: &str) -> Vec<u8> {
    let error = Detail { kind, code, message, param };
    let event = ErrorEvent { kind: "error", sequence_number: 0, code, message, param, error };
    // Strings: the serializer has no way to fail here.
    let written = serde_json::to_vec(&event);
    debug_assert!(written.is_ok());
    [b"event: error\ndata: ", &written.unwrap_or_default()[..], b"\n\n"].concat()
}

#[derive(Serialize)]
struct ErrorEvent<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    sequence_number: u32,
    code: &'a str,
    message: &'a str,
    param: Option<&'a str>,
    error: Detail<'a>,
}

#[derive(Serialize)]
struct Detail<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    code: &'a str,
    message: &'a str,
    param: Option<&'a str>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shape_is_the_apis() {
        let event =
            String::from_utf8(error_event("no \"x\"", "upstream_error", None, "upstream_timeout")).unwrap();
        let data = event.strip_prefix("event: error\ndata: ").unwrap().trim_end();
        let value: serde_json::Value = serde_json::from_str(data).unwrap();
        assert_eq!((&value["type"], &value["code"]), (&"error".into(), &"upstream_timeout".into()));
        assert_eq!((&value["message"], &value["error"]["message"]), (&"no \"x\"".into(), &"no \"x\"".into()));
        assert!(event.ends_with("}}\n\n"));
    }
}
