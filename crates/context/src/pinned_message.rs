//! The notes pinned to a conversation, as a message of the request.

use crate::renderer::{Renderer, shortened, tokens};
use bytes::Bytes;
use tidegate_engine::Tokens;

/// Pinned notes, rendered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedMessage {
    /// The whole text. Summary lines that repeat it are removed.
    pub text: String,
    /// The message, a JSON object; empty if nothing of the text fits.
    pub json: Bytes,
    pub tokens: Tokens,
    /// The size in the unit of the block limits.
    pub size: Tokens,
}

const HEADING: &str = "## Your Memory\n";

impl PinnedMessage {
    pub(crate) fn new(text: &str, renderer: &Renderer<'_>) -> PinnedMessage {
        let max = renderer.blocks.memory_max.unwrap_or(Tokens(u64::MAX));
        PinnedMessage::within(text, max, renderer)
    }

    /// As much of the text as fits into `max`.
    pub(crate) fn within(text: &str, max: Tokens, renderer: &Renderer<'_>) -> PinnedMessage {
        let shown = shortened(text.trim(), max, |text| renderer.size(text));
        if shown.is_empty() {
            let (json, tokens, size) = (Bytes::new(), Tokens::ZERO, Tokens::ZERO);
            return PinnedMessage { text: text.to_owned(), json, tokens, size };
        }
        let whole = format!("{HEADING}{shown}");
        PinnedMessage {
            text: text.to_owned(),
            json: renderer.message(&whole),
            tokens: tokens(&whole, renderer.role, renderer.encoding),
            size: renderer.size(shown),
        }
    }
}
