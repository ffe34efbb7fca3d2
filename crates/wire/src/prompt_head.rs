//! What the prompt begins with: tools, and the instructions before the first other message.
//!
//! After another head, a provider finds nothing of a conversation in its cache.

use crate::envelope::{attribution, without};
use crate::reader::ParsedMessage;
use crate::{ExtraKind, Outline};
use std::sync::Arc;
use tidegate_engine::CacheKey;
use twox_hash::XxHash3_128;

/// What the provider's cache is looked up by, the same in every process.
pub(crate) fn cache_key(body: &[u8], outline: &Outline, parsed: &[Arc<ParsedMessage>]) -> CacheKey {
    // No model is the one without a name.
    let model = hash(outline.model.as_deref().unwrap_or_default().as_bytes()).max(1);
    let instructions = parsed.iter().take_while(|message| message.facts.role.is_instruction());
    let head =
        instructions.map(|message| hash(&message.facts.canonical)).fold(extras_head(body, outline), add);
    CacheKey { model, head }
}

/// A hash of what stands before all messages in the prompt, as far as the model sees it. Tools come first in every provider's prompt, then
/// the instructions.
#[must_use]
pub fn extras_head(body: &[u8], outline: &Outline) -> u64 {
    let extras = outline.extras.iter().map(|extra| {
        let raw = extra.span.of(body);
        match attribution(raw).filter(|_| extra.kind == ExtraKind::Instructions) {
            Some(block) => hash(&without(raw, block)),
            None => hash(raw),
        }
    });
    extras.fold(0, add)
}

fn hash(bytes: &[u8]) -> u64 {
    XxHash3_128::oneshot(bytes) as u64
}

fn add(head: u64, part: u64) -> u64 {
    (head.rotate_left(29) ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
