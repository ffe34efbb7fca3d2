//! Answers a call of the recall tool within the room that the request leaves.
//!
//! What is brought back must not push the request over the model's window, so an answer that is too long is cut where a longer one
//! would be, and says where it goes on.

use crate::lookup::{NO_MORE_RECALLS, NO_ROOM, unknown_reference};
use crate::{Figures, RecallRequest, Recalled, TurnInput};
use tidegate_engine::Tokens;
use tidegate_tokens::chat::message_tokens;
use tidegate_tokens::count;
use tidegate_wire::{Asked, ParsedRequest, RecallCall};

/// What came of a call of the recall tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecallResult {
    /// An original answers it.
    Found,
    /// No message has the reference.
    Unknown,
    /// The arguments cannot be understood.
    Invalid,
    /// The model has asked too often, or for too long.
    Exhausted,
    /// The request leaves no room for an answer.
    NoRoom,
}

impl RecallResult {
    /// The value of the metric's label.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            RecallResult::Found => "found",
            RecallResult::Unknown => "unknown",
            RecallResult::Invalid => "invalid",
            RecallResult::Exhausted => "exhausted",
            RecallResult::NoRoom => "no_room",
        }
    }
}

/// The answer to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecallReply {
    pub result: RecallResult,
    pub text: String,
    /// The tokens of the message with the text, by our own count.
    pub tokens: Tokens,
    /// What is kept of it for later requests.
    pub kept: Recalled,
}

/// An answer shorter than this says nothing.
const MIN_BYTES: u64 = 200;

/// How often an answer is cut until it fits. Tokens are not spread evenly over a text.
const CUTS: usize = 6;

impl TurnInput {
    /// How many tokens can be added to the forwarded request, by our own count; `None` if the model's window is unknown.
    #[must_use]
    pub fn recall_room(&self, figures: &Figures) -> Option<Tokens> {
        let left = figures.budget.input?.saturating_sub(figures.forwarded());
        Some(Tokens((left.0 as f64 / self.factor).floor() as u64))
    }

    /// What repeating the model's own message costs.
    #[must_use]
    pub fn asking_tokens(&self, asked: &Asked) -> Tokens {
        count(self.model.encoding, &String::from_utf8_lossy(&asked.message))
    }

    /// Answers a call, with at most this many tokens.
    #[must_use]
    pub fn answer_call(&self, chat: &ParsedRequest, call: &RecallCall, room: Option<Tokens>) -> RecallReply {
        let request = match RecallRequest::read(&call.arguments) {
            Ok(request) => request,
            Err(fault) => return self.without_original(call, RecallResult::Invalid, fault.to_string()),
        };
        let Some(original) = self.original(chat, request.reference) else {
            let text = unknown_reference(request.reference);
            return self.without_original(call, RecallResult::Unknown, text);
        };
        match self.answer_within(&request, &original, room) {
            Some((text, most, tokens)) => {
                RecallReply { result: RecallResult::Found, text, tokens, kept: Recalled::within(call, most) }
            }
            None => self.without_original(call, RecallResult::NoRoom, NO_ROOM.to_owned()),
        }
    }

    /// Answers a call beyond the limit.
    #[must_use]
    pub fn answer_exhausted(&self, call: &RecallCall) -> RecallReply {
        self.without_original(call, RecallResult::Exhausted, NO_MORE_RECALLS.to_owned())
    }

    fn without_original(&self, call: &RecallCall, result: RecallResult, text: String) -> RecallReply {
        let (tokens, kept) = (self.result_tokens(&text), Recalled::new(call, Some(text.clone())));
        RecallReply { result, text, tokens, kept }
    }

    /// The text, how much of the original it was limited to, and what it costs. `None` if there is no room for a useful part.
    fn answer_within(
        &self,
        request: &RecallRequest,
        original: &str,
        room: Option<Tokens>,
    ) -> Option<(String, Option<usize>, Tokens)> {
        let text = request.answer(original);
        let mut tokens = self.result_tokens(&text);
        let Some(room) = room.filter(|room| tokens > *room) else { return Some((text, None, tokens)) };
        let mut most = text.len() as u64;
        for _ in 0..CUTS {
            // A little less than what would fit if tokens were spread evenly.
            most = most * room.0.min(tokens.0) / tokens.0.max(1) * 9 / 10;
            if most < MIN_BYTES {
                return None;
            }
            // It is at most the length of a text in memory.
            let limit = most as usize;
            let text = request.answer_within(original, limit);
            tokens = self.result_tokens(&text);
            if tokens <= room {
                return Some((text, Some(limit), tokens));
            }
        }
        None
    }

    fn result_tokens(&self, text: &str) -> Tokens {
        message_tokens(self.model.encoding, "tool", None) + count(self.model.encoding, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model_table;
    use proptest::prelude::*;
    use serde_json::json;
    use std::sync::Arc;
    use tidegate_config::{Flags, Source, load};
    use tidegate_engine::Reference;
    use tidegate_wire::{Dialect, Reader};

    fn input(original: &str) -> (TurnInput, Arc<ParsedRequest>) {
        let settings = load(Source::none(), &Flags::default(), &|_| None).unwrap();
        let body = json!({ "model": "gpt-4o", "messages": [{ "role": "user", "content": original }] });
        let (reader, body) = (Reader::default(), body.to_string());
        let outline = reader.outline(Dialect::Chat, body.as_bytes()).unwrap();
        let model = model_table(&settings.models).lookup("gpt-4o");
        let input = TurnInput::new(body.into(), outline, settings.routes[0].context.clone(), model);
        let chat = input.with_options(&reader, |options| {
            reader.read(&input.body, &input.outline, options, input.look_up(&reader)).unwrap()
        });
        (input, Arc::new(chat))
    }

    fn call(arguments: &serde_json::Value) -> RecallCall {
        RecallCall { id: "r1".to_owned(), arguments: arguments.to_string() }
    }

    proptest! {
        /// However little room there is: an answer keeps within it, and the same answer can be given again.
        #[test]
        fn an_answer_keeps_within_the_room(
            lines in prop::collection::vec("[a-z0-9 {}\"µ]{0,80}", 1..200),
            room in 0u64..3_000,
            kind in 0usize..3,
        ) {
            let original = lines.join("\n");
            let (input, chat) = input(&original);
            let reference = Reference::of(chat.messages[0].digest).to_string();
            let arguments = match kind {
                0 => json!({ "ref": reference }),
                1 => json!({ "ref": reference, "lines": "2-" }),
                _ => json!({ "ref": reference, "query": lines[0] }),
            };
            let call = call(&arguments);
            let free = input.answer_call(&chat, &call, None);
            let reply = input.answer_call(&chat, &call, Some(Tokens(room)));
            prop_assert_eq!(input.result_tokens(&reply.text), reply.tokens);
            match reply.result {
                RecallResult::Found if free.tokens.0 <= room => prop_assert_eq!(&reply, &free),
                RecallResult::Found => prop_assert!(reply.tokens.0 <= room && reply.text != free.text),
                RecallResult::NoRoom => prop_assert!(free.tokens.0 > room),
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }

    #[test]
    fn a_call_without_an_original_says_why() {
        let (input, chat) = input("42");
        let result = |arguments: serde_json::Value| {
            input.answer_call(&chat, &call(&arguments), Some(Tokens(0))).result
        };
        assert_eq!(result(json!({ "ref": "00000000" })), RecallResult::Unknown);
        assert_eq!(result(json!({ "reference": 7 })), RecallResult::Invalid);
        assert_eq!(input.answer_exhausted(&call(&json!({}))).result, RecallResult::Exhausted);
    }
}
