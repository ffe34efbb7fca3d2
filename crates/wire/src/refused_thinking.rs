//! Recognises an upstream's error that says that it does not accept the model's earlier thinking in front of which something has changed.

use serde_json::Value;

/// Longer bodies are other errors.
const MAX_BODY: usize = 64 * 1024;

/// How far into a message its wording is looked for: errors about invalid requests quote what the client sent.
const MAX_OFFSET: usize = 320;

/// How often gateways wrap the error of the provider behind them in one of their own.
const MAX_WRAPS: usize = 3;

/// Whether an error response refuses thinking of the request's history: because it is bound to another conversation, because its signature
/// does not hold, or because it was modified.
#[must_use]
pub fn refuses_thinking(status: u16, body: &[u8]) -> bool {
    status == 400 && refuses(body, MAX_WRAPS)
}

fn refuses(body: &[u8], wraps: usize) -> bool {
    if body.len() > MAX_BODY {
        return false;
    }
    let Ok(document) = serde_json::from_slice::<Value>(body) else { return false };
    let error = document.get("error").filter(|error| !error.is_null()).unwrap_or(&document);
    let texts = [error.get("message"), Some(error), error.pointer("/metadata/raw"), document.get("message")];
    texts.into_iter().flatten().filter_map(Value::as_str).any(|text| {
        is_wording(text) || (wraps > 0 && text.starts_with('{') && refuses(text.as_bytes(), wraps - 1))
    })
}

fn is_wording(text: &str) -> bool {
    let start: String = text.chars().take(MAX_OFFSET).collect::<String>().to_lowercase().replace('`', "");
    let has = |phrase: &str| start.contains(phrase);
    has("invalid signature in thinking block")
        || has("invalid data in redacted_thinking block")
        || (has("thinking") && has("block is bound to a different conversation"))
        || (has("thinking") && has("blocks in the latest assistant message cannot be modified"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const BOUND: &str = "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. \
                         Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\".";

    fn of(message: &str) -> String {
        json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}}).to_string()
    }

    #[test]
    fn refused_thinking_is_recognised_as_gateways_pass_it_on() {
        let raw = json!({"error": {"message": "Provider returned error", "metadata": {"raw": of(BOUND)}}});
        let nested = json!({"error": {"code": 400, "message": of(BOUND), "status": "INVALID_ARGUMENT"}});
        for body in [
            of(BOUND),
            of("messages.1.content.0: Invalid `signature` in `thinking` block"),
            of("messages.5.content.2: Invalid `data` in `redacted_thinking` block"),
            of(
                "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.",
            ),
            json!({"message": BOUND}).to_string(),
            raw.to_string(),
            nested.to_string(),
        ] {
            assert!(refuses_thinking(400, body.as_bytes()), "{body}");
        }
    }

    #[test]
    fn other_errors_are_not_about_thinking() {
        let quoted = format!("{}{BOUND}", "the text of a client ".repeat(30));
        for body in [
            of("prompt is too long: 9 tokens > 8 maximum"),
            of("thinking: budget_tokens is too small"),
            of("external id already bound to a different conversation"),
            of(&quoted),
            json!({"error": {"message": {"text": BOUND}}}).to_string(),
            "<html>".to_owned(),
        ] {
            assert!(!refuses_thinking(400, body.as_bytes()), "{body}");
        }
        assert!(!refuses_thinking(500, of(BOUND).as_bytes()));
    }
}
