//! What is pinned to a conversation, and the message that it becomes in a request.

use crate::look::{Look, shortened};
use crate::summary_message::{message, tokens};
use bytes::Bytes;
use tidegate_engine::Tokens;

/// The pinned text as it can stand in a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedMessage {
    /// All of it, which summaries are rid of.
    pub text: String,
    /// The message, a JSON object, and what it costs.
    pub json: Bytes,
    pub tokens: Tokens,
    /// How long it is in the unit of the limits.
    pub size: Tokens,
}

const HEADING: &str = "## Your Memory\n";

impl PinnedMessage {
    pub(crate) fn of(text: &str, look: &Look<'_>) -> PinnedMessage {
        let most = look.blocks.memory_max.unwrap_or(Tokens(u64::MAX));
        PinnedMessage::within(text, most, look)
    }

    /// With so much of the text. Nothing is left of the message where nothing is left of the text.
    pub(crate) fn within(text: &str, most: Tokens, look: &Look<'_>) -> PinnedMessage {
        let shown = shortened(text.trim(), most, |text| look.size(text));
        if shown.is_empty() {
            let (json, tokens, size) = (Bytes::new(), Tokens::ZERO, Tokens::ZERO);
            return PinnedMessage { text: text.to_owned(), json, tokens, size };
        }
        let whole = format!("{HEADING}{shown}");
        PinnedMessage {
            text: text.to_owned(),
            json: message(look.role, &whole),
            tokens: tokens(&whole, look.role, look.encoding),
            size: look.size(shown),
        }
    }
}
