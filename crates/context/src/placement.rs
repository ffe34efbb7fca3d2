//! Where texts of our own stand in a request.
//!
//! Strict chat templates accept a user message only where the roles alternate, and some providers reject one directly after tool
//! results. So a summary or a marker goes into the neighbouring user message, as a part of its own, and is a message only where it
//! stands between an instruction or an answer and an answer.

use crate::{Assessment, TurnInput};
use bytes::Bytes;
use tidegate_config::FoldPlacement;
use tidegate_engine::{Plan, Role};
use tidegate_wire::{OwnText, Side};

/// A message of our own before it has its place.
#[derive(Clone, Debug)]
pub(crate) struct Insertion {
    /// The index of the client's message that it stands before.
    pub(crate) before: usize,
    /// The message, a JSON object.
    pub(crate) json: Bytes,
    /// The value of a cache marker of the client's to put on it.
    pub(crate) breakpoint: Option<Bytes>,
}

/// A text of our own in its place.
#[derive(Clone, Debug)]
pub(crate) enum Placed {
    /// As a message before one of the client's.
    Message { before: usize, json: Bytes },
    /// In a message of the client's.
    Part { message: usize, side: Side, texts: Vec<OwnText> },
}

impl Assessment {
    /// Finds a place for each insertion. The result is in the order of the messages.
    pub(crate) fn placed(&self, plan: &Plan, input: &TurnInput, insertions: Vec<Insertion>) -> Vec<Placed> {
        let dialect = input.outline.dialect;
        let mut placed: Vec<Placed> = Vec::new();
        for Insertion { before, json, breakpoint } in insertions {
            let text = match input.context.fold.placement {
                FoldPlacement::Merge => dialect.own_text(&json, breakpoint.clone()),
                FoldPlacement::Message => None,
            };
            let target = text.as_ref().and_then(|_| self.neighbour(plan, before));
            match (target, text) {
                (Some((message, side)), Some(text)) => add_part(&mut placed, message, side, text),
                (None, Some(_)) if joins(&placed, before) => {
                    if let Some(Placed::Message { json: last, .. }) = placed.last_mut() {
                        *last = dialect.joined(last, &json);
                    }
                }
                (None, _) | (_, None) => {
                    let json = match &breakpoint {
                        Some(marker) => dialect.with_breakpoint(&json, marker),
                        None => json,
                    };
                    placed.push(Placed::Message { before, json });
                }
            }
        }
        placed.sort_by_key(|placed| match placed {
            Placed::Message { before, .. } => (*before, 0),
            Placed::Part { message, .. } => (*message, 1),
        });
        placed
    }

    /// Returns the user message that takes a text which would stand before `before`, and on which side. `None` if the text is better
    /// a message.
    fn neighbour(&self, plan: &Plan, before: usize) -> Option<(usize, Side)> {
        let messages = &self.chat.messages;
        let folded = plan.folded.as_ref().map_or(&[][..], |folded| &folded.removed);
        let stays = |index: &usize| {
            folded.binary_search(index).is_err() && plan.dropped.binary_search(index).is_err()
        };
        let takes = |index: &usize| {
            messages[*index].role == Role::User && self.chat.parsed[*index].facts.maskable.len() == 1
        };
        let next = (before..messages.len()).find(stays);
        let last = (0..before).rev().find(stays);
        if let Some(next) = next.filter(takes) {
            return Some((next, Side::Front));
        }
        if let Some(last) = last.filter(takes) {
            return Some((last, Side::Back));
        }
        let is_result = |index: usize| matches!(messages[index].role, Role::Tool | Role::Function);
        if !last.is_some_and(is_result) {
            return None;
        }
        let earlier =
            (0..before).rev().find(|index| stays(index) && takes(index)).map(|index| (index, Side::Back));
        let later = || (before..messages.len()).find(|index| stays(index) && takes(index));
        earlier.or_else(|| later().map(|index| (index, Side::Front)))
    }
}

/// Adds a text to a message, after what was added to it before.
fn add_part(placed: &mut Vec<Placed>, message: usize, side: Side, text: OwnText) {
    let same = placed.iter_mut().find_map(|placed| match placed {
        Placed::Part { message: other, texts, .. } if *other == message => Some(texts),
        Placed::Part { .. } | Placed::Message { .. } => None,
    });
    match same {
        Some(texts) => texts.push(text),
        None => placed.push(Placed::Part { message, side, texts: vec![text] }),
    }
}

/// Whether the last text is a message in the same place. Two of them would be two user messages in a row.
fn joins(placed: &[Placed], before: usize) -> bool {
    matches!(placed.last(), Some(Placed::Message { before: last, .. }) if *last == before)
}
