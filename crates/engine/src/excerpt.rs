//! Excerpts: passages of messages that have left the request, put into a later message that they bear on.
//!
//! The engine never sees a text, so it does not choose passages. It says which message may take new ones, and keeps those that were
//! chosen: an excerpt is repeated with its message until that message leaves the request, too.
//!
//! A new excerpt changes its message. So it is added when the provider reads that message for the first time, or when what stands
//! before it changes anyway because other messages have left.

use crate::turns::{dialogue, last_user_turn};
use crate::{CacheKey, Memory, Message, Plan, Verdict};
use std::sync::Arc;

/// The passages that were put into one message.
///
/// Messages are counted without instructions, so that places survive a changed system prompt. A waypoint holds the excerpts of its
/// request, and is only found by a request with the same messages, so a place says which message is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    pub message: u32,
    /// In the order of the conversation.
    pub passages: Arc<[Passage]>,
}

/// A part of a message's text, from one byte up to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Passage {
    pub message: u32,
    pub start: u32,
    pub end: u32,
}

/// The maximum number of excerpts in a request. Each is repeated with every request and stored with every waypoint.
pub const MAX_EXCERPTS: usize = 64;

impl Memory {
    /// The excerpts of the request that this one continues, in messages that both have. Each with the index of its message.
    #[must_use]
    pub fn excerpts(&self, messages: &[Message], cache: CacheKey) -> Vec<(usize, Excerpt)> {
        let Some(recalled) = self.recall(messages, cache) else { return Vec::new() };
        if recalled.waypoint.excerpts.is_empty() {
            return Vec::new();
        }
        let places = places(&messages[..=recalled.last]);
        let here = |excerpt: &Excerpt| Some((*places.get(index(excerpt.message))?, excerpt.clone()));
        recalled.waypoint.excerpts.iter().filter_map(here).collect()
    }

    /// Returns the message that may take a new excerpt under this plan: the last user turn. `None` if nothing has left the request,
    /// or if the message is in the provider's cache and nothing before it changes.
    #[must_use]
    pub fn takes_excerpt(&self, messages: &[Message], cache: CacheKey, plan: &Plan) -> Option<usize> {
        let is_shortened = plan.folded.is_some() || !plan.dropped.is_empty();
        if !is_shortened || plan.verdict != Verdict::Fits {
            return None;
        }
        let folded = plan.folded.as_ref();
        let is_gone = |index: &usize| {
            folded.is_some_and(|folded| folded.removed.binary_search(index).is_ok())
                || plan.dropped.binary_search(index).is_ok()
        };
        let request = last_user_turn(messages).filter(|index| !is_gone(index))?;
        let Some(recalled) = self.recall(messages, cache) else { return Some(request) };
        // What counts is that a request had the message, not whether it is still in the cache: a retry repeats the first attempt.
        let is_new = request > recalled.last;
        let same_summary = folded.map(|folded| folded.covers) == recalled.waypoint.fold;
        (is_new || !same_summary).then_some(request)
    }
}

/// The indices of the messages that are not instructions.
#[must_use]
pub fn places(messages: &[Message]) -> Vec<usize> {
    dialogue(messages).map(|(index, _)| index).collect()
}

fn index(place: u32) -> usize {
    usize::try_from(place).unwrap_or(usize::MAX)
}
