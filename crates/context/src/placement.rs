//! Where texts of our own stand in a request.
//!
//! Strict chat templates accept a user message only where the roles alternate, and some providers reject one directly after tool
//! results. So a summary or a marker goes into the neighbouring user message, as a part of its own, and is a message only where it
//! stands between an instruction or an answer and an answer.

use crate::{Assessment, ConversationState, PlacedExcerpt, TurnInput};
use bytes::Bytes;
use tidegate_engine::{Plan, Role, RoleOrder};
use tidegate_wire::{OwnText, Results, Side};

/// What a text of our own is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnKind {
    /// The notes that are pinned to the conversation.
    Notes,
    Summary,
    /// It counts what is dropped.
    Marker,
}

/// Where a text of our own stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a message of our own before this one of the client's.
    Before(usize),
    /// In the same message of our own as the text before it.
    Joined(usize),
    /// In this message of the client's.
    In(usize),
}

impl Place {
    /// The client's message that the text stands before or in.
    #[must_use]
    pub fn before(self) -> usize {
        match self {
            Place::Before(index) | Place::Joined(index) | Place::In(index) => index,
        }
    }
}

/// A message of our own before it has its place.
#[derive(Clone, Debug)]
pub(crate) struct Insertion {
    pub(crate) kind: OwnKind,
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
    /// As a message before one of the client's, with the value of a cache marker.
    Message { before: usize, json: Bytes, breakpoint: Option<Bytes> },
    /// In a message of the client's.
    Part { message: usize, side: Side, texts: Vec<OwnText> },
}

impl Assessment {
    /// Returns what is added to the request, and where.
    #[must_use]
    pub fn places(&self, input: &TurnInput, state: &ConversationState) -> Vec<(OwnKind, Place)> {
        let plan = &self.decision.plan;
        let mut places: Vec<(OwnKind, Place)> = Vec::new();
        for own in self.insertions(plan, input, state) {
            let last =
                places.iter().rev().map(|(_, place)| *place).find(|place| !matches!(place, Place::In(_)));
            let place = match self.part(plan, input, &own) {
                Some((message, ..)) => Place::In(message),
                None if joins(input, &own) && last.is_some_and(|last| last.before() == own.before) => {
                    Place::Joined(own.before)
                }
                None => Place::Before(own.before),
            };
            places.push((own.kind, place));
        }
        places
    }

    /// Finds a place for each insertion. The result is in the order of the messages.
    pub(crate) fn placed(&self, plan: &Plan, input: &TurnInput, insertions: Vec<Insertion>) -> Vec<Placed> {
        let dialect = input.outline.dialect;
        let mut placed: Vec<Placed> = Vec::new();
        for own in insertions {
            let part = self.part(plan, input, &own);
            let joins = joins(input, &own);
            let Insertion { before, json, breakpoint, .. } = own;
            match (part, placed.last_mut()) {
                (Some((message, side, text)), _) => add_part(&mut placed, message, side, text),
                // Two of them would be two user messages in a row.
                (None, Some(Placed::Message { before: last, json: first, breakpoint: marker }))
                    if joins && *last == before =>
                {
                    *first = dialect.joined(first, &json);
                    *marker = breakpoint.or(marker.take());
                }
                (None, _) => placed.push(Placed::Message { before, json, breakpoint }),
            }
        }
        in_order(placed)
    }

    /// Adds the excerpts. Each stands before the words of its message, after a summary that stands there, too.
    pub(crate) fn with_excerpts(&self, mut placed: Vec<Placed>) -> Vec<Placed> {
        if self.excerpts.is_empty() {
            return placed;
        }
        for PlacedExcerpt { message, text, .. } in &self.excerpts {
            let has_results = self.chat.parsed[*message].facts.results != Results::None;
            let side = if has_results { Side::Back } else { Side::Front };
            add_part(&mut placed, *message, side, OwnText::new(text, None));
        }
        in_order(placed)
    }

    /// Returns the message of the client's that takes a text of our own, and the text. `None` if the text is a message.
    fn part(&self, plan: &Plan, input: &TurnInput, own: &Insertion) -> Option<(usize, Side, OwnText)> {
        if input.role_order() == RoleOrder::Any {
            return None;
        }
        let text = input.outline.dialect.own_text(&own.json, own.breakpoint.clone())?;
        let (message, side) = self.neighbour(plan, own.before)?;
        Some((message, side, text))
    }

    /// Returns the user message that takes a text which would stand before `before`, and on which side. `None` if the text is better
    /// a message.
    fn neighbour(&self, plan: &Plan, before: usize) -> Option<(usize, Side)> {
        let messages = &self.chat.messages;
        let folded = plan.folded.as_ref().map_or(&[][..], |folded| &folded.removed);
        // Instructions between two messages do not keep them apart.
        let stays = |index: &usize| {
            let is_removed = folded.binary_search(index).is_ok() || plan.dropped.binary_search(index).is_ok();
            !is_removed && !messages[*index].role.is_instruction()
        };
        let takes = |index: &usize| {
            messages[*index].role == Role::User && self.chat.parsed[*index].facts.extendable.is_some()
        };
        // Results stand first in their message.
        let takes_first =
            |index: &usize| takes(index) && self.chat.parsed[*index].facts.results == Results::None;
        let next = (before..messages.len()).find(stays);
        let last = (0..before).rev().find(stays);
        if let Some(next) = next.filter(takes_first) {
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
        let later = || (before..messages.len()).find(|index| stays(index) && takes_first(index));
        earlier.or_else(|| later().map(|index| (index, Side::Front)))
    }
}

fn in_order(mut placed: Vec<Placed>) -> Vec<Placed> {
    placed.sort_by_key(|placed| match placed {
        Placed::Message { before, .. } => (*before, 0),
        Placed::Part { message, .. } => (*message, 1),
    });
    placed
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

/// Whether a message of our own is put into one that stands in the same place: two of them would be two user messages in a row.
fn joins(input: &TurnInput, own: &Insertion) -> bool {
    input.role_order() != RoleOrder::Any && input.outline.dialect.own_text(&own.json, None).is_some()
}
