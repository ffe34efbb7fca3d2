//! Converts summaries between their stored and their decoded form.

use tidegate_context::{ConversationState, FoldState, SavedFold};
use tidegate_engine::Timestamp;
use tidegate_store::{Recalled, StoredFold};

/// Decodes a stored summary; `None` if it cannot be read, and then the conversation goes on without it.
pub(crate) fn decode(stored: &StoredFold) -> Option<SavedFold> {
    Some(SavedFold {
        covers: stored.covers,
        covered: usize::try_from(stored.covered).unwrap_or(usize::MAX),
        state: FoldState::from_bytes(&stored.state)?,
    })
}

pub(crate) fn encode(fold: &SavedFold, at: Timestamp) -> StoredFold {
    StoredFold {
        covers: fold.covers,
        covered: u32::try_from(fold.covered).unwrap_or(u32::MAX),
        at,
        state: fold.state.to_bytes(),
    }
}

/// What is remembered of a conversation, as a turn needs it. Decoding summaries takes time, so that is done only if they are
/// needed.
pub(crate) fn conversation_state(recalled: &Recalled, needs_folds: bool) -> ConversationState {
    let folds = recalled.folds.iter().filter(|_| needs_folds).filter_map(decode).collect();
    ConversationState::new(recalled.memory.clone(), folds, recalled.pinned.clone())
}
