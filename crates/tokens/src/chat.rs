//! The tokens of a chat request besides its texts.
//!
//! The figures for messages, names and the reply are those that OpenAI documents for its chat format; the one for calls
//! is not documented, but known to hold. Other providers render messages differently, which the calibration corrects.

use tidegate_engine::Tokens;

use crate::{Encoding, count};

/// The delimiters of a message.
pub const PER_MESSAGE: Tokens = Tokens(3);
/// The delimiter between a role and a name.
pub const PER_NAME: Tokens = Tokens(1);
/// The start of the answer, once per request.
pub const REPLY_PRIMING: Tokens = Tokens(3);
/// The delimiters of a tool call.
pub const PER_TOOL_CALL: Tokens = Tokens(3);

/// The tokens of a message without its content and calls: delimiters, role and name.
#[must_use]
pub fn message_tokens(encoding: Encoding, role: &str, name: Option<&str>) -> Tokens {
    let name = name.map_or(Tokens::ZERO, |name| PER_NAME + count(encoding, name));
    PER_MESSAGE + count(encoding, role) + name
}

/// The tokens of a tool call, or of the older `function_call`. The model never sees the call's id.
#[must_use]
pub fn tool_call_tokens(encoding: Encoding, name: &str, arguments: &str) -> Tokens {
    PER_TOOL_CALL + count(encoding, name) + count(encoding, arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_costs_its_delimiters_role_and_name() {
        let o200k = Encoding::O200k;
        assert_eq!(message_tokens(o200k, "user", None), Tokens(4));
        assert_eq!(message_tokens(o200k, "assistant", Some("ada")), Tokens(5) + count(o200k, "ada"));
    }

    #[test]
    fn a_call_costs_its_delimiters_name_and_arguments() {
        let (name, arguments) = ("get_weather", r#"{"city":"Paris"}"#);
        let texts = count(Encoding::O200k, name) + count(Encoding::O200k, arguments);
        assert_eq!(tool_call_tokens(Encoding::O200k, name, arguments), texts + Tokens(3));
    }
}
