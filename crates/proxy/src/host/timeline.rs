//! Finds the messages of a request that the raw timeline does not have yet.

use crate::host::held_turn::Sent;
use crate::host::shared::Gateway;
use bytes::Bytes;
use tidegate_engine::Digest;
use tidegate_store::{ConversationKey, Conversations, Entries, MessageId, RawMessage, Recalled, Standing};
use tidegate_wire::{Outline, ParsedRequest};

/// The messages that have to be recorded with this request: those after the last recorded one, and new instructions.
pub(crate) fn unrecorded(
    conversations: &Conversations,
    key: ConversationKey,
    recalled: &Recalled,
    (body, outline): (&Bytes, &Outline),
    chat: &ParsedRequest,
) -> Entries {
    let mut entries = Entries { generation: recalled.generation, ..Entries::default() };
    if !conversations.records_messages() {
        return entries;
    }
    let recorded = recalled.recorded(chat.messages.iter().map(|message| message.digest));
    let at = Gateway::now().0;
    let mut before = Digest::default();
    for (position, (message, parsed)) in chat.messages.iter().zip(&chat.parsed).enumerate() {
        let raw = |id| RawMessage {
            id,
            parent: MessageId(before.0),
            position: u32::try_from(position).unwrap_or(u32::MAX),
            at,
            json: outline.dialect.recorded(body.slice(outline.messages[position].range())),
            standing: Standing::Kept,
        };
        if message.role.is_instruction() {
            let id = instruction_id(&parsed.facts.canonical);
            // A conversation unknown to the store begins anew, whatever this process has recorded before.
            if recorded == 0 || !conversations.has_instruction(key, id) {
                entries.instructions.push(raw(id));
            }
        } else if position >= recorded {
            entries.messages.push(raw(MessageId(message.digest.0)));
        }
        before = message.digest;
    }
    entries
}

/// What a request adds to a history that is kept here and has `restored` messages already.
pub(crate) fn new_in_turn(
    (body, outline): (&Bytes, &Outline),
    chat: &ParsedRequest,
    restored: usize,
) -> Sent {
    let mut sent = Sent::default();
    let at = Gateway::now().0;
    let mut before = Digest::default();
    let mut seen = 0;
    for (position, (message, parsed)) in chat.messages.iter().zip(&chat.parsed).enumerate() {
        let raw = |id| RawMessage {
            id,
            parent: MessageId(before.0),
            position: u32::try_from(position).unwrap_or(u32::MAX),
            at,
            json: outline.dialect.recorded(body.slice(outline.messages[position].range())),
            standing: Standing::Kept,
        };
        if message.role.is_instruction() {
            // One in the middle of what was restored is in the log, in its place.
            if seen == 0 || seen >= restored {
                sent.instructions.push(raw(instruction_id(&parsed.facts.canonical)));
            }
        } else {
            seen += 1;
            if seen > restored {
                sent.messages.push((parsed.facts.canonical, raw(MessageId(message.digest.0))));
            }
        }
        before = message.digest;
    }
    sent
}

/// Instructions have no digest of their own, so that a timestamp in one does not start another conversation. They are recorded
/// under a hash of their content.
fn instruction_id(canonical: &[u8; 32]) -> MessageId {
    let mut hasher = blake3::Hasher::new_derive_key("tidegate instruction 1");
    hasher.update(canonical);
    MessageId(*hasher.finalize().as_bytes())
}
