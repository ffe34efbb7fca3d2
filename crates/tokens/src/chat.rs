//! What a chat request costs beyond its texts.
//!
//! The figures are those that OpenAI documents for its chat format (three tokens around each message, one more for a
//! name, three that open the answer) and that are known to hold for function calls. Other providers render
//! messages differently; the calibration covers what differs.

use tidegate_engine::Tokens;

use crate::{Encoding, count};

/// The marks around each message.
pub const PER_MESSAGE: Tokens = Tokens(3);
/// The mark between a role and a name.
pub const PER_NAME: Tokens = Tokens(1);
/// The opening of the answer, once per request.
pub const REPLY_PRIMING: Tokens = Tokens(3);
/// The marks around each call of a tool.
pub const PER_TOOL_CALL: Tokens = Tokens(3);

/// A message without its content and calls: the marks around it, its role and its name.
#[must_use]
pub fn message_tokens(encoding: Encoding, role: &str, name: Option<&str>) -> Tokens {
    let name = name.map_or(Tokens::ZERO, |name| PER_NAME + count(encoding, name));
    PER_MESSAGE + count(encoding, role) + name
}

/// One tool call of an assistant message (or the older `function_call`). The call's id is never shown to the model.
#[must_use]
pub fn tool_call_tokens(encoding: Encoding, name: &str, arguments: &str) -> Tokens {
    PER_TOOL_CALL + count(encoding, name) + count(encoding, arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_cost_their_marks_role_and_name() {
        let o200k = Encoding::O200k;
        assert_eq!(message_tokens(o200k, "user", None), Tokens(4));
        assert_eq!(message_tokens(o200k, "assistant", Some("ada")), Tokens(5) + count(o200k, "ada"));
    }

    #[test]
    fn calls_cost_their_name_and_arguments() {
        let (name, arguments) = ("get_weather", r#"{"city":"Paris"}"#);
        let texts = count(Encoding::O200k, name) + count(Encoding::O200k, arguments);
        assert_eq!(tool_call_tokens(Encoding::O200k, name, arguments), texts + Tokens(3));
    }
}
