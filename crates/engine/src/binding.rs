//! Which edits would invalidate reasoning that stays.
//!
//! Some providers bind the model's reasoning to everything that stood before it when it was made, and refuse a request in which that has
//! changed. Edits that were there by then are part of it and are repeated; a new one may only touch what stands behind the last such
//! message, whose end is [`Policy::bound`](crate::Policy::bound).

use crate::{Message, Role};

/// Whether removing these messages changes what stands before reasoning that stays. Only the model's messages hold any.
pub(crate) fn invalidates(messages: &[Message], removed: &[usize], bound: usize) -> bool {
    let Some(&first) = removed.first() else { return false };
    let bound = messages.get(first..bound).unwrap_or_default();
    let stays = |index: usize| removed.binary_search(&index).is_err();
    bound.iter().zip(first..).any(|(message, index)| message.role == Role::Assistant && stays(index))
}
